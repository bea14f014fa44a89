// layer normalisation along rows: y = (x - mean) / sqrt(var + 1e-5) * g + b, population variance.
#define EPS 1e-5f

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

// Block of 256; every thread gets the sum. `s` is free again on return.
__device__ __forceinline__ float block_sum(float v, float* s) {
    v = warp_sum(v);
    if ((threadIdx.x & 31) == 0) s[threadIdx.x / 32] = v;
    __syncthreads();
    float r = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++) r += s[i];
    __syncthreads();
    return r;
}

// Bad: one thread a row, three uncoalesced passes.
extern "C" __global__ void ln_thread_row(const float* __restrict__ x, const float* __restrict__ g,
                                         const float* __restrict__ b, float* __restrict__ y, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* p = x + r * cols;
    float s = 0.0f, q = 0.0f;
#pragma unroll 1
    for (int c = 0; c < cols; c++) s += p[c];
    float mean = s / cols;
#pragma unroll 1
    for (int c = 0; c < cols; c++) q += (p[c] - mean) * (p[c] - mean);
    float inv = rsqrtf(q / cols + EPS);
#pragma unroll 1
    for (int c = 0; c < cols; c++) y[r * cols + c] = (p[c] - mean) * inv * g[c] + b[c];
}

// One block a row: mean, variance and output each read the row again.
extern "C" __global__ void ln_two_pass(const float* __restrict__ x, const float* __restrict__ g,
                                       const float* __restrict__ b, float* __restrict__ y, int rows, int cols) {
    __shared__ float s[8];
    const float* p = x + blockIdx.x * cols;
    float v = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) v += p[c];
    float mean = block_sum(v, s) / cols;
    v = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) v += (p[c] - mean) * (p[c] - mean);
    float inv = rsqrtf(block_sum(v, s) / cols + EPS);
    for (int c = threadIdx.x; c < cols; c += 256) y[blockIdx.x * cols + c] = (p[c] - mean) * inv * g[c] + b[c];
}

// Sum and sum of squares in one pass.
extern "C" __global__ void ln_sum_squares(const float* __restrict__ x, const float* __restrict__ g,
                                          const float* __restrict__ b, float* __restrict__ y, int rows, int cols) {
    __shared__ float s[8];
    const float* p = x + blockIdx.x * cols;
    float a = 0.0f, q = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) {
        float v = p[c];
        a += v;
        q += v * v;
    }
    float mean = block_sum(a, s) / cols;
    float inv = rsqrtf(block_sum(q, s) / cols - mean * mean + EPS);
    for (int c = threadIdx.x; c < cols; c += 256) y[blockIdx.x * cols + c] = (p[c] - mean) * inv * g[c] + b[c];
}

__device__ __forceinline__ void combine(float& n, float& mean, float& m2, float n2, float mean2, float m22) {
    float t = n + n2, d = mean2 - mean, f = t > 0.0f ? n2 / t : 0.0f;
    mean += d * f;
    m2 += m22 + d * d * n * f;
    n = t;
}

// Running mean and squared deviation (a division an element), combined by shuffles.
extern "C" __global__ void ln_welford(const float* __restrict__ x, const float* __restrict__ g,
                                      const float* __restrict__ b, float* __restrict__ y, int rows, int cols) {
    __shared__ float s[3][8];
    const float* p = x + blockIdx.x * cols;
    float n = 0.0f, mean = 0.0f, m2 = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) {
        float v = p[c], d = v - mean;
        n += 1.0f;
        mean += d / n;
        m2 += d * (v - mean);
    }
#pragma unroll
    for (int o = 16; o; o >>= 1) {
        float a = __shfl_xor_sync(0xffffffffu, n, o), m = __shfl_xor_sync(0xffffffffu, mean, o),
              q = __shfl_xor_sync(0xffffffffu, m2, o);
        combine(n, mean, m2, a, m, q);
    }
    int w = threadIdx.x / 32;
    if ((threadIdx.x & 31) == 0) {
        s[0][w] = n;
        s[1][w] = mean;
        s[2][w] = m2;
    }
    __syncthreads();
    n = mean = m2 = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++) combine(n, mean, m2, s[0][i], s[1][i], s[2][i]);
    float inv = rsqrtf(m2 / cols + EPS);
    for (int c = threadIdx.x; c < cols; c += 256) y[blockIdx.x * cols + c] = (p[c] - mean) * inv * g[c] + b[c];
}

// One float4 a thread held in registers: one read of the row. cols <= 1024, cols % 4 == 0.
extern "C" __global__ void ln_float4(const float* __restrict__ x, const float* __restrict__ g,
                                     const float* __restrict__ b, float* __restrict__ y, int rows, int cols) {
    __shared__ float s[8];
    int c = threadIdx.x * 4;
    bool on = c < cols;
    float4 v = on ? *reinterpret_cast<const float4*>(x + blockIdx.x * cols + c) : make_float4(0, 0, 0, 0);
    float mean = block_sum((v.x + v.y) + (v.z + v.w), s) / cols;
    float4 d = make_float4(v.x - mean, v.y - mean, v.z - mean, v.w - mean);
    float q = on ? (d.x * d.x + d.y * d.y) + (d.z * d.z + d.w * d.w) : 0.0f;
    float inv = rsqrtf(block_sum(q, s) / cols + EPS);
    if (on) {
        float4 gg = *reinterpret_cast<const float4*>(g + c), bb = *reinterpret_cast<const float4*>(b + c);
        *reinterpret_cast<float4*>(y + blockIdx.x * cols + c) =
            make_float4(d.x * inv * gg.x + bb.x, d.y * inv * gg.y + bb.y, d.z * inv * gg.z + bb.z, d.w * inv * gg.w + bb.w);
    }
}
