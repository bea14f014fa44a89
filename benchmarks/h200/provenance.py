"""Where a committed number comes from: device, driver, versions, the card's state before and after, date, command, commit.

A copy of the files without their git history names its commit through the environment: KERNELSKILL_COMMIT, what `git rev-parse
HEAD` says where the copy is made, of a checkout without changes.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from evaluator.gpu_state import gpu_state

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "h200"
COMMIT_VARIABLE = "KERNELSKILL_COMMIT"
COMMIT, SHOWN_DIGITS = re.compile(r"[0-9a-f]{7,40}"), 12
PACKAGES = (
    "kernelskill", "torch", "triton", "cupy-cuda12x", "cupy-cuda13x", "numpy", "scipy", "nvidia-cuda-nvrtc", "nvidia-ml-py",
)


def provenance(command: str) -> dict[str, Any]:
    """The record of a measurement that starts now. `command` is the line that repeats it."""
    state = gpu_state()
    return {
        "command": command,
        "date": _now(),
        "commit": commit(),
        "device": state.name if state else "",
        "driver": state.driver if state else "",
        "versions": versions(),
        "state_before": _shown(state),
    }


def finished(record: dict[str, Any]) -> dict[str, Any]:
    """The same record with the card's state after the measurement."""
    return {**record, "finished": _now(), "state_after": _shown(gpu_state())}


class Record:
    """A part's JSON as it is measured: written after every section, so that a run that is cut off leaves what it has.

    Sections that are not measured again stay as the committed record has them; `sections` says of each when it was.
    """

    def __init__(self, part: str, command: str, folder: Path = RESULTS) -> None:
        """`command` is the line that repeats the measurement; the record is written into `folder`."""
        self.part, self.folder, self.made = part, folder, provenance(command)
        self.kept = committed(part)
        made = self.kept.pop("provenance", {})
        self.sections: dict[str, Any] = self.kept.pop("sections", {name: _origin(made) for name in self.kept})

    def put(self, section: str, value: Any) -> None:
        """One section, measured now. Its date is this run's."""
        self.kept[section] = value
        self.sections[section] = _origin(self.made)
        write(self.part, self.made, {"sections": self.sections, **self.kept}, self.folder)

    def add(self, section: str, rows: dict[str, Any]) -> None:
        """Rows of a section that is a mapping; other rows of it stay."""
        self.put(section, {**self.kept.get(section, {}), **rows})


def committed(part: str) -> dict[str, Any]:
    """A part's committed record; {} where there is none."""
    path = RESULTS / f"{part}.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _origin(made: dict[str, Any]) -> dict[str, Any]:
    return {name: made.get(name, "") for name in ("date", "commit", "command")}


def write(part: str, record: dict[str, Any], result: dict[str, Any], folder: Path = RESULTS) -> Path:
    """`<folder>/<part>.json`: the provenance, completed now, and the part's own result."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{part}.json"
    path.write_text(json.dumps({"provenance": finished(record), **result}, indent=1) + "\n", encoding="utf-8")
    return path


def versions() -> dict[str, str]:
    """Python, the CUDA runtime and driver interface, and the packages that a result depends on; what is missing is left out."""
    found = {"python": platform.python_version(), **_cuda_versions()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    if "kernelskill" not in found:  # used from a checkout
        from kernelskill import __version__

        found["kernelskill"] = __version__
    return found


def commit() -> str:
    """The checkout's commit, `-changed` appended where files differ from it; "" where there is no git.

    What KERNELSKILL_COMMIT names wins. Raises ValueError where it names no commit.
    """
    told = os.environ.get(COMMIT_VARIABLE, "")
    if told:
        if not COMMIT.fullmatch(told):
            raise ValueError(f"{COMMIT_VARIABLE}={told!r} is no commit: give what git rev-parse HEAD prints")
        return told[:SHOWN_DIGITS]
    try:
        head = _git("rev-parse", f"--short={SHOWN_DIGITS}", "HEAD")
        return head + ("-changed" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(*arguments: str) -> str:
    call = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return call.stdout.strip()


def _cuda_versions() -> dict[str, str]:
    try:
        import cupy

        runtime = cupy.cuda.runtime
        return {"cuda_runtime": str(runtime.runtimeGetVersion()), "cuda_driver": str(runtime.driverGetVersion())}
    except Exception:  # no cupy, or no driver: the record says nothing then
        return {}


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _shown(state: Any) -> dict[str, Any]:
    return state.model_dump(mode="json", exclude={"uuid"}) if state else {}
