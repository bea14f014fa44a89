"""linear_relu: matmul: matrix product, one output a thread, neighbours along rows

Written by the KernelSkill template writer.
The naive start: no method applied yet.
"""
# kernelskill-plan: {"family": "matmul", "methods": [], "plan": {"double_buffer": false, "lanes": "rows", "padded": false, "restrict": false, "thread_m": 1, "thread_n": 1, "tile_k": 0, "tile_m": 16, "tile_n": 16, "unroll": 1, "vector": 1}, "version": 1}

import functools

import cupy
import torch
import torch.nn as nn

CUDA_SOURCE = r"""
__device__ __forceinline__ float relu_of(float a) { return a < 0.0f ? 0.0f : a; }
__device__ __forceinline__ float linear_relu_kernel_value(float acc, float linear_bias) { return relu_of(acc + linear_bias); }

extern "C" __global__ void linear_relu_kernel(
const float* x, const float* linear_weight, const float* linear_bias, float* out,
    long long m, long long n, long long k) {
    const long long across = (n + 15) / 16;  // blocks along a row of C
    const long long row0 = blockIdx.x / across * 16, col0 = blockIdx.x % across * 16;
    const long long row = row0 + threadIdx.x % 16, col = col0 + threadIdx.x / 16;
    if (row >= m || col >= n) return;
    float acc = 0.0f;
    for (long long i = 0; i < k; i++)
        acc += x[row * k + i] * linear_weight[col * k + i];
    out[row * n + col] = linear_relu_kernel_value(acc, linear_bias[col]);
}
"""


@functools.cache
def _kernel(name, device):
    """The kernel, compiled on first use on that device."""
    return cupy.RawModule(code=CUDA_SOURCE, options=("--std=c++17",)).get_function(name)


def _launch(name, grid, block, arguments):
    _kernel(name, cupy.cuda.Device().id)(grid, block, arguments)


def _dense(tensor):
    """The tensor as the kernels take it: float32, contiguous, 16-byte aligned."""
    if tensor.dtype != torch.float32:
        raise TypeError(f"expected float32, got {tensor.dtype}")
    tensor = tensor.detach().contiguous()
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone()


class ModelNew(torch.nn.Module):
    """Same parameters as Model; forward launches the kernels on torch's current stream."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        linear_weight = self.get_parameter("linear.weight")
        linear_bias = self.get_parameter("linear.bias")
        x = _dense(x)
        linear_weight = _dense(linear_weight)
        linear_bias = _dense(linear_bias)
        k = x.shape[-1]
        m = x.numel() // k
        n = linear_weight.shape[0]
        out = torch.empty((*x.shape[:-1], n), dtype=torch.float32, device=x.device)
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            blocks = -(-m // 16) * -(-n // 16)
            _launch("linear_relu_kernel", (blocks,), (256,), (
                x.data_ptr(),
                linear_weight.data_ptr(),
                linear_bias.data_ptr(),
                out.data_ptr(),
                m,
                n,
                k))
        return out
