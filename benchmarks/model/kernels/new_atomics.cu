// 1024-bin histogram of values spread evenly, y[h(x)]++; and sums of n floats in 64 groups by float atomics, y[h(x)] += v.

__device__ __forceinline__ int bin_of(int v, int bins) { return (unsigned(v) * 2654435761u >> 20) & (bins - 1); }

extern "C" __global__ void ua_global(const int* __restrict__ x, unsigned* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&y[bin_of(x[i], 1024)], 1u);
}

extern "C" __global__ void ua_shared(const int* __restrict__ x, unsigned* __restrict__ y, int n) {
    __shared__ unsigned bins[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[bin_of(x[i], 1024)], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 1024; i += blockDim.x)
        if (bins[i]) atomicAdd(&y[i], bins[i]);
}

// One small block an element range: the bins are flushed far more often than they are worth.
extern "C" __global__ void ua_shared_small(const int* __restrict__ x, unsigned* __restrict__ y, int n) {
    __shared__ unsigned bins[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    int first = blockIdx.x * 4096;
    for (int i = threadIdx.x; i < 4096 && first + i < n; i += blockDim.x) atomicAdd(&bins[bin_of(x[first + i], 1024)], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 1024; i += blockDim.x)
        if (bins[i]) atomicAdd(&y[i], bins[i]);
}

extern "C" __global__ void uf_global(const int* __restrict__ x, const float* __restrict__ v, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&y[bin_of(x[i], 64)], v[i]);
}

extern "C" __global__ void uf_shared(const int* __restrict__ x, const float* __restrict__ v, float* __restrict__ y, int n) {
    __shared__ float sums[64];
    if (threadIdx.x < 64) sums[threadIdx.x] = 0.f;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&sums[bin_of(x[i], 64)], v[i]);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&y[threadIdx.x], sums[threadIdx.x]);
}

extern "C" __global__ void uf_warp_private(const int* __restrict__ x, const float* __restrict__ v, float* __restrict__ y, int n) {
    __shared__ float sums[8][65];
    for (int i = threadIdx.x; i < 8 * 65; i += blockDim.x) sums[i / 65][i % 65] = 0.f;
    __syncthreads();
    float* mine = sums[threadIdx.x / 32];
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[bin_of(x[i], 64)], v[i]);
    __syncthreads();
    if (threadIdx.x < 64) {
        float sum = 0.f;
        for (int w = 0; w < 8; w++) sum += sums[w][threadIdx.x];
        atomicAdd(&y[threadIdx.x], sum);
    }
}
