// One element a thread: coalesced reads, writes a whole row of y apart.

extern "C" __global__ void transpose(const float* x, float* y, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < rows && c < cols) y[(long long)c * rows + r] = x[(long long)r * cols + c];
}
