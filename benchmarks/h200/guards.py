"""Every guard case (tests/guards) on the card: its verdict; where a cheat passes, its time beside an honest solution's."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.guard_cases import Case, load_cases
from benchmarks.h200.provenance import RESULTS, provenance, write
from evaluator import pool
from evaluator.types import DeviceSpec, Evaluation, Mode, Status
from kernelskill.facts.device import detect_device, load_device

Rows = list[dict[str, Any]]
WORKERS = 8
NO_GAIN = 0.8
"""A cheat that passes must take at least this share of the honest solution's time."""


def main(argv: list[str]) -> int:
    """`python -m benchmarks.h200 guards [FOLDER] [--sim] [--only NAME,...]`; 1 where a case disagrees."""
    mode: Mode = "sim" if "--sim" in argv else "cuda"
    words = [word for word in argv if not word.startswith("-")]
    only = set(words.pop().split(",")) if "--only" in argv else set()
    folder = Path(words[0]) if words else RESULTS
    device = load_device("h200") if mode == "sim" else detect_device()
    if device is None:
        print("guards: no NVIDIA GPU here; --sim judges in the simulator", file=sys.stderr)
        return 1
    record = provenance("python -m benchmarks.h200 guards")
    rows: Rows = []
    cases = [case for case in load_cases() if case.accepted(mode) and (not only or case.file in only)]
    # Honest ones first: cheats are compared with them.
    alone = sorted((case for case in cases if case.timed), key=lambda case: not case.honest)
    for group, workers in ([case for case in cases if not case.timed], WORKERS), *(([case], 1) for case in alone):
        rows += judge(group, device, mode, workers, rows)
        write("guards", record, {"mode": mode, "cases": rows, "wrong": [row["file"] for row in rows if row["wrong"]]}, folder)
    disagree = [row["file"] for row in rows if row["wrong"]]
    print(f"{len(rows)} cases, wrong: {', '.join(disagree) or 'none'}")
    return 1 if disagree else 0


def judge(cases: Sequence[Case], device: DeviceSpec, mode: Mode, workers: int, before: Rows) -> Rows:
    """A row for each case, up to `workers` judged at a time."""
    began = time.monotonic()
    evaluations = pool.evaluate_many([case.request(device, mode) for case in cases], workers)
    seconds = (time.monotonic() - began) / max(len(cases), 1)
    return [row_of(case, evaluation, mode, seconds, before) for case, evaluation in zip(cases, evaluations, strict=True)]


def row_of(case: Case, evaluation: Evaluation, mode: Mode, seconds: float, before: Rows) -> dict[str, Any]:
    """One case's row."""
    row: dict[str, Any] = {
        "file": case.file, "kinds": list(case.kinds), "honest": case.honest, "expected": [s.value for s in case.accepted(mode)],
        "status": evaluation.status.value, "message": evaluation.message[:400], "seconds": round(seconds, 2),
        "time_us": evaluation.time.time_us if evaluation.time else None, "time_unavailable": evaluation.time_unavailable[:300],
        "precision_class": evaluation.precision_class, "stage_seconds": evaluation.stage_seconds,
    }
    row["wrong"] = case.disagreement(evaluation, mode)
    if evaluation.status is Status.PASSED and not row["wrong"]:
        row["wrong"] = gained(case, row, before)
    verdict = f"{'WRONG' if row['wrong'] else 'ok':<6}{case.file:<34}{row['status']:<20}{row['seconds']:5.1f} s "
    print(f"{verdict}{row['time_us'] or 0:9.1f} us  {row['wrong'][:300] or row['message'][:100]}", flush=True)
    return row


def gained(case: Case, row: dict[str, Any], before: Rows) -> str:
    """Why a cheat that passes is still wrong: it was timed faster than honest work; "" otherwise."""
    honest = next((other["time_us"] for other in before if other["file"] == case.no_gain), None)
    if honest and row["time_us"] and row["time_us"] < NO_GAIN * honest:
        return f"timed at {row['time_us']:.1f} us, the honest {case.no_gain} at {honest:.1f} us"
    return ""
