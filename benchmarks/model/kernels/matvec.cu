// mv_*: y = A x, A of rows x cols.  mx_*: y = transposed A times x. y is zero before the launch.

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

extern "C" __global__ void mv_thread_row(const float* __restrict__ a, const float* __restrict__ x, float* __restrict__ y,
                                         int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float v = 0.0f;
    for (int c = 0; c < cols; c++) v += a[(size_t)r * cols + c] * x[c];
    y[r] = v;
}

extern "C" __global__ void mv_warp_row(const float* __restrict__ a, const float* __restrict__ x, float* __restrict__ y,
                                       int rows, int cols) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    if (r >= rows) return;
    float v = 0.0f;
    for (int c = lane; c < cols; c += 32) v += a[(size_t)r * cols + c] * x[c];
    v = warp_sum(v);
    if (lane == 0) y[r] = v;
}

extern "C" __global__ void mv_float4(const float4* __restrict__ a, const float4* __restrict__ x, float* __restrict__ y,
                                     int rows, int cols) {
    __shared__ float s[8];
    float v = 0.0f;
    for (int c = threadIdx.x; c < cols / 4; c += 256) {
        float4 p = a[(size_t)blockIdx.x * (cols / 4) + c], q = x[c];
        v += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
    }
    v = warp_sum(v);
    if ((threadIdx.x & 31) == 0) s[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; w++) v += s[w];
        y[blockIdx.x] = v;
    }
}

extern "C" __global__ void mx_thread_column(const float* __restrict__ a, const float* __restrict__ x,
                                            float* __restrict__ y, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0.0f;
    for (int r = 0; r < rows; r++) v += a[(size_t)r * cols + c] * x[r];
    y[c] = v;
}

// A block row of 64 rows for each blockIdx.y, added atomically.
extern "C" __global__ void mx_split_atomic(const float* __restrict__ a, const float* __restrict__ x,
                                           float* __restrict__ y, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * 64;
    float v = 0.0f;
#pragma unroll 8
    for (int r = first; r < first + 64; r++) v += a[(size_t)r * cols + c] * x[r];
    atomicAdd(&y[c], v);
}

// One atomic a row and column block: a warp reduces 32 columns of one row for nobody, so every element is an atomic.
extern "C" __global__ void mx_element_atomic(const float* __restrict__ a, const float* __restrict__ x,
                                             float* __restrict__ y, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
    atomicAdd(&y[c], a[(size_t)r * cols + c] * x[r]);
}
