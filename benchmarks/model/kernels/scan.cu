// Inclusive prefix sum of every row; 1024 columns.

extern "C" __global__ void ps_thread_row(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float v = 0.0f;
    for (int c = 0; c < cols; c++) y[(size_t)r * cols + c] = v += x[(size_t)r * cols + c];
}

extern "C" __global__ void ps_hillis(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float s[2][1024];
    int t = threadIdx.x, from = 0;
    s[0][t] = x[(size_t)blockIdx.x * cols + t];
    __syncthreads();
    for (int o = 1; o < 1024; o *= 2) {
        s[1 - from][t] = s[from][t] + (t >= o ? s[from][t - o] : 0.0f);
        from = 1 - from;
        __syncthreads();
    }
    y[(size_t)blockIdx.x * cols + t] = s[from][t];
}

__device__ __forceinline__ float warp_scan(float v) {
#pragma unroll
    for (int o = 1; o < 32; o *= 2) {
        float w = __shfl_up_sync(0xffffffffu, v, o);
        if ((threadIdx.x & 31) >= o) v += w;
    }
    return v;
}

extern "C" __global__ void ps_shuffle(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float s[32];
    int t = threadIdx.x;
    float v = warp_scan(x[(size_t)blockIdx.x * cols + t]);
    if ((t & 31) == 31) s[t / 32] = v;
    __syncthreads();
    if (t < 32) s[t] = warp_scan(s[t]);
    __syncthreads();
    y[(size_t)blockIdx.x * cols + t] = v + (t >= 32 ? s[t / 32 - 1] : 0.0f);
}

// 256 threads, four consecutive elements each.
extern "C" __global__ void ps_float4(const float4* __restrict__ x, float4* __restrict__ y, int rows, int cols) {
    __shared__ float s[8];
    int t = threadIdx.x;
    float4 v = x[(size_t)blockIdx.x * 256 + t];
    v.y += v.x;
    v.z += v.y;
    v.w += v.z;
    float sum = warp_scan(v.w);
    if ((t & 31) == 31) s[t / 32] = sum;
    __syncthreads();
    float before = sum - v.w;
    for (int w = 0; w < t / 32; w++) before += s[w];
    y[(size_t)blockIdx.x * 256 + t] = make_float4(v.x + before, v.y + before, v.z + before, v.w + before);
}

extern "C" __global__ void ps_warp_row(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    float carry = 0.0f;
    for (int c = lane; c < cols; c += 32) {
        float v = warp_scan(x[(size_t)r * cols + c]) + carry;
        y[(size_t)r * cols + c] = v;
        carry = __shfl_sync(0xffffffffu, v, 31);
    }
}
