"""row_sum: sum: sum along rows, one block a row

Written by the KernelSkill template writer.
Methods applied, in order:
  1. block_per_row_reduction(threads=256)
  2. vectorized_access(width=4)
  3. loop_unrolling(factor=4)
"""
# kernelskill-plan: {"family": "row_reduction", "methods": [{"method": "block_per_row_reduction", "params": {"threads": 256}}, {"method": "vectorized_access", "params": {"width": 4}}, {"method": "loop_unrolling", "params": {"factor": 4}}], "plan": {"algorithm": "multi_pass", "block": 256, "combine": "shared_tree", "fast_math": false, "fused": true, "owner": "block", "restrict": false, "unroll": 4, "vector": 4}, "version": 1}

import functools

import cupy

CUDA_SOURCE = r"""
__device__ __forceinline__ float merge_sum(float a, float b) {
    return a + b;
}

// Merges the partial results of the block that owns a row; every thread gets the result.
__device__ __forceinline__ float row_sum(float value) {
    __shared__ float slots[256];
    slots[threadIdx.x] = value;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) slots[threadIdx.x] = merge_sum(slots[threadIdx.x], slots[threadIdx.x + half]);
        __syncthreads();
    }
    value = slots[0];
    return value;
}

extern "C" __global__ void row_sum_kernel(const float* x, float* out, long long rows, int cols) {
    const int lane = threadIdx.x;
    const long long row = blockIdx.x;
    const float4* in = reinterpret_cast<const float4*>(x + row * cols);

    // The row, once.
    float total = 0.0f;
#pragma unroll 4
    for (int c = lane; c < cols / 4; c += 256) {
        const float4 v = in[c];
        total += v.x;
        total += v.y;
        total += v.z;
        total += v.w;
    }
    total = row_sum(total);

    if (lane == 0) out[row] = total;
}

extern "C" __global__ void row_sum_kernel_any_shape(const float* x, float* out, long long rows, int cols) {
    const int lane = threadIdx.x;
    const long long row = blockIdx.x;
    const float* in = x + row * cols;

    // The row, once.
    float total = 0.0f;
#pragma unroll 4
    for (int c = lane; c < cols; c += 256) {
        const float v = in[c];
        total += v;
    }
    total = row_sum(total);

    if (lane == 0) out[row] = total;
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
    """Inputs: cupy float32 arrays; returns a new array of shape (rows,)."""
    x = _dense(x)
    rows, cols = x.shape
    out = cupy.empty((rows,), dtype=cupy.float32)
    if cols % 4 == 0:
        blocks = rows
        _launch("row_sum_kernel", (blocks,), (256,), (x, out, rows, cupy.int32(cols)))
    else:
        blocks = rows
        _launch("row_sum_kernel_any_shape", (blocks,), (256,), (x, out, rows, cupy.int32(cols)))
    return out
