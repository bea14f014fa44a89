"""The input, copied by a kernel."""

import cupy as cp
import numpy as np

CODE = r"""
extern "C" __global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
"""
kernel = cp.RawKernel(CODE, "affine")


def run(x):
    n = x.size
    y = cp.empty_like(x)
    kernel(((n + 255) // 256,), (256,), (x, y, np.int32(n)))
    return y
