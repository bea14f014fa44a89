"""`python -m benchmarks.check_quality [--seeds N] [--only WORD] [--out FILE]`: the proof, a line a kernel, and its JSON."""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.check_quality.honest import HONEST, shipped
from benchmarks.check_quality.kernels import Kernel, task
from benchmarks.check_quality.planted import PLANTED
from evaluator.checking.process import check
from evaluator.checking.types import CheckReport, CheckRequest, Verdict
from evaluator.types import DeviceSpec, Mode, Request, TaskSpec
from kernelskill.assembly import Options, choose_device
from kernelskill.tasks import load_task

RESULT = Path(__file__).resolve().parents[1] / "results" / "check_quality.json"


@dataclass(frozen=True)
class Bench:
    """Where and how the kernels are checked."""

    device: DeviceSpec
    mode: Mode
    folder: Path
    examples: int
    only: str
    part: tuple[int, int]
    """(i, n): every kernel belongs to one of n parts, and this is part i."""
    limit: float
    """Seconds that one check may take."""
    until: float
    """`time.monotonic()` after which no further kernel is begun."""

    def check(self, source: str, spec: TaskSpec, seed: int) -> CheckReport:
        """The check of one solution text."""
        path = self.folder / "solution.py"
        path.write_text(source, encoding="utf-8")
        request = Request(task=spec, solution=str(path), mode=self.mode, device=self.device, timeout_s=self.limit, seed=seed)
        return check(CheckRequest(request=request, examples=self.examples))

    def wanted(self, name: str) -> bool:
        """Whether the kernel of that name has its turn."""
        index, count = self.part
        mine = zlib.crc32(name.encode()) % count == index
        return mine and self.only in name and time.monotonic() < self.until


def planted_result(kernel: Kernel, report: CheckReport) -> dict[str, Any]:
    """Whether and how the fault was found."""
    hits = [v for v in report.violated() if v.property in kernel.properties and v.counterexample]
    others = sorted({v.property for v in report.violated()} - {v.property for v in hits})
    row: dict[str, Any] = {"kernel": kernel.name, "task": kernel.task, "found": bool(hits), "also_violated": others,
                           "minimal": kernel.minimal, "seconds": report.seconds, "calls": report.calls}
    if report.outcome == "refused":
        row["refused"] = report.message
    if hits:
        smallest = min((v.counterexample for v in hits if v.counterexample), key=lambda c: math.prod(c.example.sizes.values()))
        row |= {"property": [v.property for v in hits], "after": smallest.after, "shrunk": smallest.example.sizes,
                "values": smallest.example.values,
                "ratio": math.prod(smallest.example.sizes.values()) / math.prod(kernel.minimal.values())}
    return row


def honest_rows(bench: Bench, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """A row for every right kernel: violations over the seeds."""
    cases = [(kernel.name, kernel.source, task(kernel.task, bench.folder)) for kernel in HONEST]
    cases += [(name, file.read_text(encoding="utf-8"), load_task(example).spec) for name, file, example in shipped()]
    for name, source, spec in cases:
        if not bench.wanted(name):
            continue
        reports = [bench.check(source, spec, seed) for seed in seeds]
        wrong = sorted({_alarm(verdict) for report in reports for verdict in report.violated()})
        row = {"kernel": name, "task": spec.name, "seeds": len(reports), "false_alarms": wrong,
               "refused": [r.message for r in reports if r.outcome == "refused"],
               "calls": sum(r.calls for r in reports), "seconds": round(sum(r.seconds for r in reports), 1)}
        print(json.dumps(row), flush=True)
        yield row


def _alarm(verdict: Verdict) -> str:
    found = verdict.counterexample
    return f"{verdict.title}: {found.example}: {found.message}" if found else verdict.title


def planted_rows(bench: Bench, seed: int) -> Iterator[dict[str, Any]]:
    """A row for every planted fault."""
    for kernel in PLANTED:
        if bench.wanted(kernel.name):
            row = planted_result(kernel, bench.check(kernel.source, task(kernel.task, bench.folder), seed))
            print(json.dumps(row), flush=True)
            yield row


def main() -> None:
    """Runs the proof."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="seeds for the right kernels")
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    parser.add_argument("--part", default="0/1", help="0/3, 1/3, 2/3: a third of the kernels")
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--device", choices=["sim", "cuda"], default="sim")
    parser.add_argument("--limit", type=float, default=60, help="seconds that one check may take")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no kernel after that")
    parser.add_argument("--out", type=Path, default=None, help=f"e.g. {RESULT}")
    given = parser.parse_args()
    mode, device = choose_device(Options(device=given.device))
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(device, mode, Path(name), given.examples, given.only, _part(given.part), given.limit,
                      time.monotonic() + given.seconds)
        planted = list(planted_rows(bench, 0))
        honest = list(honest_rows(bench, range(given.seeds)))
    report = {"summary": summary(planted, honest, mode), "planted": planted, "honest": honest}
    print(json.dumps(report["summary"]))
    if given.out is not None:
        given.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _part(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    return int(index), int(count)


def summary(planted: Sequence[dict[str, Any]], honest: Sequence[dict[str, Any]], mode: Mode) -> dict[str, Any]:
    """The figures that the documentation quotes."""
    found = [row for row in planted if row["found"]]
    calls, seconds = (sum(row[key] for row in (*planted, *honest)) for key in ("calls", "seconds"))
    return {
        "mode": mode, "planted": len(planted), "found": len(found),
        "median_ratio": statistics.median([r["ratio"] for r in found] or [math.nan]),
        "median_examples_to_find": statistics.median([r["after"] for r in found] or [math.nan]), "honest": len(honest),
        "honest_checks": sum(r["seeds"] for r in honest), "false_alarms": sum(bool(r["false_alarms"]) for r in honest),
        "calls_per_second": round(calls / max(seconds, 1e-9), 1), "python": platform.python_version(),
    }


if __name__ == "__main__":
    main()
