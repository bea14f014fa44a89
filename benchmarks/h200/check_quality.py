"""Planted faults that `kernelskill check` finds on the card, their counterexample programs run there, and right kernels.

`python -m benchmarks.h200 check_quality [--budget SECONDS] [--only WORD] [--examples N] [--out FOLDER] [--sim]`. Several checks
run at a time; none begins once the budget but for the programs is spent. What a GPU does not show (a race that gives right
values, an order of blocks) is counted apart.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.check_quality.corpus import Entry, entries
from benchmarks.check_quality.rows import Row, row_of, table_of
from benchmarks.h200.provenance import RESULTS, Record
from evaluator.checking.process import check
from evaluator.checking.types import CheckReport, CheckRequest
from evaluator.types import DeviceSpec, Mode, Request
from kernelskill.facts.device import detect_device, load_device

PART = "check_quality"
WORKERS = 12
CHECK_SECONDS, PROGRAM_SECONDS = 20.0, 25.0
"""Limits of one check and of one program."""
PROGRAMS_SHARE = 0.2
"""Of the budget, for the programs that are left when the last check ends."""
ONLY_SIMULATED = {"synchronisation", "block_order"}
"""Properties that a GPU run cannot judge."""
SHOWN_BY_VALUES = {"agreement", "written", "special_values", "calls", "inputs", "relation", "layouts"}
"""Properties whose programs end with exit code 1 on a GPU; a stray access may end in an error or in nothing at all."""


def main(argv: list[str]) -> int:
    """Exit code 0 where every fault that a GPU can show was found, its program showed it, and nothing right was blamed."""
    options = _arguments(argv)
    mode: Mode = "sim" if options.sim else "cuda"
    device = load_device("h200") if options.sim else detect_device()
    if device is None:
        print("check_quality: no NVIDIA GPU here; --sim checks in the simulator", file=sys.stderr)
        return 1
    until = time.monotonic() + options.budget * (1 - PROGRAMS_SHARE)
    record = Record(PART, " ".join(["python -m benchmarks.h200 check_quality", *argv]), options.out)
    with tempfile.TemporaryDirectory() as name:
        wanted = [entry for entry in entries(Path(name)) if options.only in entry.name]
        # In an order of its own, so that what a spent budget cuts off is no family.
        wanted.sort(key=lambda entry: zlib.crc32(entry.name.encode()))
        with ThreadPoolExecutor(min(WORKERS, os.cpu_count() or 1)) as workers:
            made = workers.map(lambda entry: checked(entry, device, mode, options.examples, until), wanted)
            rows = [row for row in made if row]
    result = summary(rows, len(wanted))
    record.put("summary", result)
    for kind in ("planted", "honest"):
        record.put(kind, sorted((row for row in rows if row["kind"] == kind), key=lambda row: str(row["kernel"])))
    print("\n".join(table_of(rows)), result, sep="\n")
    return 0 if not (result["missed"] or result["blamed"] or result["programs_that_show_nothing"]) else 1


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.h200 check_quality", description=__doc__)
    parser.add_argument("--budget", type=float, default=100.0, help="seconds for all of it")
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    parser.add_argument("--examples", type=int, default=20, help="random examples of a check")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the record")
    parser.add_argument("--sim", action="store_true", help="in the simulator, without a GPU")
    return parser.parse_args(argv)


def checked(entry: Entry, device: DeviceSpec, mode: Mode, examples: int, until: float) -> Row | None:
    """The row of one kernel, its program run where it has one; None once the time is over."""
    if time.monotonic() > until:
        return None
    with tempfile.TemporaryDirectory() as name:
        solution = Path(name) / "solution.py"
        solution.write_text(entry.source, encoding="utf-8")
        request = Request(task=entry.task, solution=str(solution), mode=mode, device=device, timeout_s=CHECK_SECONDS, seed=0)
        report = check(CheckRequest(request=request, examples=examples))
        row = row_of(entry, report, 0, examples) | {"seconds": report.seconds}
        if entry.kernel is not None:
            row["visible"] = bool(set(entry.kernel.properties) - ONLY_SIMULATED)
            row |= {"programs": list(programs(report, solution, mode))}
    print(f"{entry.kind} {entry.name}: {row.get('property') or row.get('false_alarms') or row.get('refused', '-')}", flush=True)
    return row


def programs(report: CheckReport, solution: Path, mode: Mode) -> Iterator[dict[str, Any]]:
    """Every counterexample's program, run as its reader would: property, exit code, the end of what it printed."""
    for number, verdict in enumerate(report.violated()):
        text = verdict.counterexample.reproduction if verdict.counterexample else ""
        if not text or mode == "sim":  # it needs CuPy or torch on a GPU
            continue
        path = solution.with_name(f"program_{number}.py")
        path.write_text(text, encoding="utf-8")
        try:
            ran = subprocess.run([sys.executable, str(path), str(solution)], capture_output=True, text=True, check=False,
                                 timeout=PROGRAM_SECONDS, cwd=solution.parent)
            code, said = ran.returncode, (ran.stdout + ran.stderr).strip()[-300:]
        except subprocess.TimeoutExpired:
            code, said = None, "no end"
        yield {"property": verdict.property, "exit_code": code, "said": said.replace(str(solution.parent), ".")}


def summary(rows: Sequence[Row], wanted: int) -> dict[str, Any]:
    """The figures that the documentation quotes."""
    planted, honest = ([row for row in rows if row["kind"] == kind] for kind in ("planted", "honest"))
    visible = [row for row in planted if row["visible"]]
    ran = [(row["kernel"], program) for row in planted for program in row["programs"]]
    silent = sorted({name for name, program in ran if program["property"] in SHOWN_BY_VALUES and program["exit_code"] != 1})
    return {
        "kernels": wanted, "cut_off": wanted - len(rows), "planted": len(planted), "visible_on_a_gpu": len(visible),
        "found": sum(row["found"] for row in visible), "missed": [row["kernel"] for row in visible if not row["found"]],
        "found_though_only_the_simulator_can_judge": sum(row["found"] for row in planted if not row["visible"]),
        "honest": len(honest), "blamed": [row["kernel"] for row in honest if row["false_alarms"]],
        "refused": [row["kernel"] for row in rows if "refused" in row],
        "programs": len(ran), "programs_that_show_nothing": silent,
        "seconds_most": max((row["seconds"] for row in rows), default=0.0),
    }
