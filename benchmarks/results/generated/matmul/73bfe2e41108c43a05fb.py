"""matmul: matmul: matrix product, one output a thread, neighbours along columns

Written by the KernelSkill template writer.
Methods applied, in order:
  1. coalesced_access
"""
# kernelskill-plan: {"family": "matmul", "methods": [{"method": "coalesced_access", "params": {}}], "plan": {"double_buffer": false, "lanes": "columns", "padded": false, "restrict": false, "thread_m": 1, "thread_n": 1, "tile_k": 0, "tile_m": 16, "tile_n": 16, "unroll": 1, "vector": 1}, "version": 1}

import functools

import cupy

CUDA_SOURCE = r"""
__device__ __forceinline__ float matmul_kernel_value(float acc) { return acc; }

extern "C" __global__ void matmul_kernel(
const float* a, const float* b, float* out,
    long long m, long long n, long long k) {
    const long long across = (n + 15) / 16;  // blocks along a row of C
    const long long row0 = blockIdx.x / across * 16, col0 = blockIdx.x % across * 16;
    const long long row = row0 + threadIdx.x / 16, col = col0 + threadIdx.x % 16;
    if (row >= m || col >= n) return;
    float acc = 0.0f;
    for (long long i = 0; i < k; i++)
        acc += a[row * k + i] * b[i * n + col];
    out[row * n + col] = matmul_kernel_value(acc);
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


def run(a, b):
    """Inputs: cupy float32 arrays; returns a new array of shape (m, n)."""
    a = _dense(a)
    b = _dense(b)
    m, k = a.shape
    n = b.shape[1]
    out = cupy.empty((m, n), dtype=cupy.float32)
    blocks = -(-m // 16) * -(-n // 16)
    _launch("matmul_kernel", (blocks,), (256,), (a, b, out, m, n, k))
    return out
