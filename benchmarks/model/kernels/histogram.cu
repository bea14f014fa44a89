// hi_*: 256-bin histogram of n values, spread evenly; hk_*: the same with nine in ten values equal.
// ct_*: how many of n floats are positive.

__device__ __forceinline__ void flush_bins(const unsigned* bins, unsigned* y) {
    __syncthreads();
    if (bins[threadIdx.x]) atomicAdd(&y[threadIdx.x], bins[threadIdx.x]);
}

#define HISTOGRAM(NAME)                                                                                               \
    extern "C" __global__ void NAME##_global(const int* __restrict__ x, unsigned* __restrict__ y, int n) {            \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                                \
        if (i < n) atomicAdd(&y[x[i]], 1u);                                                                           \
    }                                                                                                                 \
    extern "C" __global__ void NAME##_shared(const int* __restrict__ x, unsigned* __restrict__ y, int n) {            \
        __shared__ unsigned bins[256];                                                                                \
        bins[threadIdx.x] = 0;                                                                                        \
        __syncthreads();                                                                                              \
        for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&bins[x[i]], 1u);         \
        flush_bins(bins, y);                                                                                          \
    }                                                                                                                 \
    extern "C" __global__ void NAME##_shared_int4(const int4* __restrict__ x, unsigned* __restrict__ y, int n) {      \
        __shared__ unsigned bins[256];                                                                                \
        bins[threadIdx.x] = 0;                                                                                        \
        __syncthreads();                                                                                              \
        for (int i = blockIdx.x * 256 + threadIdx.x; i < n / 4; i += gridDim.x * 256) {                               \
            int4 v = x[i];                                                                                            \
            atomicAdd(&bins[v.x], 1u);                                                                                \
            atomicAdd(&bins[v.y], 1u);                                                                                \
            atomicAdd(&bins[v.z], 1u);                                                                                \
            atomicAdd(&bins[v.w], 1u);                                                                                \
        }                                                                                                             \
        flush_bins(bins, y);                                                                                          \
    }                                                                                                                 \
    extern "C" __global__ void NAME##_warp_private(const int* __restrict__ x, unsigned* __restrict__ y, int n) {      \
        __shared__ unsigned bins[8 * 257];                                                                            \
        for (int i = threadIdx.x; i < 8 * 257; i += 256) bins[i] = 0;                                                 \
        __syncthreads();                                                                                              \
        unsigned* mine = bins + threadIdx.x / 32 * 257;                                                               \
        for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&mine[x[i]], 1u);         \
        __syncthreads();                                                                                              \
        unsigned sum = 0;                                                                                             \
        for (int w = 0; w < 8; w++) sum += bins[w * 257 + threadIdx.x];                                               \
        atomicAdd(&y[threadIdx.x], sum);                                                                              \
    }

HISTOGRAM(hi)
HISTOGRAM(hk)

extern "C" __global__ void ct_atomic_thread(const float* __restrict__ x, unsigned* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0.0f) atomicAdd(y, 1u);
}

extern "C" __global__ void ct_atomic_value(const float* __restrict__ x, unsigned* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = i < n && x[i] > 0.0f ? (x[i] > 1e30f ? 2u : 1u) : 0u;
    if (v) atomicAdd(y, v);
}

extern "C" __global__ void ct_ballot(const float* __restrict__ x, unsigned* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned votes = __ballot_sync(0xffffffffu, i < n && x[i] > 0.0f);
    if ((threadIdx.x & 31) == 0) atomicAdd(y, (unsigned)__popc(votes));
}

extern "C" __global__ void ct_block(const float* __restrict__ x, unsigned* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int votes = __syncthreads_count(i < n && x[i] > 0.0f);
    if (threadIdx.x == 0) atomicAdd(y, (unsigned)votes);
}

extern "C" __global__ void ct_gridstride(const float* __restrict__ x, unsigned* __restrict__ y, int n) {
    __shared__ unsigned sums[8];
    unsigned count = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) count += x[i] > 0.0f;
    for (int o = 16; o; o >>= 1) count += __shfl_xor_sync(0xffffffffu, count, o);
    if ((threadIdx.x & 31) == 0) sums[threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; w++) count += sums[w];
        atomicAdd(y, count);
    }
}
