"""Speedups in words: against what, how precise, on which card, with which spread, measured or modelled. Never a bare number."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from evaluator.baselines import best_torch, speedup
from evaluator.gpu_state import slowed
from evaluator.statistics import ratio_of
from evaluator.types import BaselineTime, Evaluation, TimeEstimate
from kernelskill.report.console import ratio_text, time_text

HOW = {"modelled": "modelled", "cuda_event": "measured", "cuda_graph": "measured as graph replay"}


def claim(ratio: float | None, against: str, evaluation: Evaluation | None, interval: tuple[float, float] | None = None) -> str:
    """`3.10× (3.05 to 3.16) over the start; fp32, measured on NVIDIA H200`; `–` without a ratio."""
    if ratio is None or evaluation is None or evaluation.time is None:
        return "–"
    spread = f" ({interval[0]:.2f} to {interval[1]:.2f})" if interval else ""
    where = "for" if evaluation.environment.simulated else "on"
    return (f"{ratio_text(ratio)}{spread} over {against}; {evaluation.precision_class or 'precision not measured'}, "
            f"{HOW[evaluation.time.provenance]} {where} {evaluation.environment.device}")


def spread_text(estimate: TimeEstimate) -> str:
    """A time, and where it was measured its 95 % interval and samples."""
    if estimate.low_us is None or estimate.high_us is None:
        return time_text(estimate.time_us)
    return (f"{time_text(estimate.time_us)} ({time_text(estimate.low_us)} to {time_text(estimate.high_us)}, "
            f"{estimate.samples} samples)")


def interval_of(first: TimeEstimate | None, second: TimeEstimate | None) -> tuple[float, float] | None:
    """95 % interval of the ratio of two measured times; None for modelled ones."""
    if first is None or second is None or "modelled" in (first.provenance, second.provenance):
        return None
    _, low, high = ratio_of(first, second)
    return low, high


def headline(evaluation: Evaluation) -> str:
    """The speedup over the best PyTorch baseline of at least the same precision, or why there is none."""
    row = best_torch(evaluation)
    if row is not None:
        found = speedup(row)
        assert found is not None
        return claim(found[0], f"{row.name} ({row.precision_class}), the fastest torch at this precision or better", evaluation,
                     found[1:])
    if any(row.time for row in evaluation.baselines if row.name != "naive_start"):
        return f"no torch baseline is as precise as this solution ({evaluation.precision_class})"
    return ""


def final_report(evaluation: Evaluation) -> dict[str, Any]:
    """A final measurement as JSON: times in µs, speedups with their 95 % intervals, each baseline by name."""
    best = best_torch(evaluation)
    return {
        "status": evaluation.status.value, "message": evaluation.message, **_time(evaluation.time),
        "precision_class": evaluation.precision_class, "precision_ratio": evaluation.precision_ratio,
        "graph_replay": _time(evaluation.graph_time) or None, "device": evaluation.environment.device,
        "best_torch": best.name if best else None,
        "speedup_over_best_torch": _speedup(best) if best else None,
        "baselines": [_row(row) for row in evaluation.baselines],
        "held_back": list(slowed(*evaluation.gpu_states[:1], *evaluation.gpu_states[-1:])) if evaluation.gpu_states else [],
    }


def baseline_table(evaluation: Evaluation) -> Table:
    """Every baseline that has a time: its precision, and the solution's speedup over it, taken in turns."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("baseline", "precision", "time", "as graph", "speedup (95 %)"):
        table.add_column(name, justify="right" if name in ("time", "as graph") else "left", no_wrap=True)
    for row in evaluation.baselines:
        found = speedup(row)
        if row.time and found:
            graph = time_text(row.graph_time.time_us) if row.graph_time else "–"
            table.add_row(row.name, row.precision_class or "–", time_text(row.time.time_us), graph,
                          f"{ratio_text(found[0])} ({found[1]:.2f} to {found[2]:.2f})")
    return table


def missing_lines(evaluation: Evaluation) -> list[str]:
    """The baselines without a time, and why."""
    return [f"no time for {row.name}: {row.reason[:300]}" for row in evaluation.baselines if row.time is None]


def _row(row: BaselineTime) -> dict[str, Any]:
    return {"name": row.name, "flags": row.flags, "precision_class": row.precision_class, **_time(row.time),
            "graph_replay": _time(row.graph_time) or None, "solution_in_turns": _time(row.solution_time) or None,
            "speedup": _speedup(row), "reason": row.reason}


def _speedup(row: BaselineTime) -> dict[str, float] | None:
    found = speedup(row)
    return dict(zip(("ratio", "low", "high"), found, strict=True)) if found else None


def _time(estimate: TimeEstimate | None) -> dict[str, Any]:
    if estimate is None:
        return {}
    return {"time_us": estimate.time_us, "low_us": estimate.low_us, "high_us": estimate.high_us, "samples": estimate.samples,
            "provenance": estimate.provenance}
