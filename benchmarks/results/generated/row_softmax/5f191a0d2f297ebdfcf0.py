"""row_softmax: softmax: softmax along rows, one block a row

Written by the KernelSkill template writer.
Methods applied, in order:
  1. block_per_row_reduction(threads=256)
  2. register_caching(per_thread=16)
  3. warp_shuffle_reduction
"""
# kernelskill-plan: {"family": "row_reduction", "methods": [{"method": "block_per_row_reduction", "params": {"threads": 256}}, {"method": "register_caching", "params": {"per_thread": 16}}, {"method": "warp_shuffle_reduction", "params": {}}], "plan": {"algorithm": "cached", "block": 256, "combine": "warp_shuffle", "fast_math": false, "fused": true, "owner": "block", "restrict": false, "unroll": 1, "vector": 1}, "version": 1}

import functools

import cupy

CUDA_SOURCE = r"""
__device__ __forceinline__ float merge_max(float a, float b) {
    return fmaxf(a, b);
}
__device__ __forceinline__ float merge_sum(float a, float b) {
    return a + b;
}
struct Softmax { float top, sum; };
__device__ __forceinline__ Softmax merge_softmax(Softmax a, Softmax b) {
    const float top = fmaxf(a.top, b.top);
    return {top, a.sum * expf(a.top - top) + b.sum * expf(b.top - top)};
}

// Merges the partial results of the block that owns a row; every thread gets the result.
__device__ __forceinline__ float row_max(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, offset);
        value = merge_max(value, other);
    }
    __shared__ float warps[8];
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = warps[threadIdx.x % 8];
#pragma unroll
    for (int offset = 4; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, offset);
        value = merge_max(value, other);
    }
    return value;
}

// Merges the partial results of the block that owns a row; every thread gets the result.
__device__ __forceinline__ float row_sum(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, offset);
        value = merge_sum(value, other);
    }
    __shared__ float warps[8];
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = warps[threadIdx.x % 8];
#pragma unroll
    for (int offset = 4; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, offset);
        value = merge_sum(value, other);
    }
    return value;
}

// Merges the partial results of the block that owns a row; every thread gets the result.
__device__ __forceinline__ Softmax row_softmax(Softmax value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const Softmax other = {__shfl_xor_sync(0xffffffffu, value.top, offset), __shfl_xor_sync(0xffffffffu, value.sum, offset)};
        value = merge_softmax(value, other);
    }
    __shared__ Softmax warps[8];
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = warps[threadIdx.x % 8];
#pragma unroll
    for (int offset = 4; offset > 0; offset /= 2) {
        const Softmax other = {__shfl_xor_sync(0xffffffffu, value.top, offset), __shfl_xor_sync(0xffffffffu, value.sum, offset)};
        value = merge_softmax(value, other);
    }
    return value;
}

extern "C" __global__ void row_softmax_kernel(const float* x, float* out, long long rows, int cols) {
    const int lane = threadIdx.x;
    const long long row = blockIdx.x;
    const float* in = x + row * cols;

    float cache[16];  // this thread's part of the row
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const int c = lane + j * 256;
        if (c < cols) { cache[j] = in[c]; }
    }

    // The row's maximum.
    float top = -3.402823466e38f;
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const int c = lane + j * 256;
        if (c < cols) {
            top = fmaxf(top, cache[j]);
        }
    }
    top = row_max(top);

    // Exponentials replace the row; their sum.
    float total = 0.0f;
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const int c = lane + j * 256;
        if (c < cols) {
            cache[j] = expf(cache[j] - top);
            total += cache[j];
        }
    }
    total = row_sum(total);
    const float scale = 1.0f / total;

    float* result = out + row * cols;
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const int c = lane + j * 256;
        if (c < cols) {
            result[c] = cache[j] * scale;
        }
    }
}

extern "C" __global__ void row_softmax_kernel_any_shape(const float* x, float* out, long long rows, int cols) {
    const int lane = threadIdx.x;
    const long long row = blockIdx.x;
    const float* in = x + row * cols;

    // Maximum and sum of exponentials in one pass: the sum is rescaled when the maximum grows.
    Softmax part = {-3.402823466e38f, 0.0f};
    for (int c = lane; c < cols; c += 256) {
        const float v = in[c];
        if (v > part.top) { part.sum *= expf(part.top - v); part.top = v; }
        part.sum += expf(v - part.top);
    }
    part = row_softmax(part);
    const float top = part.top, total = part.sum;

    float* result = out + row * cols;
    for (int c = lane; c < cols; c += 256) {
        const float v = in[c];
        result[c] = expf(v - top) / total;
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
    """Inputs: cupy float32 arrays; returns a new array of shape (rows, cols)."""
    x = _dense(x)
    rows, cols = x.shape
    out = cupy.empty((rows, cols), dtype=cupy.float32)
    if cols <= 4096:
        blocks = rows
        _launch("row_softmax_kernel", (blocks,), (256,), (x, out, rows, cupy.int32(cols)))
    else:
        blocks = rows
        _launch("row_softmax_kernel_any_shape", (blocks,), (256,), (x, out, rows, cupy.int32(cols)))
    return out
