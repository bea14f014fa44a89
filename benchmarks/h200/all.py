"""Every part within one budget, the most wanted first; a line for each, and each record written as soon as there is one.

`python -m benchmarks.h200 all [PART...] [--kernelbench DIR] [--out FOLDER] [--budget SECONDS] [--runs FOLDER]`. Without parts:
all of them, in the order and with the shares of the budget below. A part that takes longer is ended; what it has measured until
then is in its record, the rest stays as the committed record has it. Time that a part leaves is there for those after it.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.h200.provenance import RESULTS, ROOT

SHARES = {"examples": 480, "throughput": 150, "model": 120, "bench": 150, "sanitizer": 75, "probes": 60, "guards": 110,
          "timing": 270, "isolation": 120, "counters": 50, "check_quality": 100}
"""Seconds that each part is planned to take; the order in which they run."""
FOR_KERNELBENCH = frozenset({"bench", "guards", "timing"})
"""Parts that take a checkout of KernelBench; the bench is nothing without one."""
FOLDERS = {"examples": "examples", "bench": "bench"}
"""Parts that can be gone on with -> folder below --runs."""
GRACE_SECONDS = 30.0
"""What a part may take to end what it has begun when its budget is spent."""
STOP_SECONDS = 25.0
LOG, LAST_LINES = "all.log", 3


def main(argv: list[str]) -> int:
    """Exit code 0 where every part ended by itself and with 0."""
    options = arguments(argv)
    until = time.monotonic() + options.budget
    options.out.mkdir(parents=True, exist_ok=True)
    good = True
    for position, part in enumerate(options.parts):
        left = until - time.monotonic()
        seconds = allotted(options.parts[position:], left)
        if seconds < 1:
            print(f"{part:<11} left out: the budget is spent", flush=True)
            good = False
            continue
        good &= run(part, seconds, min(left, seconds + GRACE_SECONDS), options)
    return 0 if good else 1


def allotted(parts: Sequence[str], left: float) -> float:
    """Seconds for the first of `parts`, which have `left` together: its share, all of it where the others leave more."""
    others = sum(SHARES[part] for part in parts[1:])
    return max(min(left - GRACE_SECONDS, max(SHARES[parts[0]] * left / (SHARES[parts[0]] + others), left - others)), 0.0)


def run(part: str, seconds: float, limit: float, options: argparse.Namespace) -> bool:
    """One part in a process of its own, ended after `limit` seconds; whether it ended by itself and with 0."""
    call = [sys.executable, "-m", "benchmarks.h200", part, "--budget", f"{seconds:.0f}", "--out", str(options.out)]
    if options.kernelbench and part in FOR_KERNELBENCH:
        call += ["--kernelbench", str(options.kernelbench)]
    if part in FOLDERS:
        call += ["--folder", str(options.runs / FOLDERS[part])]
    began, log = time.monotonic(), options.out / LOG
    before = log.stat().st_size if log.exists() else 0
    with log.open("ab") as file:
        process = subprocess.Popen(call, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)
        code = ended(process, limit)
    took = time.monotonic() - began
    how = "cut off" if code is None else "ok" if code == 0 else f"exit code {code}"
    text = log.read_bytes()[before:].decode(errors="replace")
    said = " | ".join(line[:160] for line in text.splitlines()[-LAST_LINES:])
    print(f"{part:<11} {how:<12} {took:5.0f} s of {seconds:.0f}  {said}", flush=True)
    return code == 0


def ended(process: subprocess.Popen[bytes], limit: float) -> int | None:
    """The exit code; None where the process had to be ended."""
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return None


def arguments(argv: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.h200 all", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(SHARES)}")
    parser.add_argument("--kernelbench", type=Path, metavar="DIR", help="a checkout of KernelBench")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FOLDER", help="write the records and all.log here")
    parser.add_argument("--budget", type=float, default=float(sum(SHARES.values())), metavar="SECONDS")
    parser.add_argument("--runs", type=Path, default=Path(tempfile.gettempdir()) / "kernelskill-runs", metavar="FOLDER",
                        help="runs of the examples and the bench are kept here, and gone on with")
    options = parser.parse_args(argv)
    unknown = [part for part in options.parts if part not in SHARES]
    if unknown:
        parser.error(f"no part is called {unknown[0]!r}; there are: {', '.join(SHARES)}")
    options.parts = options.parts or [part for part in SHARES if part != "bench" or options.kernelbench]
    return options
