"""Starting solution of the task bias_gelu: the kernels of start.cu, launched as the task file says."""

import cupy
import numpy as np

# start.cu, line by line (sha256 355ef6164f47):
SOURCE = r"""// Two element-wise kernels, one element a thread; the sum travels through global memory between them.

extern "C" __global__ void add_bias(const float* x, const float* bias, float* biased, int rows, int cols) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (long long)rows * cols) biased[i] = x[i] + bias[i % cols];
}

extern "C" __global__ void gelu(const float* biased, float* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float z = biased[i];
        y[i] = 0.5f * z * (1.0f + erff(z * 0.70710678f));
    }
}
"""

MODULE = cupy.RawModule(code=SOURCE, options=("--std=c++17",))
ADD_BIAS = MODULE.get_function("add_bias")
GELU = MODULE.get_function("gelu")


def ceil_div(a, b):
    """a / b, rounded up."""
    return -(-a // b)


def run(x, bias):
    rows = x.shape[0]
    cols = x.shape[1]
    y = cupy.empty((rows, cols), dtype=np.float32)
    biased = cupy.empty((rows, cols), dtype=np.float32)
    ADD_BIAS((ceil_div(rows * cols, 256),), (256,), (x, bias, biased, np.int32(rows), np.int32(cols)))
    GELU((ceil_div(rows * cols, 256),), (256,), (biased, y, np.int64(rows * cols)))
    return y
