"""What this machine has, what is missing, what that disables and which command installs it. Key values are never read out."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from evaluator.types import DeviceSpec, Status

State = Literal["ok", "missing", "broken"]
DURABLE_FIX = (
    "CPPFLAGS='-DPyEval_CallObject=PyObject_CallObject' pip install --no-cache-dir --force-reinstall durable-rules==2.0.28"
)
MODEL_KEYS = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "DEEPSEEK_API_KEY",
    "MISTRAL_API_KEY",
    "OPENROUTER_API_KEY",
    "AZURE_API_KEY",
    "GROQ_API_KEY",
    "TOGETHERAI_API_KEY",
    "XAI_API_KEY",
)


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    state: State
    detail: str
    needed: bool = False
    """Without it the main job does not run."""
    disables: str = ""
    install: str = ""


def examine() -> Iterator[Check]:
    """Every check, in the order people read them."""
    yield Check(
        "python",
        "ok" if sys.version_info >= (3, 10) else "broken",
        sys.version.split()[0],
        needed=True,
        install="" if sys.version_info >= (3, 10) else "install Python 3.10 or newer",
    )
    yield _rule_engine()
    yield _guarded("NVRTC", _nvrtc, "compiling CUDA C", "pip install nvidia-cuda-nvrtc nvidia-cuda-runtime", needed=True)
    yield _guarded("simulator core", _simulator, "running kernels without a GPU", "apt install g++", needed=True)
    yield _program("nvdisasm", _nvdisasm(), "SASS counts as facts", "pip install nvidia-cuda-nvdisasm")
    yield _bubblewrap()
    yield _filter()
    yield _guarded("GPU", _gpu, "measured times (the simulator models them)", "install NVIDIA's driver", needed=False)
    yield _package(
        "cupy", ("cupy-cuda13x", "cupy-cuda12x", "cupy"), "running solutions on a GPU", "pip install 'kernelskill[cuda13]'"
    )
    yield from _measuring_tools()
    yield _package("torch", ("torch",), "KernelBench tasks", "pip install 'kernelskill[torch]'")
    yield _package(
        "litellm", ("litellm",), "a language model as the writer", "pip install 'kernelskill[llm]'"
    )
    yield _package("mcp", ("mcp",), "serving runs to a coding agent (kernelskill mcp)", "pip install 'kernelskill[mcp]'")
    keys = [name for name in MODEL_KEYS if os.environ.get(name)]
    yield Check(
        "model keys",
        "ok" if keys else "missing",
        ", ".join(keys) or "none set",
        disables="a hosted model as the writer",
        install="" if keys else "export one of " + ", ".join(MODEL_KEYS[:3]),
    )


def _rule_engine() -> Check:
    try:
        importlib.import_module("durable.engine")
    except ImportError as error:
        present = importlib.util.find_spec("durable") is not None
        return Check(
            "durable-rules",
            "broken" if present else "missing",
            str(error).splitlines()[0],
            needed=True,
            disables="decisions",
            install=DURABLE_FIX,
        )
    return Check("durable-rules", "ok", importlib.metadata.version("durable-rules"), needed=True)


def _guarded(name: str, probe: Callable[[], str], disables: str, install: str, *, needed: bool) -> Check:
    """A probe that raises is a missing part, whatever it raised: doctor must never end in a traceback."""
    try:
        return Check(name, "ok", probe(), needed=needed)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return Check(name, "missing", reason, needed=needed, disables=disables, install=install)


def _bubblewrap() -> Check:
    from evaluator.sandbox import bubblewrap

    disables = "hiding the user's files from solutions (limits and the system-call filter stay)"
    if bubblewrap():
        return _program("bubblewrap", bubblewrap(), disables, "")
    found = shutil.which("bwrap")
    if found is None:
        return Check("bubblewrap", "missing", "not found", disables=disables, install="apt install bubblewrap")
    return Check("bubblewrap", "broken", f"{found}: the kernel refuses its namespaces", disables=disables,
                 install="allow unprivileged user namespaces, or run outside the container that forbids them")


def _filter() -> Check:
    from evaluator import landlock, seccomp

    disables = "refusing processes, files and network to solutions"
    if seccomp.available():
        domain = "and a Landlock domain" if landlock.available() else "no Landlock: processes of this user can be read"
        return Check("call filter", "ok", f"seccomp, with and without a GPU; {domain}")
    return Check("call filter", "missing", "this kernel or processor has none that is known here", disables=disables,
                 install="Linux on x86-64 or aarch64 with seccomp")


def _nvrtc() -> str:
    from evaluator.compile import nvrtc_version

    return "{}.{}".format(*nvrtc_version())


def _simulator() -> str:
    from evaluator.simulator import build

    return f"built, {build.library_path()}"


def _nvdisasm() -> str | None:
    from evaluator.toolkit import find_toolkit

    found = find_toolkit().nvdisasm
    return str(found) if found else None


def _gpu() -> str:
    from kernelskill.facts.device import detect_device

    device = detect_device()
    if device is None:
        raise RuntimeError("no NVIDIA driver")
    return f"{device.name}, {device.arch}"


def _measuring_tools() -> Iterator[Check]:
    """ncu, compute-sanitizer and CUPTI: tried in a real evaluation where there is a GPU, else only looked for."""
    from evaluator.ncu import find_ncu
    from evaluator.sanitizer import find_sanitizer

    ncu = _program("ncu", find_ncu(), "hardware counters as facts", "install Nsight Compute")
    sanitizer = _program("compute-sanitizer", find_sanitizer(), "memory and race checks on a GPU", "install the CUDA toolkit")
    device = _usable_gpu()
    if device is None:
        yield from (ncu, sanitizer)
        return
    from kernelskill.gpu_trial import tool_state, trial

    tried = trial(device)
    seconds = sum(tried.stage_seconds.values())
    passed = tried.status is Status.PASSED
    yield Check("evaluation on the GPU", "ok" if passed else "broken", f"{tried.status.value} in {seconds:.1f} s" + (
        "" if passed else f": {tried.message[:300]}"), disables="--device cuda")
    yield _tried(ncu, tool_state(tried, "ncu"))
    yield _tried(sanitizer, tool_state(tried, "compute-sanitizer"))
    cupti = Check("CUPTI", "ok", "records launches and their times", disables="times of single kernels and gaps between them")
    yield _tried(cupti, tool_state(tried, "cupti"))


def _usable_gpu() -> DeviceSpec | None:
    """The card of the GPU that cupy can use; None without one, and for a GPU without a card (the line "GPU" says so)."""
    from kernelskill.facts.device import DeviceError, detect_device

    if importlib.util.find_spec("cupy") is None:
        return None
    try:
        return detect_device()
    except DeviceError:
        return None


def _tried(check: Check, reason: str) -> Check:
    """The check after its trial."""
    if not reason or check.state != "ok":
        return check
    return dataclasses.replace(check, state="broken", detail=reason, install="docs/gpu.md says what each tool needs")


def _program(name: str, path: str | None, disables: str, install: str) -> Check:
    if path is None:
        return Check(name, "missing", "not found", disables=disables, install=install)
    return Check(name, "ok", f"{path} {_version_of(path)}".strip(), disables=disables)


def _version_of(path: str) -> str:
    try:
        shown = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout.split("\n")
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next((line.strip() for line in shown if any(c.isdigit() for c in line) and "opyright" not in line), "")


def _package(name: str, distributions: tuple[str, ...], disables: str, install: str) -> Check:
    for distribution in distributions:
        try:
            return Check(name, "ok", f"{distribution} {importlib.metadata.version(distribution)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return Check(name, "missing", "not installed", disables=disables, install=install)
