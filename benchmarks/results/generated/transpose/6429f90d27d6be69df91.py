"""transpose: transpose: transpose, tiles of 32 x 32

Written by the KernelSkill template writer.
Methods applied, in order:
  1. shared_memory_tiling(tile=32)
  2. bank_conflict_padding(pad=1)
  3. work_per_thread(elements=4)
"""
# kernelskill-plan: {"family": "transpose", "methods": [{"method": "shared_memory_tiling", "params": {"tile": 32}}, {"method": "bank_conflict_padding", "params": {"pad": 1}}, {"method": "work_per_thread", "params": {"elements": 4}}], "plan": {"coalesced": "reads", "height": 8, "items": 4, "pad": 1, "restrict": false, "tile": 32, "vector": 1}, "version": 1}

import functools

import cupy

CUDA_SOURCE = r"""
extern "C" __global__ void transpose_kernel(const float* x, float* out, int rows, int cols) {
    __shared__ float tile[32][32 + 1];
    const int across = (cols + 31) / 32;  // tiles along a row of x
    const int r0 = blockIdx.x / across * 32, c0 = blockIdx.x % across * 32;
    const int tx = threadIdx.x, ty = threadIdx.y;
    float v[4] = {};
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int r = r0 + ty + j * 8, c = c0 + tx;
        if (r < rows && c < cols) v[j] = x[(long long)r * cols + c];
    }
#pragma unroll
    for (int j = 0; j < 4; j++) tile[ty + j * 8][tx] = v[j];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int k = ty + j * 8;
        if (c0 + k < cols && r0 + tx < rows) out[(long long)(c0 + k) * rows + r0 + tx] = tile[tx][k];
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


def run(x):
    """Inputs: cupy float32 arrays; returns a new array of shape (cols, rows)."""
    x = _dense(x)
    rows, cols = x.shape
    out = cupy.empty((cols, rows), dtype=cupy.float32)
    blocks = -(-rows // 32) * -(-cols // 32)
    _launch("transpose_kernel", (blocks,), (32, 8), (x, out, cupy.int32(rows), cupy.int32(cols)))
    return out
