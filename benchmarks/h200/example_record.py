"""`results/h200/optimised_examples.json`: what is known of the six examples on a GPU, and what of a run it keeps.

`examples` holds the runs whose methods were chosen by measured facts, `simulated` the solutions that the simulator chose
(`results/solutions/`, made by `make examples`), timed on the card; each with where it comes from.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.examples import RESULTS
from evaluator.baselines import speedup
from evaluator.types import Evaluation, TimeEstimate
from kernelskill.memory.run import Run
from kernelskill.model import Decision, Fact
from kernelskill.policy.explain import why, why_not
from kernelskill.report.audit import rules_of
from kernelskill.report.summary import attempt_rows, report_of

PART = "optimised_examples"
RECORD = RESULTS / "h200" / f"{PART}.json"
MEASURED = RESULTS / "h200" / "solutions"
"""Solutions of the record that `make examples` has since replaced."""
SHOWN = ("sol_time_us", "headroom", "nsight_bottleneck", "dram_throughput_pct", "launch_overhead_pct", "device_busy_pct")
"""Facts of the last decision that the record shows."""
REPORTED = ("status", "stop_reason", "rounds", "methods", "attempted", "speedup", "precision_class")
"""What the record takes from what `optimize --json` says."""
KEPT = ("method", "outcome", "gain", "status", "time_us")
"""What the record keeps of an attempt."""

Row = dict[str, Any]


def recorded() -> Row:
    """The committed record."""
    return dict(json.loads(RECORD.read_text(encoding="utf-8"))) if RECORD.exists() else {"examples": {}, "simulated": {}}


def solution(name: str, label: str) -> Path:
    """`start` or `best` solution of an example from the simulator, as it was measured."""
    measured = MEASURED / name / f"{label}.py"
    return measured if measured.exists() else RESULTS / "solutions" / name / f"{label}.py"


def unfinished(row: Row | None) -> bool:
    """Whether an example has no run yet, or one that was cut off."""
    return row is None or not row["finished"]


def merged(old: Row | None, new: Row) -> Row:
    """The run to keep of an example: a finished one, else the one that came further; of two the newer."""
    if old is None or new["finished"]:
        return new
    return old if old["finished"] or len(old["attempts"]) > len(new["attempts"]) else new


def row_of(run: Run, seconds: float, simulated: Row) -> Row | None:
    """What the record keeps of a run; None where it was cut off before its first decision.

    `simulated`: what `results/examples_sim.json` has of the example.
    """
    if not run.decisions or not run.graph.start:
        return None
    report, graph = report_of(run), run.graph
    evaluations = [graph.evaluation(graph.start), *(a.evaluation for a in graph.attempts if a.evaluation)]
    decisions = [decision for _, _, decision in run.decisions]
    first, last = decisions[0].facts, decisions[-1].facts
    return {
        **{name: report[name] for name in REPORTED},
        "finished": bool(run.stop_reason) and run.final is not None,
        "attempts": [{name: row[name] for name in KEPT} | {"message": row["message"][:300]} for row in attempt_rows(run)],
        "start_us": interval(evaluations[0].time), "best_us": interval(graph.evaluation(graph.best).time),
        "final": final_of(run.final[1]) if run.final else None,
        "known": {name: last[name].value for name in SHOWN if name in last},
        "provenance_first": sources(first.values()), "provenance_last": sources(last.values()),
        "unavailable": unavailable(evaluations), "cost": cost([*evaluations, *([run.final[1]] if run.final else [])], seconds),
        "decisions": [why(decision, "line") for decision in decisions],
        "simulator": simulator(run, decisions, report["attempted"], simulated),
    }


def final_of(evaluation: Evaluation) -> Row:
    """The winner on fresh samples, beside its baselines; speedups as [ratio, low, high]."""
    return {"status": evaluation.status.value, "us": interval(evaluation.time), "precision_class": evaluation.precision_class,
            "baselines": {row.name: {"us": interval(row.time), "speedup": speedup(row), "reason": row.reason}
                          for row in evaluation.baselines}}


def interval(time: TimeEstimate | None) -> list[float | None] | None:
    """[median, low, high] in us."""
    return None if time is None else [time.time_us, time.low_us, time.high_us]


def sources(facts: Iterable[Fact]) -> dict[str, int]:
    """Facts by provenance, what is not of this solution (history, writer, experience) left out."""
    counted = Counter(fact.provenance for fact in facts)
    return {name: count for name, count in counted.most_common() if name not in ("history", "writer", "experience")}


def unavailable(evaluations: Sequence[Evaluation]) -> list[str]:
    """Every reason for which a tool gave nothing though it was wanted, with how often."""
    counted = Counter(f"{tool}: {reason}" for e in evaluations for tool, reason in e.unavailable.items()
                      if not reason.startswith("not used"))
    return [f"{reason} ({count} evaluations)" for reason, count in counted.most_common()]


def cost(evaluations: Sequence[Evaluation], seconds: float) -> Row:
    """Evaluations an hour, and where their seconds went: in all, and of those that the tools looked into."""
    looked_into = [e for e in evaluations if e.profiles]
    return {"evaluations": len(evaluations), "profiled": len(looked_into), "wall_s": round(seconds, 1),
            "evaluations_per_hour": round(3600 * len(evaluations) / seconds, 1),
            "stage_s": _stages(evaluations), "profiled_stage_s": _stages(looked_into)}


def _stages(evaluations: Iterable[Evaluation]) -> dict[str, float]:
    stages: Counter[str] = Counter()
    for evaluation in evaluations:
        stages.update(evaluation.stage_seconds)
    return {name: round(value, 2) for name, value in stages.most_common()}


def simulator(run: Run, decisions: Sequence[Decision], attempted: Sequence[str], simulated: Row) -> Row:
    """The simulator's run of the same example; where the two part, what was chosen and why not the other's method."""
    theirs = simulated["attempted"]
    shorter = min(len(attempted), len(theirs))
    same = next((i for i in range(shorter) if attempted[i] != theirs[i]), shorter)
    found = {"attempted": theirs, "methods": simulated["methods"], "speedup_modelled": simulated["speedup"],
             "best_modelled_us": simulated["best_time_us"], "same_rounds": same}
    if same < len(decisions) and (same < len(theirs) or same < len(attempted)):
        found["here"] = why(decisions[same], "line")
        if same < len(theirs):
            found["why_not_theirs"] = why_not(decisions[same], theirs[same], rules_of(run))[:1500]
    return found
