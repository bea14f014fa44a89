"""What an evaluation's process can see and use: nothing of the host but the files it needs, read-only, and no network.

With bubblewrap: own namespaces, an allow-list of read-only folders, a private /tmp, no capabilities. Without: a clean
environment and a private working folder; files that the user can write are then protected by nothing but the source guard.
Resource limits and the system-call filter (`runner.py`, `seccomp.py`) hold in both cases.
"""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from evaluator.types import Request

PASSED_ON = (
    "PATH", "LANG", "LC_ALL", "CXX", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH",
    "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE",
)
"""Variables that say where libraries are or how to compute. Everything else, API keys above all, stays outside."""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
ISOLATION = ("--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL")
PRIVATE_TMP_BYTES = 1 << 30
GPU_DEVICES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "dxg")
"""The driver's nodes beside the numbered ones; `dxg` is the one under WSL 2."""
CUDA_FOLDERS = ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH")
PROBE_SECONDS = 20


@lru_cache(maxsize=1)
def bubblewrap() -> str | None:
    """Path of a bubblewrap that works here; None where it is missing or the kernel refuses its namespaces."""
    path = shutil.which("bwrap")
    if path is None:
        return None
    command = [path, *ISOLATION, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "/bin/true"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=PROBE_SECONDS, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return path if done.returncode == 0 else None


def sandbox_name() -> str:
    """For the record: `bubblewrap` or `rlimits`."""
    return "bubblewrap" if bubblewrap() else "rlimits"


def clean_environment(home: Path) -> dict[str, str]:
    """The evaluation's whole environment."""
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    package = str(Path(__file__).resolve().parents[1])
    user_site = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return {
        "PATH": os.defpath, "LANG": "C.UTF-8", **kept, **dict.fromkeys(ONE_THREAD, "1"),
        "HOME": str(home), "TMPDIR": str(home), "XDG_CACHE_HOME": str(user_cache()),
        "CUPY_CACHE_DIR": str(home / "cupy"), "PYTHONPATH": os.pathsep.join([package, *user_site]),
        "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0",
    }


def user_cache() -> Path:
    """The user's cache folder, which holds the compiled simulator."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def wrapped(command: Sequence[str], request: Request, environment: dict[str, str], home: Path) -> list[str]:
    """`command` inside bubblewrap where that works, else `command` itself. `home` is the private working folder."""
    path = bubblewrap()
    if path is None:
        return list(command)
    variables = [word for name, value in environment.items() for word in ("--setenv", name, value)]
    devices = list(_gpu_devices()) if request.mode == "cuda" else []
    return [
        path, *ISOLATION, *variables, *_system(), "--proc", "/proc", "--dev", "/dev", *devices,
        "--size", str(PRIVATE_TMP_BYTES), "--tmpfs", "/tmp", *_folders(request), "--bind", str(home), str(home),
        "--chdir", str(home), "--", *command,
    ]


def read_only(command: Sequence[str], environment: dict[str, str], home: Path) -> list[str]:
    """`command` inside bubblewrap where that works: every file can be read, none written but below `home`; no network."""
    path = bubblewrap()
    if path is None:
        return list(command)
    variables = [word for name, value in environment.items() for word in ("--setenv", name, value)]
    return [path, *ISOLATION, *variables, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
            "--bind", str(home), str(home), "--", *command]


def _system() -> Iterator[str]:
    for folder in SYSTEM_FOLDERS:
        path = Path(folder)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), folder)
        elif path.is_dir():
            yield from ("--ro-bind", folder, folder)
    for file in SYSTEM_FILES:
        yield from ("--ro-bind-try", file, file)


def _folders(request: Request) -> Iterator[str]:
    """Python, this package, the compiled simulator, the CUDA that variables name, the task's folder, the solution."""
    package = Path(__file__).resolve().parent
    python = [sys.prefix, sys.base_prefix, *_library_folders()]
    simulator = user_cache() / "kernelskill"
    cuda = [folder for name in CUDA_FOLDERS for folder in os.environ.get(name, "").split(os.pathsep) if folder]
    needed = [*python, *cuda, str(package), str(simulator), str(Path(request.task.path).parent), request.solution]
    existing = {str(Path(path).absolute()) for path in needed if Path(path).exists()}
    for folder in sorted(existing):  # parents before what is below them
        if not folder.startswith("/usr/"):
            yield from ("--ro-bind", folder, folder)


def _library_folders() -> list[str]:
    """Site-packages on this interpreter's path; the path itself may hold the user's project, which stays outside."""
    return [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]


def _gpu_devices() -> Iterator[str]:
    """`--dev /dev` makes a fresh /dev, so the GPU's nodes are bound into it one by one."""
    numbered = sorted(path.name for path in Path("/dev").glob("nvidia[0-9]*"))
    for name in (*numbered, *GPU_DEVICES):
        yield from ("--dev-bind-try", f"/dev/{name}", f"/dev/{name}")
    yield from ("--ro-bind", "/sys", "/sys")
