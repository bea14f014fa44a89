"""A real evaluation of a tiny kernel on the GPU: what `doctor` believes instead of the presence of programs."""

from __future__ import annotations

import tempfile
from pathlib import Path

from evaluator import pool
from evaluator.types import DeviceSpec, Evaluation, Request, TaskSpec, Tool

REFERENCE = """
import numpy as np

def make_inputs(rng, n):
    return {"x": rng.standard_normal(n).astype(np.float32)}

def reference(x):
    return 2 * x
"""
SOLUTION = '''
import cupy as cp

KERNEL = cp.RawKernel(r"""
extern "C" __global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
""", "twice")


def run(x):
    y = cp.empty_like(x)
    KERNEL((-(-x.size // 256),), (256,), (x, y, cp.int32(x.size)))
    return y
'''
COUNTER = "sm__cycles_elapsed.max"
SECONDS = 120.0


def trial(device: DeviceSpec) -> Evaluation:
    """Verified, sanitized, timed and profiled in the sandbox, as every solution is."""
    with tempfile.TemporaryDirectory(prefix="doctor-") as folder:
        reference, solution = Path(folder) / "reference.py", Path(folder) / "solution.py"
        reference.write_text(REFERENCE, encoding="utf-8")
        solution.write_text(SOLUTION, encoding="utf-8")
        task = TaskSpec(name="twice", kind="native", path=str(reference), sizes={"n": 1 << 20}, check_sizes=({"n": 1000},))
        return pool.evaluate(Request(task=task, solution=str(solution), mode="cuda", device=device, counters=(COUNTER,),
                                     sanitize=("memcheck",), timeout_s=SECONDS))


def tool_state(evaluation: Evaluation, tool: Tool) -> str:
    """Why the tool gave nothing; "" where it worked."""
    if tool in evaluation.unavailable:
        return evaluation.unavailable[tool]
    worked = {"ncu": bool(evaluation.profiles), "cupti": evaluation.timeline is not None,
              "compute-sanitizer": "sanitizer_memcheck" in evaluation.checks}
    return "" if worked[tool] else f"not reached: the trial evaluation ended with {evaluation.status.value}"
