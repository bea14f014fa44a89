"""CuPy's own reduction beside a kernel that does nothing of use."""

import cupy as cp
import numpy as np

CODE = r"""
extern "C" __global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.f * x[i] + 1.f;
}
"""
kernel = cp.RawKernel(CODE, "affine")


def run(x):
    y = cp.empty_like(x)
    kernel(((x.size + 255) // 256,), (256,), (x, y, np.int32(x.size)))
    return x.sum(axis=1)
