"""The scores of a bench: over all tasks, the clean ones and those set aside, against every baseline, by precision class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from evaluator.types import Frozen
from kernelskill.suites.rows import BEST_OF_ALL, BEST_TORCH, START, BenchRow

FAST_P = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
"""The thresholds of fast_p: the share of all tasks that are solved with a speedup above p (KernelBench)."""
RESAMPLES = 2000
FIRST = (BEST_TORCH, BEST_OF_ALL, START)


class Speedups(Frozen):
    """Speedups over one baseline. The means are over solved tasks with a time; fast_p counts every task."""

    baseline: str
    counted: int
    """Solved tasks that have a time and this baseline."""
    arithmetic: float | None = None
    geometric: float | None = None
    low: float | None = None
    high: float | None = None
    """95 % bootstrap interval of the geometric mean over the tasks."""
    median: float | None = None
    fast: dict[str, float] = Field(default_factory=dict)
    """p -> share."""


class Group(Frozen):
    """The scores of some tasks."""

    tasks: int
    solved: int
    success_rate: float
    speedups: dict[str, Speedups]
    """Baseline -> scores, the headline baseline first."""
    distance: float | None = None
    """Geometric mean of time over speed of light."""
    near_light: float | None = None
    """Share of the solved tasks with a time that are within 1.25 times their speed of light."""


class Scores(Frozen):
    """All scores of a bench."""

    modelled: bool
    """Times are the simulator's model, not measured."""
    groups: dict[str, Group]
    """`all`, `clean`, `set_aside`; `not_linted` where the lint is missing for some."""
    by_precision: dict[str, Group]
    """Solved tasks by the precision class of their solution."""


NEAR_LIGHT = 1.25


def scores_of(rows: Sequence[BenchRow]) -> Scores:
    """Scores of the rows; groups without a task are left out."""
    finished = [row for row in rows if row.outcome != "waiting"]
    groups = {
        "all": finished,
        "clean": [row for row in finished if row.set_aside is False],
        "set_aside": [row for row in finished if row.set_aside],
        "not_linted": [row for row in finished if row.set_aside is None],
    }
    classes = sorted({row.precision_class for row in finished if row.precision_class})
    return Scores(
        modelled=any(row.provenance == "modelled" for row in rows),
        groups={name: _group(chosen) for name, chosen in groups.items() if chosen or name == "all"},
        by_precision={name: _group([row for row in finished if row.precision_class == name]) for name in classes},
    )


def _group(rows: Sequence[BenchRow]) -> Group:
    solved = [row for row in rows if row.solved]
    names = list(dict.fromkeys([*FIRST, *(name for row in solved for name in row.speedups)]))
    distances = [row.distance for row in solved if row.distance is not None]
    return Group(
        tasks=len(rows), solved=len(solved), success_rate=_share(len(solved), len(rows)),
        speedups={name: _speedups(name, rows) for name in names if any(name in row.speedups for row in solved)},
        distance=_geometric(distances), near_light=_share(sum(d <= NEAR_LIGHT for d in distances), len(distances), None),
    )


def _speedups(name: str, rows: Sequence[BenchRow]) -> Speedups:
    ratios = [row.speedups[name] for row in rows if row.solved and name in row.speedups]
    fast = {f"{p:g}": _share(sum(ratio > p for ratio in ratios), len(rows)) for p in FAST_P}
    low, high = _interval(ratios)
    return Speedups(
        baseline=name, counted=len(ratios), arithmetic=_rounded(float(np.mean(ratios))) if ratios else None,
        geometric=_geometric(ratios), low=low, high=high, median=_rounded(float(np.median(ratios))) if ratios else None,
        fast=fast,
    )


def _interval(ratios: Sequence[float]) -> tuple[float | None, float | None]:
    if len(ratios) < 2:
        return None, None
    logs = np.log(ratios)
    picked = np.random.default_rng(0).integers(0, len(logs), (RESAMPLES, len(logs)))
    low, high = np.exp(np.percentile(logs[picked].mean(axis=1), [2.5, 97.5]))
    return _rounded(float(low)), _rounded(float(high))


def _geometric(values: Sequence[float]) -> float | None:
    return _rounded(float(np.exp(np.mean(np.log(values))))) if values else None


def _share(part: int, whole: int, empty: float | None = 0.0) -> float:
    return _rounded(part / whole) if whole else empty  # type: ignore[return-value]


def _rounded(value: float) -> float:
    return round(value, 4)
