"""Starting solution of the task row_softmax: the kernels of start.cu, launched as the task file says."""

import cupy
import numpy as np

# start.cu, line by line (sha256 ec52f7a5cee1):
SOURCE = r"""// One thread a row, three passes over it.

extern "C" __global__ void row_softmax(const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* in = x + (long long)row * cols;
    float* out = y + (long long)row * cols;
    float largest = in[0];
    for (int c = 1; c < cols; c++) largest = fmaxf(largest, in[c]);
    float sum = 0.0f;
    for (int c = 0; c < cols; c++) sum += expf(in[c] - largest);
    for (int c = 0; c < cols; c++) out[c] = expf(in[c] - largest) / sum;
}
"""

MODULE = cupy.RawModule(code=SOURCE, options=("--std=c++17",))
ROW_SOFTMAX = MODULE.get_function("row_softmax")


def ceil_div(a, b):
    """a / b, rounded up."""
    return -(-a // b)


def run(x):
    rows = x.shape[0]
    cols = x.shape[1]
    y = cupy.empty((rows, cols), dtype=np.float32)
    ROW_SOFTMAX((ceil_div(rows, 64),), (64,), (x, y, np.int32(rows), np.int32(cols)))
    return y
