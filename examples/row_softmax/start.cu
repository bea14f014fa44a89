// One thread a row, three passes over it.

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
