"""Constants made once, at import, and a try around an optional feature."""

import cupy as cp
import numpy as np

CODE = r"""
extern "C" __global__ void affine(const float* x, float* y, int n, const float* table) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = table[0] * x[i] + table[1];
}
"""
kernel = cp.RawKernel(CODE, "affine")
table = cp.asarray(np.array([2, 1], dtype=np.float32))
try:
    kernel.max_dynamic_shared_size_bytes = 1024
except AttributeError:
    print("this cupy cannot set it")


def run(x):
    n = x.size
    y = cp.empty_like(x)
    kernel(((n + 255) // 256,), (256,), (x, y, np.int32(n), table))
    return y
