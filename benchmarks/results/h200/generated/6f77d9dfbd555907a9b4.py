"""Starting solution of the task layer_norm: the kernels of start.cu, launched as the task file says."""

import cupy
import numpy as np

# start.cu, line by line (sha256 3775751892aa):
SOURCE = r"""// One thread a row: a pass for the mean, one for the variance, one to write.

extern "C" __global__ void layer_norm(const float* x, const float* gamma, const float* beta, float* y, int rows, int cols,
                                      float eps) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* in = x + (long long)row * cols;
    float* out = y + (long long)row * cols;
    float sum = 0.0f;
    for (int c = 0; c < cols; c++) sum += in[c];
    float mean = sum / cols;
    float squares = 0.0f;
    for (int c = 0; c < cols; c++) squares += (in[c] - mean) * (in[c] - mean);
    float scale = rsqrtf(squares / cols + eps);
    for (int c = 0; c < cols; c++) out[c] = (in[c] - mean) * scale * gamma[c] + beta[c];
}
"""

MODULE = cupy.RawModule(code=SOURCE, options=("--std=c++17",))
LAYER_NORM = MODULE.get_function("layer_norm")


def ceil_div(a, b):
    """a / b, rounded up."""
    return -(-a // b)


def run(x, gamma, beta):
    rows = x.shape[0]
    cols = x.shape[1]
    y = cupy.empty((rows, cols), dtype=np.float32)
    LAYER_NORM((ceil_div(rows, 64),), (64,), (x, gamma, beta, y, np.int32(rows), np.int32(cols), np.float32(1e-05)))
    return y
