// row sums: y[r] = sum over c of x[r * cols + c].

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

// Bad: lanes of a warp read addresses a whole row apart.
extern "C" __global__ void rr_thread_row(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float s = 0.0f;
#pragma unroll 1
    for (int c = 0; c < cols; c++) s += x[r * cols + c];
    y[r] = s;
}

// Interleaved tree: modulo test, divergent warps, strided shared-memory access.
extern "C" __global__ void rr_tree_modulo(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float s[256];
    int t = threadIdx.x;
    float v = 0.0f;
    for (int c = t; c < cols; c += 256) v += x[blockIdx.x * cols + c];
    s[t] = v;
    __syncthreads();
    for (int o = 1; o < 256; o *= 2) {
        if (t % (2 * o) == 0) s[t] += s[t + o];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}

extern "C" __global__ void rr_tree(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float s[256];
    int t = threadIdx.x;
    float v = 0.0f;
    for (int c = t; c < cols; c += 256) v += x[blockIdx.x * cols + c];
    s[t] = v;
    __syncthreads();
    for (int o = 128; o; o >>= 1) {
        if (t < o) s[t] += s[t + o];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}

// One warp a row.
extern "C" __global__ void rr_warp(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    if (r >= rows) return;
    float v = 0.0f;
    for (int c = lane; c < cols; c += 32) v += x[r * cols + c];
    v = warp_sum(v);
    if (lane == 0) y[r] = v;
}

// One block a row, 16-byte loads, warp shuffles. cols % 4 == 0.
extern "C" __global__ void rr_float4(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float s[8];
    const float4* row = reinterpret_cast<const float4*>(x + blockIdx.x * cols);
    float v = 0.0f;
#pragma unroll 4
    for (int c = threadIdx.x; c < cols / 4; c += 256) {
        float4 a = row[c];
        v += (a.x + a.y) + (a.z + a.w);
    }
    v = warp_sum(v);
    if ((threadIdx.x & 31) == 0) s[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = warp_sum(threadIdx.x < 8 ? s[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) y[blockIdx.x] = v;
    }
}
