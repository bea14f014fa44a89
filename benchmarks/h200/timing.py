"""Timing on the card: noise floor, events against graph replay, planted cheats, PyTorch baselines of examples and KernelBench.

`python -m benchmarks.h200 timing [--kernelbench DIR] [--budget SECONDS] [--out FOLDER] [cheats] [noise] [graph] [baselines]`
"""

from __future__ import annotations

import argparse
import multiprocessing
import secrets
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.h200.provenance import RESULTS, ROOT, Record
from evaluator import pool
from evaluator.baselines import BASELINES, START, expected_at
from evaluator.judge_timing import Session
from evaluator.measure import reference_rows
from evaluator.oracle import load_oracle
from evaluator.profile_sim import full_problem
from evaluator.runner import Runner
from evaluator.statistics import compare
from evaluator.types import BaselineName, BaselineTime, DeviceSpec, Evaluation, Request, TaskSpec, TimeEstimate
from kernelskill.facts.device import detect_device
from kernelskill.tasks import load_task

EXAMPLES = ("bias_gelu", "row_softmax", "row_sum", "transpose", "matmul", "layer_norm")
KERNELBENCH_EXAMPLES = ("softmax", "bias_gelu", "linear_relu")
PROBLEMS = (
    "level1/1_", "level1/23_", "level1/50_", "level2/12_", "level2/14_", "level3/1_",
)
"""A matrix product, a softmax, a convolution, two fused products, a small network."""
TINY = """
import numpy as np
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32)}
def reference(x):
    return x + 1
"""
KERNEL = '''
import cupy as cp
import numpy as np

CODE = r"""
extern "C" __global__ void plus_one(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1.f;
}
"""
kernel = cp.RawKernel(CODE, "plus_one")
calls = [0]
stream = []


def launch(x, y):
    kernel(((x.size + 255) // 256,), (256,), (x, y, np.int32(x.size)))


def run(x):
    y = cp.empty_like(x)
    launch(x, y)
    return y
'''
CALL = "    launch(x, y)\n    return"
SKIPS = KERNEL.replace(CALL, "    calls[0] += 1\n    if calls[0] < 40:\n        launch(x, y)\n    return")
"""Right while it is verified, warmed up and timed for the first times; then it leaves its output as it is."""
BODY = "    y = cp.empty_like(x)\n    launch(x, y)\n    return y"
COUNTS = KERNEL.replace("calls = [0]", "calls = [0, None]").replace(BODY, """
    calls[0] += 1
    if calls[0] < %d or calls[1].size != x.size:
        calls[1] = cp.empty_like(x)
        launch(x, calls[1])
    return calls[1]""")
"""Right for some number of calls; then it returns the last output again."""
ASIDE = KERNEL.replace(CALL, """
    if not stream:
        stream.append(cp.cuda.Stream(non_blocking=True))
    stream[0].use()
    launch(x, y)
    cp.cuda.Stream.null.use()
    return""")
"""Works on a stream that the default one does not wait for."""
CHEATS = {"honest": KERNEL, "skips_timed_work": SKIPS, "warm_up_counter": COUNTS % 60, "waits_for_300_calls": COUNTS % 300,
          "works_on_another_stream": ASIDE}
QUICK: tuple[BaselineName, ...] = ("torch_eager_tf32", "torch_compile", "torch_compile_tf32", "cuda_graph_eager")
"""Baselines that need no tuning by trial."""
Save = Callable[[dict[str, Any]], None]
"""Takes rows into the record."""


def noise(device: DeviceSpec, save: Save, until: float) -> None:
    """The same solution in two processes, in turns; and in two evaluations, one after the other."""
    for name in EXAMPLES:
        if time.monotonic() > until:
            return
        spec = load_task(ROOT / "examples" / name).spec
        request = _request(spec, ROOT / "benchmarks" / "results" / "solutions" / name / "best.py", device)
        rows = {f"{name}: two processes in turns": _compared(*_in_turns(request))}
        times = [each.time for each in (pool.evaluate(request) for _ in range(2)) if each.time]
        if len(times) == 2:
            rows[f"{name}: two evaluations"] = _compared(*times)
        save(rows)


def graph(device: DeviceSpec, save: Save, until: float) -> None:
    """Events and graph replay of one small kernel, at sizes from launch-bound to bandwidth-bound."""
    for n in (1 << 10, 1 << 16, 1 << 20, 1 << 24):
        if time.monotonic() < until:
            save({str(n): _measured(_tiny(KERNEL, n, device))})


def cheats(device: DeviceSpec, save: Save, until: float) -> None:
    """What becomes of planted cheats; times beside those of the honest solution."""
    for name, solution in CHEATS.items():
        if time.monotonic() < until:
            save({name: _measured(_tiny(solution, 1 << 26, device))})


