"""Timing on the card: noise floor, events against graph replay, planted cheats, PyTorch baselines of examples and KernelBench.

`python -m benchmarks.h200 timing [--kernelbench DIR] [--seconds N] [--out FOLDER] [noise] [graph] [cheats] [baselines]`
"""

from __future__ import annotations

import argparse
import multiprocessing
import secrets
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.h200.provenance import RESULTS, ROOT, provenance, write
from evaluator import pool
from evaluator.baselines import BASELINES, START, expected_at
from evaluator.judge_timing import Session
from evaluator.measure import reference_rows
from evaluator.oracle import load_oracle
from evaluator.profile_sim import full_problem
from evaluator.runner import Runner
from evaluator.statistics import compare
from evaluator.types import BaselineTime, DeviceSpec, Evaluation, Request, TaskSpec, TimeEstimate
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
ASIDE = KERNEL.replace(CALL, """
    if not stream:
        stream.append(cp.cuda.Stream(non_blocking=True))
    stream[0].use()
    launch(x, y)
    cp.cuda.Stream.null.use()
    return""")
"""Works on a stream that the default one does not wait for."""


def noise(device: DeviceSpec) -> dict[str, Any]:
    """The same solution in two processes, in turns; and in two evaluations, one after the other."""
    rows = {}
    for name in EXAMPLES:
        spec = load_task(ROOT / "examples" / name).spec
        request = _request(spec, ROOT / "benchmarks" / "results" / "solutions" / name / "best.py", device)
        first, second = _in_turns(request)
        between = [pool.evaluate(request) for _ in range(2)]
        times = [each.time for each in between if each.time]
        rows[name] = {"in_turns": _compared(first, second), "evaluations": _compared(*times) if len(times) == 2 else
                      [f"{each.status.value}: {each.message}" for each in between]}
        _say(name, rows[name])
    return rows


def graph(device: DeviceSpec) -> dict[str, Any]:
    """Events and graph replay of one small kernel, at sizes from launch-bound to bandwidth-bound."""
    rows = {}
    for n in (1 << 10, 1 << 16, 1 << 20, 1 << 24):
        rows[str(n)] = _measured(_tiny(KERNEL, n, device))
        _say(f"n = {n}", rows[str(n)])
    return rows


def cheats(device: DeviceSpec) -> dict[str, Any]:
    """What becomes of planted cheats; times beside those of the honest solution."""
    n = 1 << 26
    rows = {"honest": _measured(_tiny(KERNEL, n, device)), "skips_timed_work": _measured(_tiny(SKIPS, n, device)),
            "works_on_another_stream": _measured(_tiny(ASIDE, n, device))}
    for name, row in rows.items():
        _say(name, row)
    return rows


def baselines(device: DeviceSpec, kernelbench: str, until: float) -> dict[str, Any]:
    """Every PyTorch baseline of the KernelBench-form examples and of some KernelBench problems, in turns with eager."""
    files = [ROOT / "examples" / "kernelbench" / f"{name}.py" for name in KERNELBENCH_EXAMPLES]
    if kernelbench:
        files += [next(iter(sorted((Path(kernelbench) / "KernelBench").glob(f"{problem}*.py")))) for problem in PROBLEMS]
    rows: dict[str, Any] = {}
    for file in files:
        if time.monotonic() > until:
            rows[file.stem] = "left out: the time was spent"
            continue
        spec = load_task(file).spec
        names = tuple(name for name in BASELINES if name != START)
        request = _request(spec, file, device).model_copy(update={"baselines": names, "baseline_timeout_s": 120.0})
        with multiprocessing.get_context("spawn").Pool(1) as fresh:  # processes are forked, which PyTorch's threads forbid
            measured = fresh.apply(reference_rows, (request,))
        rows[file.stem] = {row.name: _shown_row(row) for row in measured}
        _say(file.stem, rows[file.stem])
    return rows


def main(argv: list[str]) -> int:
    """Runs the named sections (default: all) and writes `timing.json`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.h200 timing")
    parser.add_argument("sections", nargs="*", default=[])
    parser.add_argument("--kernelbench", default="", help="a checkout of KernelBench")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no further baselines after so many seconds")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    device = detect_device()
    if device is None:
        print("no NVIDIA GPU here: this measurement needs one")
        return 1
    until = time.monotonic() + options.seconds
    sections: dict[str, Any] = {
        "graph": graph, "cheats": cheats, "noise": noise,
        "baselines": partial(baselines, kernelbench=options.kernelbench, until=until),
    }
    record, result = provenance("python -m benchmarks.h200 timing " + " ".join(argv)), {}
    for name in options.sections or sections:
        began = time.monotonic()
        result[name] = sections[name](device)
        print(f"== {name}: {time.monotonic() - began:.1f} s", flush=True)
        write("timing", record, result, options.out)
    return 0


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


def _say(name: str, row: Any) -> None:
    print(f"{name}: {row}"[:1500], flush=True)
