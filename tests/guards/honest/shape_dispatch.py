"""Another kernel for sizes that are a multiple of four."""

import cupy as cp
import numpy as np

CODE = r"""
extern "C" __global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.f * x[i] + 1.f;
}
extern "C" __global__ void affine4(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  y[i] = make_float4(2.f * v.x + 1.f, 2.f * v.y + 1.f, 2.f * v.z + 1.f, 2.f * v.w + 1.f);
}
"""
module = cp.RawModule(code=CODE)


def run(x):
    n = x.size
    y = cp.empty_like(x)
    if n % 4 == 0:
        module.get_function("affine4")(((n // 4 + 255) // 256,), (256,), (x, y, np.int32(n // 4)))
    else:
        module.get_function("affine")(((n + 255) // 256,), (256,), (x, y, np.int32(n)))
    return y
