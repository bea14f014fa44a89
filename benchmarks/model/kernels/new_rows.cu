// Row sums. ur_*: many short rows (64 columns); up_*: long rows, one thread each, apart by a power of two or not.

extern "C" __global__ void ur_tiny_block(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const float* row = x + (size_t)blockIdx.x * cols;
    float sum = 0.f;
    for (int c = threadIdx.x; c < cols; c += 32) sum += row[c];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

extern "C" __global__ void ur_warp(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (r >= rows) return;
    const float* row = x + (size_t)r * cols;
    float sum = 0.f;
    for (int c = lane; c < cols; c += 32) sum += row[c];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) y[r] = sum;
}

extern "C" __global__ void ur_thread(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* row = x + (size_t)r * cols;
    float sum = 0.f;
    for (int c = 0; c < cols; c++) sum += row[c];
    y[r] = sum;
}

// Sixteen lanes a row, 16-byte loads.
extern "C" __global__ void ur_half_warp(const float4* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, r = at / 16;
    if (r >= rows) return;
    float4 v = x[at];
    float sum = v.x + v.y + v.z + v.w;
    for (int d = 8; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 16 == 0) y[r] = sum;
}

extern "C" __global__ void up_thread(const float* __restrict__ x, float* __restrict__ y, int rows, int cols, int pitch) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* row = x + (size_t)r * pitch;
    float sum = 0.f;
    for (int c = 0; c < cols; c++) sum += row[c];
    y[r] = sum;
}

extern "C" __global__ void up_thread4(const float* __restrict__ x, float* __restrict__ y, int rows, int cols, int pitch) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float4* row = (const float4*)(x + (size_t)r * pitch);
    float sum = 0.f;
    for (int c = 0; c < cols / 4; c++) {
        float4 v = row[c];
        sum += v.x + v.y + v.z + v.w;
    }
    y[r] = sum;
}
