
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
