// softmax along rows.
#define LOWEST (-3.402823e38f)

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}
__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
    for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}

// Block of 256; every thread gets the result. `s` is free again on return.
template <bool IS_MAX>
__device__ __forceinline__ float block_all(float v, float* s) {
    v = IS_MAX ? warp_max(v) : warp_sum(v);
    if ((threadIdx.x & 31) == 0) s[threadIdx.x / 32] = v;
    __syncthreads();
    float r = s[0];
#pragma unroll
    for (int i = 1; i < 8; i++) r = IS_MAX ? fmaxf(r, s[i]) : r + s[i];
    __syncthreads();
    return r;
}

// Bad: one thread a row, three passes, uncoalesced.
extern "C" __global__ void sm_thread_row(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* p = x + r * cols;
    float m = LOWEST, s = 0.0f;
#pragma unroll 1
    for (int c = 0; c < cols; c++) m = fmaxf(m, p[c]);
#pragma unroll 1
    for (int c = 0; c < cols; c++) s += expf(p[c] - m);
#pragma unroll 1
    for (int c = 0; c < cols; c++) y[r * cols + c] = expf(p[c] - m) / s;
}

// One block a row, three passes over global memory, shared-memory trees.
extern "C" __global__ void sm_block3(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float s[256];
    int t = threadIdx.x;
    const float* p = x + blockIdx.x * cols;
    float m = LOWEST;
    for (int c = t; c < cols; c += 256) m = fmaxf(m, p[c]);
    s[t] = m;
    __syncthreads();
    for (int o = 128; o; o >>= 1) {
        if (t < o) s[t] = fmaxf(s[t], s[t + o]);
        __syncthreads();
    }
    m = s[0];
    __syncthreads();
    float z = 0.0f;
    for (int c = t; c < cols; c += 256) z += expf(p[c] - m);
    s[t] = z;
    __syncthreads();
    for (int o = 128; o; o >>= 1) {
        if (t < o) s[t] += s[t + o];
        __syncthreads();
    }
    z = s[0];
    for (int c = t; c < cols; c += 256) y[blockIdx.x * cols + c] = expf(p[c] - m) / z;
}

// One pass for maximum and sum (running rescale), one to write.
extern "C" __global__ void sm_online(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float s[8];
    const float* p = x + blockIdx.x * cols;
    float m = LOWEST, z = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) {
        float v = p[c], n = fmaxf(m, v);
        z = z * expf(m - n) + expf(v - n);
        m = n;
    }
    float all = block_all<true>(m, s);
    z = block_all<false>(z * expf(m - all), s);
    float inv = 1.0f / z;
    for (int c = threadIdx.x; c < cols; c += 256) y[blockIdx.x * cols + c] = expf(p[c] - all) * inv;
}

// The row is kept in dynamic shared memory: one read of global memory, three of shared.
extern "C" __global__ void sm_smem_row(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    extern __shared__ float row[];
    __shared__ float s[8];
    float m = LOWEST, z = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) {
        float v = x[blockIdx.x * cols + c];
        row[c] = v;
        m = fmaxf(m, v);
    }
    m = block_all<true>(m, s);
    for (int c = threadIdx.x; c < cols; c += 256) {
        float e = expf(row[c] - m);
        row[c] = e;
        z += e;
    }
    float inv = 1.0f / block_all<false>(z, s);
    for (int c = threadIdx.x; c < cols; c += 256) y[blockIdx.x * cols + c] = row[c] * inv;
}

// One warp a row, the row in registers. cols <= 1024.
extern "C" __global__ void sm_warp_registers(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    if (r >= rows) return;
    float v[32], m = LOWEST, z = 0.0f;
#pragma unroll
    for (int j = 0; j < 32; j++) {
        int c = j * 32 + lane;
        v[j] = c < cols ? x[r * cols + c] : LOWEST;
        m = fmaxf(m, v[j]);
    }
    m = warp_max(m);
#pragma unroll
    for (int j = 0; j < 32; j++) {
        v[j] = expf(v[j] - m);
        z += v[j];
    }
    float inv = 1.0f / warp_sum(z);
#pragma unroll
    for (int j = 0; j < 32; j++) {
        int c = j * 32 + lane;
        if (c < cols) y[r * cols + c] = v[j] * inv;
    }
}

// One block of 256 a row, one float4 a thread. cols <= 1024, cols % 4 == 0.
extern "C" __global__ void sm_float4(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float s[8];
    int c = threadIdx.x * 4;
    float4 v = c < cols ? *reinterpret_cast<const float4*>(x + blockIdx.x * cols + c)
                        : make_float4(LOWEST, LOWEST, LOWEST, LOWEST);
    float m = block_all<true>(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)), s);
    v = make_float4(expf(v.x - m), expf(v.y - m), expf(v.z - m), expf(v.w - m));
    float inv = 1.0f / block_all<false>((v.x + v.y) + (v.z + v.w), s);
    if (c < cols)
        *reinterpret_cast<float4*>(y + blockIdx.x * cols + c) =
            make_float4(v.x * inv, v.y * inv, v.z * inv, v.w * inv);
}
