"""Nsight Compute's full set beside the sections that facts come from: the same facts, and what each costs.

`python -m benchmarks.h200 counters [--budget SECONDS] [--out FOLDER]` adds to `results/h200/counters.json`. Counters of two
runs of one kernel differ a little; a fact that only one set gives is what must not be.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, get_args

from benchmarks.examples import RESULTS as SOLUTIONS
from benchmarks.examples import ROOT
from benchmarks.h200.provenance import RESULTS, Record
from evaluator import pool
from evaluator.types import CounterSet, DeviceSpec, Evaluation, Request
from kernelskill.facts import collect
from kernelskill.facts.device import detect_device
from kernelskill.facts.nsight import COUNTERS
from kernelskill.tasks import load_task

PART = "counters"
EXAMPLES = ("matmul", "row_softmax")
"""Solutions with shared memory, and with warp shuffles."""
CLOSE = 0.05
"""Relative difference of two runs' counters that needs no look."""


def main(argv: list[str]) -> int:
    """Exit code 0 where both sets gave the same facts."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.h200 {PART}", description=__doc__)
    parser.add_argument("--budget", type=float, default=1e9, help="start nothing more after so many seconds")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    device = detect_device()
    if device is None:
        raise SystemExit("no NVIDIA GPU here: this measurement needs one")
    record = Record(PART, " ".join(["python -m benchmarks.h200", PART, *argv]), options.out)
    until = time.monotonic() + options.budget
    for name in EXAMPLES:
        if time.monotonic() < until:
            row = compared(name, device)
            record.add("examples", {name: row})
            print(name, row, flush=True)
    rows = record.kept.get("examples", {}).values()
    return int(any(row["only_full"] or row["only_facts"] or not row["facts"] for row in rows))


def compared(name: str, device: DeviceSpec) -> dict[str, Any]:
    """One example's solution under both sets."""
    found = {counter_set: measured(name, counter_set, device) for counter_set in get_args(CounterSet)}
    reasons = {counter_set: evaluation.unavailable for counter_set, evaluation in found.items()}
    full, facts = (by_ncu(name, found[counter_set], device) for counter_set in ("full", "facts"))
    return {
        "facts": len(facts), "only_full": sorted(full.keys() - facts.keys()), "only_facts": sorted(facts.keys() - full.keys()),
        "differ": {name: [full[name], value] for name, value in facts.items() if name in full and differ(full[name], value)},
        "seconds": {counter_set: evaluation.stage_seconds.get("counters") for counter_set, evaluation in found.items()},
        "metrics": {counter_set: max((len(p.metrics) for p in evaluation.profiles), default=0)
                    for counter_set, evaluation in found.items()},
        "unavailable": {counter_set: reason for counter_set, reason in reasons.items() if reason},
    }


def measured(name: str, counter_set: CounterSet, device: DeviceSpec) -> Evaluation:
    """The simulator's best solution of an example, with its counters."""
    return pool.evaluate(Request(
        task=load_task(ROOT / "examples" / name).spec, solution=str(SOLUTIONS / "solutions" / name / "best.py"), mode="cuda",
        device=device, timeout_s=120, counters=COUNTERS, counter_set=counter_set))


def by_ncu(name: str, evaluation: Evaluation, device: DeviceSpec) -> dict[str, Any]:
    """The facts that the counters give."""
    source = (SOLUTIONS / "solutions" / name / "best.py").read_text(encoding="utf-8")
    facts = collect(load_task(ROOT / "examples" / name), source, evaluation, device)
    return {fact: known.value for fact, known in facts.items() if known.provenance == "ncu"}


def differ(first: Any, second: Any) -> bool:
    """Whether two values of a fact need a look."""
    if isinstance(first, (int, float)) and isinstance(second, (int, float)) and not isinstance(first, bool):
        return abs(first - second) > CLOSE * max(abs(first), abs(second))
    return bool(first != second)
