"""Every guard case (tests/guards) on the card, and KernelBench's own adversarial ones; cheats that pass beside honest times."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.guard_cases import NO_GAIN, ROOT, Case, load_cases
from benchmarks.h200.provenance import RESULTS, committed, provenance, write
from benchmarks.kernelbench_adversarial import MATMUL, TRANSLATIONS, Adversary, adversaries, checkout_folder
from evaluator import pool
from evaluator.types import DeviceSpec, Evaluation, Mode, Status
from kernelskill.facts.device import detect_device, load_device

Row = dict[str, Any]
WORKERS = 12
"""Verifications at a time; each has a core of its own."""


def main(argv: list[str]) -> int:
    """`python -m benchmarks.h200 guards [--kernelbench DIR] [--budget SECONDS] [--out FOLDER] [--only NAME,...] [--sim]`.

    Exit code 1 where a verdict is wrong. Cases that are not judged again stay as the committed record has them.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.h200 guards", description=__doc__)
    parser.add_argument("--kernelbench", type=Path, default=checkout_folder(), metavar="DIR", help="a checkout of KernelBench")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--budget", type=float, default=1e9, help="start nothing more after so many seconds")
    parser.add_argument("--only", default="", help="names of cases, comma-separated")
    parser.add_argument("--sim", action="store_true", help="in the simulator, without a GPU")
    options = parser.parse_args(argv)
    mode: Mode = "sim" if options.sim else "cuda"
    device = load_device("h200") if options.sim else detect_device()
    if device is None:
        print("guards: no NVIDIA GPU here; --sim judges in the simulator", file=sys.stderr)
        return 1
    only = set(filter(None, options.only.split(",")))
    result, until = Result(mode, options.out), time.monotonic() + options.budget
    cases = [case for case in load_cases() if case.accepted(mode) and (not only or case.file in only)]
    result.add("cases", judged([case for case in cases if not case.timed], device, mode, WORKERS, result.rows["cases"]))
    for case in sorted((case for case in cases if case.timed), key=lambda case: not case.honest):  # cheats are compared
        if time.monotonic() < until:
            result.add("cases", judged([case], device, mode, 1, result.rows["cases"]))
    if options.kernelbench and not only and time.monotonic() < until:
        kernelbench(options.kernelbench.resolve(), device, mode, result)
    print(f"{sum(map(len, result.rows.values()))} cases, wrong: {', '.join(result.wrong) or 'none'}")
    return 1 if result.wrong else 0


class Result:
    """What was found so far; written after every step, so that a run that is cut off leaves it."""

    def __init__(self, mode: Mode, folder: Path) -> None:
        self.made = provenance("python -m benchmarks.h200 guards")
        self.mode, self.folder = mode, folder
        before = committed("guards") if mode == "cuda" else {}
        names = {case.file for case in load_cases()}
        self.rows: dict[str, list[Row]] = {part: before.get(part, []) for part in ("cases", "kernelbench")}
        self.rows["cases"] = [row for row in self.rows["cases"] if row["file"] in names]

    @property
    def wrong(self) -> list[str]:
        """Names of the cases whose verdict disagrees."""
        return [row["file"] for rows in self.rows.values() for row in rows if row["wrong"]]

    def add(self, part: str, rows: Sequence[Row]) -> None:
        """More rows of one part."""
        fresh = {row["file"]: {**row, "date": self.made["date"], "commit": self.made["commit"]} for row in rows}
        kept = [fresh.pop(row["file"], row) for row in self.rows[part]]
        self.rows[part] = [*kept, *fresh.values()]
        for row in rows:
            verdict = f"{'WRONG' if row['wrong'] else 'ok':<6}{row['file']:<44}{row['status']:<20}{row['seconds']:5.1f} s "
            print(f"{verdict}{row['time_us'] or 0:9.1f} us  {row['wrong'][:300] or row['message'][:100]}", flush=True)
        write("guards", self.made, {"mode": self.mode, **self.rows, "wrong": self.wrong}, self.folder)


def judged(cases: Sequence[Case], device: DeviceSpec, mode: Mode, workers: int, before: Sequence[Row]) -> list[Row]:
    """A row for each case, up to `workers` judged at a time."""
    began = time.monotonic()
    evaluations = pool.evaluate_many([case.request(device, mode) for case in cases], workers)
    seconds = (time.monotonic() - began) / max(len(cases), 1)
    rows = []
    for case, evaluation in zip(cases, evaluations, strict=True):
        row = row_of(case.file, evaluation, seconds, case.disagreement(evaluation, mode))
        row |= {"kinds": list(case.kinds), "honest": case.honest, "expected": [s.value for s in case.accepted(mode)]}
        if evaluation.status is Status.PASSED and not row["wrong"]:
            row["wrong"] = gained(row["time_us"], case.no_gain, before)
        rows.append(row)
    return rows


def row_of(name: str, evaluation: Evaluation, seconds: float, wrong: str) -> Row:
    """What every row holds."""
    return {
        "file": name, "status": evaluation.status.value, "message": evaluation.message.replace(f"{ROOT}/", "")[:400],
        "seconds": round(seconds, 2),
        "time_us": evaluation.time.time_us if evaluation.time else None, "precision_class": evaluation.precision_class,
        "stage_seconds": evaluation.stage_seconds, "wrong": wrong,
    }


def gained(time_us: float | None, honest: str, before: Sequence[Row]) -> str:
    """Why a cheat that passes is still wrong: it was timed faster than honest work; "" otherwise."""
    honest_us = next((row["time_us"] for row in before if row["file"] == honest), None)
    if honest_us and time_us and time_us < NO_GAIN * honest_us:
        return f"timed at {time_us:.1f} us, the honest {honest} at {honest_us:.1f} us"
    return ""


def kernelbench(checkout: Path, device: DeviceSpec, mode: Mode, result: Result) -> None:
    """KernelBench's adversaries; the time of the one that uses another stream, beside the same product on the current one."""
    with tempfile.TemporaryDirectory() as home:
        found = list(adversaries(checkout))
        began = time.monotonic()
        requests = [adversary.request(checkout, Path(home), device, mode) for adversary in found]
        evaluations = pool.evaluate_many(requests, WORKERS)
        seconds = (time.monotonic() - began) / len(found)
        result.add("kernelbench", [row_of(adversary.name, evaluation, seconds, adversary.disagreement(evaluation))
                                   for adversary, evaluation in zip(found, evaluations, strict=True)])
        if mode == "sim":
            return
        for name, honest in (("default_stream", ""), ("non_default_stream", "default_stream_timed")):
            source = (TRANSLATIONS / f"{name}.py").read_text(encoding="utf-8")
            allowed = Adversary(name=f"{name}_timed", source=source, task=MATMUL, accepted=(Status.PASSED,), allow=("matmul",))
            request = allowed.request(checkout, Path(home), device, mode)
            began = time.monotonic()
            evaluation = pool.evaluate(request.model_copy(update={"stages": ("verify", "profile"), "timed_only": True}))
            row = row_of(allowed.name, evaluation, time.monotonic() - began, "")
            # Unsynchronised work may also be caught as a wrong output, which is as good.
            row["wrong"] = gained(row["time_us"], honest, result.rows["kernelbench"])
            result.add("kernelbench", [row])
