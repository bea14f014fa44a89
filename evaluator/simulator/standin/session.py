"""What one worker process knows while a solution runs on the stand-in: the device, the mode, and everything seen so far."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Literal

from evaluator.compile import Compiled
from evaluator.types import DeviceSpec, Finding, FindingKind, KernelResources, LaunchRecord

EVALUATOR = str(Path(__file__).resolve().parents[2])
LIBRARY_PARTS = ("/site-packages/", "/dist-packages/", "<frozen ", "/contextlib.py", "/functools.py")


class SimulatedError(RuntimeError):
    """What the GPU would have raised (or what it would have corrupted silently); `finding` says what and where."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(describe(finding))
        self.finding = finding


@dataclass(frozen=True)
class Place:
    """A line of Python that called into the stand-in."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


@dataclass(frozen=True)
class LibraryCall:
    """An operator of cupy or torch that computed something outside the solution's kernels."""

    name: str
    place: Place | None
    count: int


@dataclass
class Session:
    """One solution on one simulated device.

    mode `verify`: kernels run completely, every access checked; fresh memory is poisoned with NaN.
    mode `profile`: sampled blocks run and a time is modelled; array contents mean nothing and fresh memory is zero.
    The mode may be changed between calls of the solution.
    """

    device: DeviceSpec
    mode: Literal["verify", "profile"] = "verify"
    solution_file: str | None = None
    """Where set, places are lines of this file and only calls that come from it count as library calls."""
    threads: int = 1
    """Host threads of a functional run."""
    sizes: dict[str, int] | None = None
    """Problem sizes of the run in progress, written into findings."""
    fresh_byte: int | None = None
    """What fresh memory is filled with in mode `verify`; None: NaN, or a large pattern for integers."""
    block_order: int | None = None
    """Order in which a launch's blocks run in mode `verify`: None as numbered, -1 backwards, `conditions.APART` as if all
    ran at once, else the seed of a permutation."""
    findings: list[Finding] = field(default_factory=list)
    launches: list[LaunchRecord] = field(default_factory=list)
    text_facts: list[dict[str, str]] = field(default_factory=list)
    """Beside each entry of `launches`: facts of kind text, such as `occupancy_limiter` and `time_limiter`."""
    stored_bytes: list[float] = field(default_factory=list)
    """Beside each entry of `launches`: the most bytes of global memory that the launch can have written."""
    resources: dict[str, KernelResources] = field(default_factory=dict)
    """Launch name -> resources of every kernel compiled so far."""
    compiled: list[Compiled] = field(default_factory=list)
    """Every module compiled so far, for whoever may start nvdisasm (a sandboxed process may not)."""
    compile_seconds: float = 0.0
    compile_log: str = ""
    """NVRTC's log of the last compilation, the failed one included."""
    kernel_launches: int = 0
    """Launches of any mode."""
    warp_instructions: int = 0
    """PTX instructions that warps executed in mode `verify`."""
    _calls: dict[tuple[str, Place | None], int] = field(default_factory=dict)

    @property
    def library_calls(self) -> list[LibraryCall]:
        """Operators that computed outside the kernels, by name and calling line."""
        return [LibraryCall(name, place, count) for (name, place), count in self._calls.items()]

    def forget_library_calls(self) -> None:
        """Starts counting anew (after construction of a model, for instance)."""
        self._calls.clear()

    def record_library_call(self, name: str) -> None:
        """Counts `name`, unless the solution is not on the call stack."""
        place = self.caller()
        if place is not None:
            self._calls[name, place] = self._calls.get((name, place), 0) + 1

    def caller(self) -> Place | None:
        """The innermost line of the solution on the call stack; without `solution_file`, of any code outside the libraries."""
        for frame in _frames():
            file = frame.f_code.co_filename
            if file == self.solution_file if self.solution_file else not is_library(file):
                return Place(file, frame.f_lineno)
        return None

    def add_launch(self, record: LaunchRecord, stored_bytes: float = 0.0) -> None:
        """Notes a launch of the profile stage, and the most bytes that it can have written."""
        self.launches.append(record)
        self.text_facts.append(dict(record.text))
        self.stored_bytes.append(stored_bytes)

    def report(self, finding: Finding) -> None:
        """Keeps `finding` unless it was already seen at the same place of the same kernel."""
        if not any(_same_place(finding, known) for known in self.findings):
            self.findings.append(finding)

    def report_call(
        self, kind: FindingKind, message: str, *, kernel: str | None = None, severity: Literal["error", "warning"] = "error"
    ) -> None:
        """Keeps a finding at the calling Python line and, if it is an error, raises it as SimulatedError."""
        place = self.caller()
        finding = Finding(kind=kind, message=message, severity=severity, kernel=kernel, sizes=self.sizes,
                          file=place.file if place else None, line=place.line if place else None)
        self.report(finding)
        if severity == "error":
            raise SimulatedError(finding)


def describe(finding: Finding) -> str:
    """One line for a log: kind, kernel, place, message."""
    where = f"{finding.file or 'CUDA source'}:{finding.line}: " if finding.line else ""
    kernel = f" in kernel {finding.kernel}" if finding.kernel else ""
    return f"{where}{finding.kind}{kernel}: {finding.message}"


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def is_library(file: str) -> bool:
    """True for code of the evaluator, of Python and of installed packages: never the solution."""
    return file.startswith(EVALUATOR) or any(part in file for part in LIBRARY_PARTS)


def _same_place(a: Finding, b: Finding) -> bool:
    """Findings of one launch line differ by their text; those of a CUDA line repeat for other blocks and threads."""
    keys = [(f.kind, f.severity, f.kernel, f.file, f.line, f.sizes, f.message if f.file else "") for f in (a, b)]
    return keys[0] == keys[1]
