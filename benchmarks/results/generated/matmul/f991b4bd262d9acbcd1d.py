"""matmul: matmul: matrix product, tiles of 16 x 16 x 16, 1 x 1 outputs a thread

Written by the KernelSkill template writer.
Methods applied, in order:
  1. coalesced_access
  2. shared_memory_tiling(tile=16)
"""
# kernelskill-plan: {"family": "matmul", "methods": [{"method": "coalesced_access", "params": {}}, {"method": "shared_memory_tiling", "params": {"tile": 16}}], "plan": {"double_buffer": false, "lanes": "columns", "padded": false, "restrict": false, "thread_m": 1, "thread_n": 1, "tile_k": 16, "tile_m": 16, "tile_n": 16, "unroll": 1, "vector": 1}, "version": 1}

import functools

import cupy

CUDA_SOURCE = r"""
__device__ __forceinline__ float matmul_kernel_value(float acc) { return acc; }

extern "C" __global__ void matmul_kernel(
const float* a, const float* b, float* out,
    long long m, long long n, long long k) {
    const long long across = (n + 15) / 16;  // blocks along a row of C
    const long long row0 = blockIdx.x / across * 16, col0 = blockIdx.x % across * 16;
    __shared__ float a_tile[16][16];
    __shared__ float b_tile[16][16];
    const int t = threadIdx.x;
    const int tx = t % 16, ty = t / 16;
    float a_tile_next[1], b_tile_next[1];
    float acc = 0.0f;

    const auto fetch = [&](long long k0) {  // global memory to registers
        {
            const int i = t, j = 0;
            const int e = i / 16, d = i % 16;
            const bool inside = row0 + e < m && k0 + d < k;
            a_tile_next[j] = inside ? a[(row0 + e) * k + k0 + d] : 0.0f;
        }
        {
            const int i = t, j = 0;
            const int d = i / 16, e = i % 16;
            const bool inside = col0 + e < n && k0 + d < k;
            b_tile_next[j] = inside ? b[(k0 + d) * n + col0 + e] : 0.0f;
        }
    };
    const auto put = [&]() {  // registers to the tiles
        {
            const int i = t, j = 0;
            const int e = i / 16, d = i % 16;
            a_tile[d][e] = a_tile_next[j];
        }
        {
            const int i = t, j = 0;
            const int d = i / 16, e = i % 16;
            b_tile[d][e] = b_tile_next[j];
        }
    };

    for (long long k0 = 0; k0 < k; k0 += 16) {
        fetch(k0);
        put();
        __syncthreads();
        for (int d = 0; d < 16; d++) {
            acc += a_tile[d][ty] * b_tile[d][tx];
        }
        __syncthreads();
    }

    const long long row = row0 + ty, col = col0 + tx;
    if (row < m && col < n) out[row * n + col] = matmul_kernel_value(acc);
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
