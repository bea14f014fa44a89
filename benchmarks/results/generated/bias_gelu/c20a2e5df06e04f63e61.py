"""bias_gelu: gelu(x + bias): element-wise, one kernel

Written by the KernelSkill template writer.
Methods applied, in order:
  1. kernel_fusion
"""
# kernelskill-plan: {"family": "elementwise", "methods": [{"method": "kernel_fusion", "params": {}}], "plan": {"block": 256, "blocks_per_sm": 0, "fast_math": false, "fused": true, "items": 1, "restrict": false, "unroll": 1, "vector": 1}, "version": 1}

import functools

import cupy

CUDA_SOURCE = r"""
__device__ __forceinline__ float gelu_of(float a) { return 0.5f * a * (1.0f + erff(a * 0.70710678f)); }
__device__ __forceinline__ float bias_gelu_kernel_value(float x, float bias) { return gelu_of(x + bias); }

extern "C" __global__ void bias_gelu_kernel(const float* x, const float* bias, float* out, long long n, long long bias_count) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float x_at = x[i];
        const float bias_at = bias[i % bias_count];
        out[i] = bias_gelu_kernel_value(x_at, bias_at);
    }
}
"""


@functools.cache
def _kernel(name, device):
    """The kernel, compiled on first use on that device."""
    return cupy.RawModule(code=CUDA_SOURCE, options=("--std=c++17",)).get_function(name)


def _launch(name, grid, block, arguments):
    _kernel(name, cupy.cuda.Device().id)(grid, block, arguments)


def _dense(array):
    """The array as the kernels take it: float32, C-contiguous, 16-byte aligned."""
    if array.dtype != cupy.float32:
        raise TypeError(f"expected float32, got {array.dtype}")
    array = cupy.ascontiguousarray(array)
    return array if array.data.ptr % 16 == 0 else array.copy()


def run(x, bias):
    """Inputs: cupy float32 arrays; returns a new array of shape (rows, cols)."""
    x = _dense(x)
    bias = _dense(bias)
    rows, cols = x.shape
    n = rows * cols
    out = cupy.empty((rows, cols), dtype=cupy.float32)
    blocks = -(-n // 256)
    _launch("bias_gelu_kernel", (blocks,), (256,), (x, bias, out, n, cols))
    return out
