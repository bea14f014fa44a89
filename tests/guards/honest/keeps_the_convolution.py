"""The convolution stays cuDNN's, as the task allows; the rest is a kernel."""

import cupy as cp
import numpy as np
import torch

CODE = r"""
extern "C" __global__ void relu(float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(y[i], 0.f);
}
"""
kernel = cp.RawKernel(CODE, "relu")


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, bias=True)

    def forward(self, x):
        y = self.conv(x).contiguous()
        n = y.numel()
        with cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            kernel(((n + 255) // 256,), (256,), (y.data_ptr(), np.int32(n)))
        return y
