"""A softmax that overflows where the inputs are large."""

import cupy as cp
import numpy as np

CODE = r"""
extern "C" __global__ void rows_of(const float* x, float* y, int cols) {
  const float* row = x + (long long)blockIdx.x * cols;
  int t = threadIdx.x;
  __shared__ float partial[128];
  float sum = 0.f;
  for (int c = t; c < cols; c += 128) sum += expf(row[c]);
  partial[t] = sum;
  __syncthreads();
  float total = 0.f;
  for (int i = 0; i < 128; ++i) total += partial[i];
  for (int c = t; c < cols; c += 128) y[(long long)blockIdx.x * cols + c] = expf(row[c]) / total;
}
"""
kernel = cp.RawKernel(CODE, "rows_of")


def run(x):
    rows, cols = x.shape
    y = cp.empty_like(x)
    kernel((rows,), (128,), (x, y, np.int32(cols)))
    return y
