"""layer_norm: layer_norm: layer_norm along rows, one block a row

Written by the KernelSkill template writer.
Methods applied, in order:
  1. block_per_row_reduction(threads=256)
  2. warp_shuffle_reduction
  3. online_algorithm
"""
# kernelskill-plan: {"family": "row_reduction", "methods": [{"method": "block_per_row_reduction", "params": {"threads": 256}}, {"method": "warp_shuffle_reduction", "params": {}}, {"method": "online_algorithm", "params": {}}], "plan": {"algorithm": "online", "block": 256, "combine": "warp_shuffle", "fast_math": false, "fused": true, "owner": "block", "restrict": false, "unroll": 1, "vector": 1}, "version": 1}

import functools

import cupy

CUDA_SOURCE = r"""
struct Moments { float count, mean, squares; };
__device__ __forceinline__ Moments merge_moments(Moments a, Moments b) {
    const float count = a.count + b.count, share = b.count / fmaxf(count, 1.0f), gap = b.mean - a.mean;
    return {count, a.mean + gap * share, a.squares + b.squares + gap * gap * a.count * share};
}

// Merges the partial results of the block that owns a row; every thread gets the result.
__device__ __forceinline__ Moments row_moments(Moments value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const Moments other = {__shfl_xor_sync(0xffffffffu, value.count, offset), __shfl_xor_sync(0xffffffffu, value.mean, offset), __shfl_xor_sync(0xffffffffu, value.squares, offset)};
        value = merge_moments(value, other);
    }
    __shared__ Moments warps[8];
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = warps[threadIdx.x % 8];
#pragma unroll
    for (int offset = 4; offset > 0; offset /= 2) {
        const Moments other = {__shfl_xor_sync(0xffffffffu, value.count, offset), __shfl_xor_sync(0xffffffffu, value.mean, offset), __shfl_xor_sync(0xffffffffu, value.squares, offset)};
        value = merge_moments(value, other);
    }
    return value;
}

extern "C" __global__ void layer_norm_kernel(const float* x, const float* gamma, const float* beta, float* out, long long rows, int cols) {
    const int lane = threadIdx.x;
    const long long row = blockIdx.x;
    const float* in = x + row * cols;

    // Mean and variance in one pass: sums around the thread's first element, merged as moments (Chan et al.).
    const float shift = lane < cols ? in[lane] : 0.0f;
    float count = 0.0f, sum = 0.0f, squares = 0.0f;
    for (int c = lane; c < cols; c += 256) {
        const float v = in[c];
        count += 1.0f;
        sum += v - shift;
        squares += (v - shift) * (v - shift);
    }
    const Moments part = row_moments(Moments{count, shift + sum / fmaxf(count, 1.0f), squares - sum * sum / fmaxf(count, 1.0f)});
    const float mean = part.mean, scale = rsqrtf(fmaxf(part.squares, 0.0f) / cols + 1e-05f);

    float* result = out + row * cols;
    for (int c = lane; c < cols; c += 256) {
        const float v = in[c];
        result[c] = (v - mean) * scale * gamma[c] + beta[c];
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


def run(x, gamma, beta):
    """Inputs: cupy float32 arrays; returns a new array of shape (rows, cols)."""
    x = _dense(x)
    gamma = _dense(gamma)
    beta = _dense(beta)
    rows, cols = x.shape
    out = cupy.empty((rows, cols), dtype=cupy.float32)
    blocks = rows
    _launch("layer_norm_kernel", (blocks,), (256,), (x, gamma, beta, out, rows, cupy.int32(cols)))
    return out
