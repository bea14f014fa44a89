"""Keeps a transposed copy of the weight, renewed whenever the weight changes."""

import cupy as cp
import numpy as np
import torch

CODE = r"""
extern "C" __global__ void linear(const float* x, const float* w, const float* b, float* y, int rows, int inner, int outer) {
  int o = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
  if (o >= outer) return;
  float sum = b[o];
  for (int k = 0; k < inner; ++k) sum += x[(long long)r * inner + k] * w[(long long)k * outer + o];
  y[(long long)r * outer + o] = sum;
}
extern "C" __global__ void transpose(const float* w, float* t, int outer, int inner) {
  int k = blockIdx.x * blockDim.x + threadIdx.x, o = blockIdx.y;
  if (k < inner) t[(long long)k * outer + o] = w[(long long)o * inner + k];
}
"""
module = cp.RawModule(code=CODE)
kernel = module.get_function("linear")


def linear(x, weight, bias):
    rows, inner = x.shape
    outer = bias.numel()
    y = torch.empty((rows, outer), device=x.device, dtype=x.dtype)
    sizes = np.int32(rows), np.int32(inner), np.int32(outer)
    with cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        kernel(((outer + 63) // 64, rows), (64,), (x.data_ptr(), weight.data_ptr(), bias.data_ptr(), y.data_ptr(), *sizes))
    return y


def transposed(weight):
    outer, inner = weight.shape
    t = torch.empty((inner, outer), device=weight.device, dtype=weight.dtype)
    arguments = weight.data_ptr(), t.data_ptr(), np.int32(outer), np.int32(inner)
    with cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        module.get_function("transpose")(((inner + 63) // 64, outer), (64,), arguments)
    return t


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(outer, inner))
        self.bias = torch.nn.Parameter(torch.zeros(outer))
        self.key = self.transposed = None

    def forward(self, x):
        key = self.weight.data_ptr(), self.weight._version
        if key != self.key:
            self.key, self.transposed = key, transposed(self.weight)
        return linear(x, self.transposed, self.bias)