def baselines(device: DeviceSpec, save: Save, until: float, kernelbench: str) -> None:
    """PyTorch baselines in turns with eager: some of some KernelBench problems, all of the KernelBench-form examples."""
    files = [(ROOT / "examples" / "kernelbench" / f"{name}.py", BASELINES) for name in KERNELBENCH_EXAMPLES]
    if kernelbench:
        found = [next(iter(sorted((Path(kernelbench) / "KernelBench").glob(f"{problem}*.py")))) for problem in PROBLEMS]
        files = [*((file, QUICK) for file in found), *files]
    for file, names in files:
        if time.monotonic() > until:
            return
        request = _request(load_task(file).spec, file, device).model_copy(
            update={"baselines": tuple(name for name in names if name != START), "baseline_timeout_s": 120.0})
        with multiprocessing.get_context("spawn").Pool(1) as fresh:  # processes are forked, which PyTorch's threads forbid
            measured = fresh.apply(reference_rows, (request,))
        save({file.stem: {row.name: _shown_row(row) for row in measured}})


def main(argv: list[str]) -> int:
    """Runs the named sections (default: all); `timing.json` is written after every row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.h200 timing")
    parser.add_argument("sections", nargs="*", default=[])
    parser.add_argument("--kernelbench", default="", help="a checkout of KernelBench")
    parser.add_argument("--budget", type=float, default=1e9, help="start nothing more after so many seconds")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    device = detect_device()
    if device is None:
        print("no NVIDIA GPU here: this measurement needs one")
        return 1
    until = time.monotonic() + options.budget
    sections: dict[str, Any] = {
        "cheats": cheats, "noise": noise, "graph": graph, "baselines": partial(baselines, kernelbench=options.kernelbench),
    }
    record = Record("timing", "python -m benchmarks.h200 timing " + " ".join(argv), options.out)
    for name in options.sections or sections:
        began = time.monotonic()
        sections[name](device, partial(_save, record, name), until)
        print(f"== {name}: {time.monotonic() - began:.1f} s", flush=True)
    return 0


def _save(record: Record, section: str, rows: dict[str, Any]) -> None:
    record.add(section, rows)
    for name, row in rows.items():
        print(f"{name}: {row}"[:1200], flush=True)


def _request(spec: TaskSpec, solution: Path, device: DeviceSpec) -> Request:
    return Request(task=spec, solution=str(solution), mode="cuda", device=device, timeout_s=120, timed_only=True)


def _tiny(solution: str, n: int, device: DeviceSpec) -> Evaluation:
    with tempfile.TemporaryDirectory() as folder:
        task, code = Path(folder) / "task.py", Path(folder) / "solution.py"
        task.write_text(TINY)
        code.write_text(solution)
        checks = ({"n": 1000}, {"n": 4096})
        spec = TaskSpec(name="plus_one", kind="native", path=str(task), sizes={"n": n}, check_sizes=checks)
        return pool.evaluate(_request(spec, code, device))


def _in_turns(request: Request) -> tuple[TimeEstimate, TimeEstimate]:
    """Two processes with the same solution."""
    deadline = time.monotonic() + 60
    runners = [Runner(request, "verify", deadline) for _ in range(2)]
    try:
        oracle = load_oracle(request.task)
        problem = full_problem(oracle, secrets.randbits(32))
        reference = partial(expected_at, oracle)
        session = Session(problem, oracle.spec.sizes, request.device.l2_bytes, np.random.default_rng(), reference)
        for runner in runners:
            runner.load()
            session.prepare(runner)
        session.checkpoint()  # before the clock of the turns runs
        return session.in_turns(runners[0], runners[1])
    finally:
        for runner in runners:
            runner.close()


def _compared(first: TimeEstimate, second: TimeEstimate) -> dict[str, Any]:
    found = compare(first, second)
    return {"us": [round(first.time_us, 3), round(second.time_us, 3)], "ratio": round(found.ratio, 4),
            "interval": [round(found.low, 4), round(found.high, 4)], "verdict": found.verdict}


def _measured(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "status": evaluation.status.value, "message": evaluation.message, "precision_class": evaluation.precision_class,
        "event": _shown_time(evaluation.time), "graph": _shown_time(evaluation.graph_time) or evaluation.graph_unavailable,
        "checks": evaluation.checks, "seconds": evaluation.stage_seconds,
        "states": [state.model_dump(mode="json", exclude={"uuid"}) for state in evaluation.gpu_states],
    }


def _shown_row(row: BaselineTime) -> dict[str, Any]:
    if row.time is None:
        return {"flags": row.flags, "reason": row.reason}
    return {"flags": row.flags, "precision_class": row.precision_class, "time": _shown_time(row.time),
            "graph": _shown_time(row.graph_time), "eager_in_turns": _shown_time(row.solution_time)}


def _shown_time(estimate: TimeEstimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    low, high = estimate.low_us or 0.0, estimate.high_us or 0.0
    return {"us": round(estimate.time_us, 3), "low": round(low, 3), "high": round(high, 3), "samples": estimate.samples,
            "provenance": estimate.provenance}

