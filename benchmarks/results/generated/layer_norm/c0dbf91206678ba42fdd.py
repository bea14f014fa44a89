"""layer_norm: layer_norm: layer_norm along rows, one block a row

Written by the KernelSkill template writer.
Methods applied, in order:
  1. block_per_row_reduction(threads=256)
"""
# kernelskill-plan: {"family": "row_reduction", "methods": [{"method": "block_per_row_reduction", "params": {"threads": 256}}], "plan": {"algorithm": "multi_pass", "block": 256, "combine": "shared_tree", "fast_math": false, "fused": true, "owner": "block", "restrict": false, "unroll": 1, "vector": 1}, "version": 1}

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
    __syncthreads();  // the slots are used again
    return value;
}

extern "C" __global__ void layer_norm_kernel(const float* x, const float* gamma, const float* beta, float* out, long long rows, int cols) {
    const int lane = threadIdx.x;
    const long long row = blockIdx.x;
    const float* in = x + row * cols;

    // The mean.
    float total = 0.0f;
    for (int c = lane; c < cols; c += 256) {
        const float v = in[c];
        total += v;
    }
    total = row_sum(total);
    const float mean = total / cols;

    // The variance around that mean.
    float squares = 0.0f;
    for (int c = lane; c < cols; c += 256) {
        const float v = in[c];
        squares += (v - mean) * (v - mean);
    }
    squares = row_sum(squares);
    const float scale = rsqrtf(squares / cols + 1e-05f);

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
