"""What a call launched on a GPU: recorded at the launch itself, and, with times, by CUPTI (`cupti.py`).

The record at the launch needs no profiler; it knows the solution's own kernels only. CUPTI's record has every kernel, copy
and fill with its start and its length; kernels that are not among the solution's launches are a library's.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluator.types import LaunchRecord, Timeline

Shape = tuple[int, int, int]
MANGLED, LENGTH = re.compile(r"_Z(N?)(\d.*)"), re.compile(r"\d+")
"""Itanium C++ ABI: `_Z4kernPf`, and nested `_ZN2ns4kernEPf`."""
BEFORE_ARGUMENTS = re.compile(r"^(?:void\s+)?([^<(]+)")


@dataclass
class LaunchLog:
    """The launches of a solution's own kernels while `open`; otherwise they are only counted."""

    open: bool = False
    launches: list[LaunchRecord] = field(default_factory=list)
    total: int = 0
    """Of all launches so far."""

    def note(self, kernel: str, grid: Any, block: Any, shared_bytes: int) -> None:
        """One launch, in CuPy's words."""
        self.total += 1
        if self.open:
            self.launches.append(LaunchRecord(kernel=kernel, grid=shape(grid), block=shape(block),
                                              dynamic_shared_bytes=int(shared_bytes)))


@dataclass(frozen=True)
class Activity:
    """One kernel, copy or fill on the GPU; times in us on CUPTI's clock."""

    kind: str
    name: str
    start_us: float
    length_us: float
    grid: Shape = (1, 1, 1)
    block: Shape = (1, 1, 1)
    shared_bytes: int = 0
    """Kernels: static and dynamic, a block."""
    nbytes: int = 0
    """Copies and fills."""

    @property
    def end_us(self) -> float:
        """When it ended."""
        return self.start_us + self.length_us


def shape(value: Any) -> Shape:
    """A grid or block in three dimensions."""
    numbers = [int(n) for n in value] if isinstance(value, Sequence) else [int(value)]
    x, y, z = (*numbers, 1, 1, 1)[:3]
    return x, y, z


def base_name(kernel: str) -> str:
    """The name without return type, template arguments, parameters and namespaces, also of a mangled symbol."""
    mangled = MANGLED.match(kernel)
    if mangled:
        parts, rest = "", mangled[2]
        length = LENGTH.match(rest)
        while length:
            parts, rest = rest[length.end():length.end() + int(length[0])], rest[length.end() + int(length[0]):]
            length = LENGTH.match(rest) if mangled[1] else None
        return parts or kernel
    match = BEFORE_ARGUMENTS.match(kernel.strip())
    return (match[1] if match else kernel).strip().rsplit("::", 1)[-1]


def calls_between(activities: Sequence[Activity], flush_bytes: int) -> list[list[Activity]]:
    """The activities of each call, where a fill of `flush_bytes` bytes went before every call."""
    calls: list[list[Activity]] = []
    for activity in activities:
        if activity.kind == "fill" and activity.nbytes == flush_bytes:
            calls.append([])
        elif calls:
            calls[-1].append(activity)
    return calls


def timeline(calls: Sequence[Sequence[Activity]]) -> Timeline | None:
    """Medians over the calls; None where no call ran anything."""
    measured = [_extent(call) for call in calls if call]
    if not measured:
        return None
    span, busy, gap = (statistics.median(values) for values in zip(*measured, strict=True))
    return Timeline(calls=len(measured), span_us=span, busy_us=busy, longest_gap_us=gap)


def with_times(own: Sequence[LaunchRecord], calls: Sequence[Sequence[Activity]]) -> list[LaunchRecord]:
    """The launches of one call with the median time of each over the calls, the libraries' kernels among them.

    A call that ran other kernels than most is left out. Launches that CUPTI did not see keep an unknown time.
    """
    kernels = [[a for a in call if a.kind == "kernel"] for call in calls]
    sequences = [tuple((k.name, k.grid, k.block) for k in call) for call in kernels]
    if not any(sequences):
        return list(own)
    usual = max(set(sequences), key=sequences.count)
    alike = [call for call, sequence in zip(kernels, sequences, strict=True) if sequence == usual]
    rows = [(same[0], statistics.median(a.length_us for a in same)) for same in zip(*alike, strict=True)]
    return _matched(own, rows)


def _matched(own: Sequence[LaunchRecord], rows: Iterable[tuple[Activity, float]]) -> list[LaunchRecord]:
    waiting, found = list(own), []
    for activity, time_us in rows:
        launch = next((la for la in waiting if _same(la, activity)), None)
        if launch is None:
            found.append(LaunchRecord(kernel=activity.name, grid=activity.grid, block=activity.block, time_us=time_us,
                                      library=True))
        else:
            waiting.remove(launch)
            found.append(launch.model_copy(update={"time_us": time_us}))
    return found + waiting


def _same(launch: LaunchRecord, activity: Activity) -> bool:
    if (launch.grid, launch.block) != (activity.grid, activity.block):
        return False
    return base_name(launch.kernel) == base_name(activity.name)


def _extent(call: Sequence[Activity]) -> tuple[float, float, float]:
    """(span, busy, longest gap) of one call; activities may overlap."""
    busy = gap = 0.0
    reached = call[0].start_us
    for activity in sorted(call, key=lambda a: a.start_us):
        gap = max(gap, activity.start_us - reached)
        busy += max(0.0, activity.end_us - max(activity.start_us, reached))
        reached = max(reached, activity.end_us)
    return reached - call[0].start_us, busy, gap
