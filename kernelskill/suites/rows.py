"""One row of a bench: what came of one task, read off its run folder and its lint."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evaluator.baselines import best_torch, speedup
from evaluator.lint.report import SETS_ASIDE, LintReport
from evaluator.types import DeviceSpec, Evaluation, Frozen, PrecisionClass, Status
from kernelskill.memory.run import Run

START, BEST_TORCH, BEST_OF_ALL = "start", "best_torch", "best_of_all"
"""Baselines beside those of `BaselineTime`: the run's first solution; the fastest PyTorch of at least the solution's
precision; the fastest of all measured ones whatever their precision."""

Outcome = Literal["solved", "failed", "unusable", "waiting"]
"""`unusable`: no run could be made or finished, and no kernel is to blame; `waiting`: a writer has to answer."""


class BenchRow(Frozen):
    """What came of one task."""

    key: str
    task: str
    outcome: Outcome
    reason: str = ""
    """Why the task is not solved."""
    run: str = ""
    """Its folder, below the bench's."""
    rounds: int = 0
    stopped: str = ""
    """Why the run has no more rounds, e.g. `near_speed_of_light`."""
    methods: tuple[str, ...] = ()
    """Those of the best solution, in order."""
    time_us: float | None = None
    start_time_us: float | None = None
    provenance: str = ""
    """Of both times: `modelled`, `cuda_event`."""
    precision_class: PrecisionClass | None = None
    speedups: dict[str, float] = Field(default_factory=dict)
    """Baseline -> its time / the solution's time."""
    best_torch: str = ""
    """Which baseline `best_torch` is."""
    sol_us: float | None = None
    """Speed of light on the device."""
    set_aside: bool | None = None
    """What the lint says; None: the task was not linted."""
    set_aside_for: tuple[str, ...] = ()
    seconds: float = 0.0
    """Wall time that this bench spent on it."""

    @property
    def solved(self) -> bool:
        """A right solution."""
        return self.outcome == "solved"

    @property
    def distance(self) -> float | None:
        """Time over speed of light."""
        return self.time_us / self.sol_us if self.time_us and self.sol_us else None


def row_of(key: str, run: Run, folder: str, lint: LintReport | None, seconds: float) -> BenchRow:
    """The row of a run that has gone as far as it could."""
    graph = run.graph
    best = graph.evaluation(graph.best) if graph.best else None
    if best is None or best.status is not Status.PASSED:
        reason = f"{best.status.value}: {best.message}" if best else "the run has no solution yet"
        return BenchRow(key=key, task=run.config.task, outcome="failed", reason=reason[:400], run=folder,
                        rounds=graph.rounds, stopped=run.stop_reason, seconds=seconds, **aside(lint))
    final = run.final[1] if run.final and run.final[1].status is Status.PASSED else best
    torch = best_torch(final)
    start = graph.evaluation(graph.start)
    return BenchRow(
        key=key, task=run.config.task, outcome="solved", run=folder, rounds=graph.rounds, stopped=run.stop_reason,
        seconds=seconds,
        methods=tuple(method.method for method in graph.methods(graph.best)),
        time_us=final.time.time_us if final.time else None, start_time_us=start.time.time_us if start.time else None,
        provenance=final.time.provenance if final.time else "", precision_class=final.precision_class,
        speedups=_speedups(final, graph.speedup(graph.best)), best_torch=torch.name if torch else "",
        sol_us=_speed_of_light(final, lint, run.config.device), reason=final.time_unavailable, **aside(lint),
    )


def aside(lint: LintReport | None) -> dict[str, object]:
    """The lint's part of a row."""
    if lint is None or lint.verdict == "not_checked":
        return {}
    codes = tuple(dict.fromkeys(finding.code for finding in lint.findings if finding.code in SETS_ASIDE))
    return {"set_aside": lint.set_aside, "set_aside_for": codes if lint.set_aside else ()}


def _speedups(final: Evaluation, over_start: float | None) -> dict[str, float]:
    found = {str(row.name): ratio[0] for row in final.baselines if (ratio := speedup(row)) is not None}
    torch, measured = best_torch(final), {name: value for name, value in found.items() if name != "naive_start"}
    chosen: dict[str, float | None] = {
        START: found.get("naive_start", over_start), BEST_TORCH: found.get(torch.name) if torch else None,
        BEST_OF_ALL: min(measured.values(), default=None),
    }
    return {name: round(value, 4) for name, value in (chosen | measured).items() if value is not None}


def _speed_of_light(final: Evaluation, lint: LintReport | None, device: DeviceSpec) -> float | None:
    """By the lint, which knows the operations; else from the bytes alone."""
    if lint is not None and lint.cost is not None:
        return round(lint.cost.speed_of_light_us(device)[0], 3)
    if lint is not None and lint.sol_us is not None:
        return lint.sol_us
    moved = final.task_facts.get("task_bytes")
    bandwidth = device.measured_dram_bytes_per_s or device.dram_bytes_per_s
    return round(1e6 * moved / bandwidth, 3) if moved else None
