"""The six examples optimised on the GPU, methods chosen by measured facts; what a record lacks comes first.

`python -m benchmarks.h200 examples [--only NAME...] [--budget SECONDS] [--folder RUNS] [--out FOLDER]` adds to
`results/h200/optimised_examples.json` (example_record.py says what it keeps), after every example. Runs in RUNS are gone on
with. When the budget is spent, runs that are under way are interrupted, and kept as far as they came.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Lock
from typing import Any

from benchmarks.examples import RESULTS, ROOT
from benchmarks.h200.example_record import PART, RECORD, Row, interval, merged, recorded, row_of, unfinished
from benchmarks.h200.provenance import provenance, write
from evaluator import pool
from evaluator.types import DeviceSpec, Request
from kernelskill.facts.device import detect_device
from kernelskill.memory.run import Run
from kernelskill.memory.store import solution_digest
from kernelskill.tasks import load_task

ORDER = ("row_sum", "layer_norm", "matmul", "bias_gelu", "transpose", "row_softmax")
LEAST_SECONDS = 45.0
"""No run is started with less: the start alone takes a third of it."""
SECONDS_A_TIMING = 8.0
STOP_SECONDS = 20.0
"""What a run that is told to stop may take for it."""
PARALLEL = 2
"""Runs at a time: one evaluates on the GPU, which an evaluation has for itself, while the other decides and writes."""
RUNNING: list[subprocess.Popen[str]] = []


def ordered(names: Sequence[str], record: Row) -> list[str]:
    """Examples without a run first, then those whose run was cut off, then the others."""
    return sorted(names, key=lambda name: (unfinished(record["examples"].get(name)) is False, name in record["examples"],
                                           ORDER.index(name)))


def optimise(name: str, folder: Path, rounds: int, until: float) -> float:
    """Plays or goes on with a run until `time.monotonic()` is `until`; its seconds. Raises RuntimeError where it failed."""
    began = time.monotonic()
    if (folder / "run.json").exists():
        what = ["--resume", str(folder)]
    else:
        what = [f"examples/{name}", "--device", "cuda", "--rounds", str(rounds), "--out", str(folder)]
    call = [sys.executable, "-m", "kernelskill", "optimize", *what, "--json"]
    process = subprocess.Popen(call, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    RUNNING.append(process)
    try:
        out, err = process.communicate(timeout=max(until - time.monotonic(), 1.0))
    except subprocess.TimeoutExpired:
        return time.monotonic() - began
    finally:
        stop(process)
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode}: {err[-2000:]}{out[-1000:]}")
    return time.monotonic() - began


def spent(path: Path, seconds: float) -> float:
    """Seconds of a run over all the times that it was gone on with, kept in a file beside it."""
    total = seconds + (float(path.read_text(encoding="utf-8")) if path.exists() else 0.0)
    path.write_text(f"{total}", encoding="utf-8")
    return total


def stop(process: subprocess.Popen[str]) -> None:
    """Interrupts a run that has not ended, which ends its evaluation too."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def terminated(*_: object) -> None:
    """A killed benchmark leaves nothing on the GPU."""
    for process in RUNNING:
        stop(process)
    sys.exit(128 + signal.SIGTERM)


class Result:
    """The record as it grows; written after every example."""

    def __init__(self, folder: Path, command: str) -> None:
        self.folder, self.made = folder, provenance(command)
        self.record = {name: dict(rows) for name, rows in recorded().items() if name in ("examples", "simulated")}
        self.simulated_provenance = recorded().get("simulated_provenance")
        self._lock = Lock()

    def add(self, name: str, row: Row) -> None:
        """One run."""
        with self._lock:
            self.record["examples"][name] = merged(self.record["examples"].get(name), {**row, "provenance": self._from()})
            self._write()

    def add_simulated(self, name: str, row: Row) -> None:
        """The simulator's solution, timed."""
        with self._lock:
            self.record["simulated"][name] = {**self.record["simulated"].get(name, {}), "best": {**row, **self._from()}}
            self._write()

    def _from(self) -> Row:
        return {name: self.made[name] for name in ("date", "commit", "device", "driver")}

    def _write(self) -> None:
        write(PART, self.made, {**self.record, "simulated_provenance": self.simulated_provenance}, self.folder)


def timed(name: str, device: DeviceSpec) -> Row:
    """The simulator's best solution, judged and timed once on the card."""
    path = RESULTS / "solutions" / name / "best.py"
    found = pool.evaluate(Request(task=load_task(ROOT / "examples" / name).spec, solution=str(path), mode="cuda", device=device,
                                  timeout_s=120, timed_only=True))
    median, low, high = interval(found.time) or (None, None, None)
    return {"solution": solution_digest(path.read_text(encoding="utf-8")), "status": [found.status.value],
            "message": found.message[:300], "time_us": median, "low_us": low, "high_us": high, "spread": "95 % interval"}


def main(argv: list[str]) -> int:
    """Exit code 0; 1 where an example failed."""
    options = arguments(argv)
    signal.signal(signal.SIGTERM, terminated)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what was started in the background ignores it, and so would runs
    device = detect_device()
    if device is None:
        raise SystemExit("no NVIDIA GPU here: this measurement needs one")
    until = time.monotonic() + options.budget
    result = Result(options.out, " ".join(["python -m benchmarks.h200 examples", *argv]))
    simulated = json.loads((RESULTS / "examples_sim.json").read_text(encoding="utf-8"))["examples"]
    failed = []

    def one(name: str, home: Path) -> str:
        if until - time.monotonic() < LEAST_SECONDS:
            return "left out: the budget is spent"
        seconds = spent(home / f"{name}.seconds", optimise(name, home / name, options.rounds, until))
        row = row_of(Run.open(home / name), seconds, simulated[name])
        if row is None:
            return "cut off before its first decision"
        result.add(name, row)
        return said(row)

    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(PARALLEL) as threads:
        home = options.folder or Path(temporary)
        home.mkdir(parents=True, exist_ok=True)
        tasks = {threads.submit(one, name, home): name for name in ordered(options.only, result.record)}
        for task in as_completed(tasks):
            error = task.exception()
            failed += [tasks[task]] if error else []
            print(f"{tasks[task]:<12} {error or task.result()}", flush=True)
    for name in options.only:
        if until - time.monotonic() > SECONDS_A_TIMING:
            result.add_simulated(name, timed(name, device))
    return int(bool(failed))


def said(row: Row) -> str:
    """A line for one example."""
    end = row["stop_reason"] if row["finished"] else "cut off"
    times = f"{row['start_us'][0]:.1f} us -> {row['best_us'][0]:.1f} us, {row['speedup']:.1f}x in {row['rounds']} rounds"
    cost = f"{end}; {row['cost']['evaluations']} evaluations in {row['cost']['wall_s']:.0f} s"
    return f"{times}, {cost}; {', '.join(row['methods'])}"


def arguments(argv: list[str]) -> Any:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.h200 examples", description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(ORDER), choices=ORDER, metavar="NAME")
    parser.add_argument("--budget", type=float, default=3600.0, metavar="SECONDS", help="stop after so many")
    parser.add_argument("--folder", type=Path, metavar="RUNS", help="keep the runs here, and go on with those that are there")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=RECORD.parent, metavar="FOLDER", help="write the record here")
    return parser.parse_args(argv)
