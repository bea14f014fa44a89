"""layer_norm: layer_norm: layer_norm along rows, one block a row

Written by the KernelSkill template writer.
Methods applied, in order:
  1. block_per_row_reduction(threads=256)
  2. warp_shuffle_reduction
  3. vectorized_access(width=4)
  4. register_caching(per_thread=16)
"""
# kernelskill-plan: {"family": "row_reduction", "methods": [{"method": "block_per_row_reduction", "params": {"threads": 256}}, {"method": "warp_shuffle_reduction", "params": {}}, {"method": "vectorized_access", "params": {"width": 4}}, {"method": "register_caching", "params": {"per_thread": 16}}], "plan": {"algorithm": "cached", "block": 256, "combine": "warp_shuffle", "fast_math": false, "fused": true, "owner": "block", "restrict": false, "unroll": 1, "vector": 4}, "version": 1}

import functools

import cupy

CUDA_SOURCE = r"""
__device__ __forceinline__ float merge_sum(float a, float b) {
    return a + b;
}
struct Moments { float count, mean, squares; };
__device__ __forceinline__ Moments merge_moments(Moments a, Moments b) {
    const float count = a.count + b.count, share = b.count / fmaxf(count, 1.0f), gap = b.mean - a.mean;
    return {count, a.mean + gap * share, a.squares + b.squares + gap * gap * a.count * share};
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
    __syncthreads();  // `warps` is used again
    return value;
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
    const float4* in = reinterpret_cast<const float4*>(x + row * cols);

    float4 cache[4];  // this thread's part of the row
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int c = lane + j * 256;
        if (c < cols / 4) { cache[j] = in[c]; }
    }

    // The mean.
    float total = 0.0f;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int c = lane + j * 256;
        if (c < cols / 4) {
            total += cache[j].x;
            total += cache[j].y;
            total += cache[j].z;
            total += cache[j].w;
        }
    }
    total = row_sum(total);
    const float mean = total / cols;

    // The variance around that mean.
    float squares = 0.0f;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int c = lane + j * 256;
        if (c < cols / 4) {
            squares += (cache[j].x - mean) * (cache[j].x - mean);
            squares += (cache[j].y - mean) * (cache[j].y - mean);
            squares += (cache[j].z - mean) * (cache[j].z - mean);
            squares += (cache[j].w - mean) * (cache[j].w - mean);
        }
    }
    squares = row_sum(squares);
    const float scale = rsqrtf(squares / cols + 1e-05f);

    float4* result = reinterpret_cast<float4*>(out + row * cols);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int c = lane + j * 256;
        if (c < cols / 4) {
            const float4 gamma_at = reinterpret_cast<const float4*>(gamma)[c];
            const float4 beta_at = reinterpret_cast<const float4*>(beta)[c];
            result[c] = make_float4(
                (cache[j].x - mean) * scale * gamma_at.x + beta_at.x,
                (cache[j].y - mean) * scale * gamma_at.y + beta_at.y,
                (cache[j].z - mean) * scale * gamma_at.z + beta_at.z,
                (cache[j].w - mean) * scale * gamma_at.w + beta_at.w);
        }
    }
}

extern "C" __global__ void layer_norm_kernel_any_shape(const float* x, const float* gamma, const float* beta, float* out, long long rows, int cols) {
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
    if cols % 4 == 0 and cols <= 4096:
        blocks = rows
        _launch("layer_norm_kernel", (blocks,), (256,), (x, gamma, beta, out, rows, cupy.int32(cols)))
    else:
        blocks = rows
        _launch("layer_norm_kernel_any_shape", (blocks,), (256,), (
            x,
            gamma,
            beta,
            out,
            rows,
            cupy.int32(cols)))
    return out
