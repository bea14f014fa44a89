"""The six examples optimised on the GPU: methods chosen by measured facts, beside those that the simulator chose.

`python -m benchmarks.h200 examples [NAME ...] [--folder RUNS] [--rounds N]` writes `results/h200/optimised_examples.json`: per
example the times of start and best with their intervals, speed of light, methods, where the facts of the first and the last
decision come from, what the evaluations cost stage by stage, and, for the first round that differs from the simulator's run,
what the policy said of the simulator's method there.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from benchmarks.examples import EXAMPLES, RESULTS, ROOT
from benchmarks.h200.provenance import provenance, write
from evaluator.types import Evaluation, TimeEstimate
from kernelskill.memory.run import Run
from kernelskill.model import Decision, Fact
from kernelskill.policy.explain import why, why_not
from kernelskill.report.audit import rules_of

PART = "optimised_examples"
SHOWN = ("sol_time_us", "headroom", "nsight_bottleneck", "dram_throughput_pct", "launch_overhead_pct", "device_busy_pct")
"""Facts of the last decision that the record shows."""
PRINTED = ("start_us", "best_us", "methods", "attempted", "cost")
SECONDS_AN_EXAMPLE = 900
RUNNING: list[subprocess.Popen[str]] = []


def optimise(name: str, folder: Path, rounds: int, gpu: int) -> tuple[dict[str, Any], float]:
    """(what `optimize --json` said, seconds it took). Raises RuntimeError where the command failed."""
    began = time.monotonic()
    call = [sys.executable, "-m", "kernelskill", "optimize", f"examples/{name}", "--device", "cuda", "--rounds", str(rounds),
            "--out", str(folder), "--json"]
    variables = {**os.environ, "CUDA_VISIBLE_DEVICES": str(gpu)}
    process = subprocess.Popen(call, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables)
    RUNNING.append(process)
    try:
        out, err = process.communicate(timeout=SECONDS_AN_EXAMPLE)
    finally:
        stop(process)
    if process.returncode:
        raise RuntimeError(f"{name}: exit code {process.returncode}\n{err[-4000:]}{out[-2000:]}")
    report: dict[str, Any] = json.loads(out)
    return report, time.monotonic() - began


def stop(process: subprocess.Popen[str]) -> None:
    """Interrupts a run that has not ended, which ends its evaluation too."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait()


def terminated(*_: object) -> None:
    """A killed benchmark leaves nothing on the GPU."""
    for process in RUNNING:
        stop(process)
    sys.exit(128 + signal.SIGTERM)


def row_of(run: Run, report: dict[str, Any], seconds: float, simulated: dict[str, Any]) -> dict[str, Any]:
    """What the record keeps of one run."""
    evaluations = [run.graph.evaluation(run.graph.start), *(a.evaluation for a in run.graph.attempts if a.evaluation)]
    best, first, last = run.graph.evaluation(run.graph.best), run.decisions[0][2], run.decisions[-1][2]
    return {
        "status": report["status"], "finished": bool(run.stop_reason), "stop_reason": report["stop_reason"],
        "rounds": report["rounds"],
        "methods": report["methods"], "attempted": report["attempted"],
        "attempts": [{"method": a.method.method, "outcome": a.outcome, "gain": a.gain, "message": a.message[:300],
                      "time_us": a.evaluation.time.time_us if a.evaluation and a.evaluation.time else None}
                     for a in run.graph.attempts],
        "start_us": interval(evaluations[0].time), "best_us": interval(best.time), "speedup": report["speedup"],
        "known": {name: last.facts[name].value for name in SHOWN if name in last.facts},
        "provenance_first": sources(first.facts.values()), "provenance_last": sources(last.facts.values()),
        "unavailable": unavailable(evaluations), "cost": cost(evaluations, seconds),
        "decisions": [why(decision, "line") for _, _, decision in run.decisions],
        "simulator": simulator(run, [d for _, _, d in run.decisions], report["attempted"], simulated),
    }


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


def cost(evaluations: Sequence[Evaluation], seconds: float) -> dict[str, Any]:
    """Evaluations an hour, and where their seconds went."""
    stages: Counter[str] = Counter()
    for evaluation in evaluations:
        stages.update(evaluation.stage_seconds)
    return {"evaluations": len(evaluations), "wall_s": round(seconds, 1),
            "evaluations_per_hour": round(3600 * len(evaluations) / seconds, 1),
            "stage_s": {name: round(value, 2) for name, value in stages.most_common()}}


def simulator(run: Run, decisions: Sequence[Decision], attempted: Sequence[str], simulated: dict[str, Any]) -> dict[str, Any]:
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


def main(argv: list[str]) -> int:
    """Exit code 0, 1 where an example failed; the record is written after every example, for a run that is killed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.h200 examples", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(EXAMPLES))
    parser.add_argument("--folder", type=Path, help="keep the runs here")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--gpus", type=int, default=1, help="GPUs of this host to use, one example each at a time")
    parser.add_argument("--results", type=Path, help="write the record into this folder")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, terminated)
    record = provenance(" ".join(["python -m benchmarks.h200 examples", *argv]))
    simulated = json.loads((RESULTS / "examples_sim.json").read_text(encoding="utf-8"))["examples"]
    free: SimpleQueue[int] = SimpleQueue()
    for gpu in range(options.gpus):
        free.put(gpu)

    def one(name: str) -> tuple[str, dict[str, Any] | str]:
        folder, gpu = (options.folder or Path(temporary)) / name, free.get()
        try:
            report, seconds = optimise(name, folder, options.rounds, gpu)
            return name, row_of(Run.open(folder), report, seconds, simulated[name])
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return name, str(error)
        finally:
            free.put(gpu)

    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(options.gpus) as threads:
        for name, row in threads.map(one, options.names):
            rows[name] = row
            print(name, row if isinstance(row, str) else {key: row[key] for key in PRINTED}, flush=True)
            write(PART, record, {"examples": rows}, **({"folder": options.results} if options.results else {}))
    return int(any(isinstance(row, str) for row in rows.values()))
