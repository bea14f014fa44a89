"""Zeros."""

import cupy as cp

CODE = r"""
extern "C" __global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.f * x[i] + 1.f;
}
"""
kernel = cp.RawKernel(CODE, "affine")


def run(x):
    return cp.zeros_like(x)
