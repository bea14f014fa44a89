"""Adds up without synchronisation; right when the threads are lucky."""

import cupy as cp
import numpy as np

CODE = r"""
extern "C" __global__ void rows_of(const float* x, float* y, int cols) {
  const float* row = x + (long long)blockIdx.x * cols;
  int t = threadIdx.x;
  __shared__ float total;
  if (t == 0) total = 0.f;
  __syncthreads();
  for (int c = t; c < cols; c += 128) total += row[c];
  __syncthreads();
  if (t == 0) y[blockIdx.x] = total;
}
"""
kernel = cp.RawKernel(CODE, "rows_of")


def run(x):
    rows, cols = x.shape
    y = cp.empty(rows, dtype=x.dtype)
    kernel((rows,), (128,), (x, y, np.int32(cols)))
    return y
