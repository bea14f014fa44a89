"""The second of two outputs is the first one again."""

import cupy as cp
import numpy as np

CODE = r"""
extern "C" __global__ void rows_of(const float* x, float* y, int cols) {
  const float* row = x + (long long)blockIdx.x * cols;
  int t = threadIdx.x;
  __shared__ float partial[128];
  float sum = 0.f;
  for (int c = t; c < cols; c += 128) sum += row[c];
  partial[t] = sum;
  __syncthreads();
  for (int step = 64; step > 0; step >>= 1) {
    if (t < step) partial[t] += partial[t + step];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = partial[0];
}
"""
kernel = cp.RawKernel(CODE, "rows_of")


def run(x):
    rows, cols = x.shape
    y = cp.empty(rows, dtype=x.dtype)
    kernel((rows,), (128,), (x, y, np.int32(cols)))
    return y, y
