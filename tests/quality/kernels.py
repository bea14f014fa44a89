"""Tasks and solution skeletons that the quality tests plant bugs into."""

from __future__ import annotations

SCALE = """
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32)}
def reference(x):
    return 2 * x + 1
"""
RELU = """
def make_inputs(rng, n):
    return {"x": rng.random(n, dtype=np.float32)}
def reference(x):
    return np.maximum(x, 0)
"""
ROWS = """
def make_inputs(rng, rows, cols):
    return {{"x": rng.standard_normal((rows, cols), dtype=np.float32)}}
def reference(x):
    return {result}
"""
ROW_SUM = ROWS.format(result="x.sum(axis=1)")
ROW_MAX = ROWS.format(result="x.max(axis=1)")
SUM_AND_MAX = ROWS.format(result="(x.sum(axis=1), x.max(axis=1))")
SOFTMAX = ROWS.format(result="np.exp(x - x.max(1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)")
TRANSPOSE = ROWS.format(result="np.ascontiguousarray(x.T)")

VECTOR_SIZES = [{"n": 5}, {"n": 1000}]
ROW_SIZES = [{"rows": 3, "cols": 5}, {"rows": 7, "cols": 300}]


def elementwise(body: str, *, output: str = "cp.empty_like(x)", grid: str = "(n + 255) // 256", result: str = "y") -> str:
    """y[i] from x[i], one thread an element."""
    return f'''
import cupy as cp
import numpy as np

CODE = r"""
extern "C" __global__ void kernel(const float* x, float* y, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  {body}
}}
"""
kernel = cp.RawKernel(CODE, "kernel")


def run(x):
    n = x.size
    y = {output}
    kernel(({grid},), (256,), (x, y, np.int32(n)))
    return {result}
'''


def rowwise(body: str, *, outputs: str = "cp.empty(rows, dtype=x.dtype)", result: str = "y", threads: int = 128,
            parameters: str = "float* y", arguments: str = "y") -> str:
    """One block a row of x[rows, cols]."""
    return f'''
import cupy as cp
import numpy as np

CODE = r"""
extern "C" __global__ void kernel(const float* x, {parameters}, int cols) {{
  const float* row = x + (long long)blockIdx.x * cols;
  int t = threadIdx.x;
{body}
}}
"""
kernel = cp.RawKernel(CODE, "kernel")


def run(x):
    rows, cols = x.shape
    y = {outputs}
    kernel((rows,), ({threads},), (x, {arguments}, np.int32(cols)))
    return {result}
'''
