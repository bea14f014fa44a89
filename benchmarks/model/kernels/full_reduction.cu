// full sum: y[0] += sum of x. The atomic kernels need y[0] == 0 before the launch.

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

// Block of 256; the sum is valid in thread 0.
__device__ __forceinline__ float block_sum(float v) {
    __shared__ float s[8];
    v = warp_sum(v);
    if ((threadIdx.x & 31) == 0) s[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x < 8 ? s[threadIdx.x] : 0.0f;
    return threadIdx.x < 32 ? warp_sum(v) : 0.0f;
}

// Bad: every element is an atomic on one address.
extern "C" __global__ void fr_atomic_thread(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(y, x[i]);
}

extern "C" __global__ void fr_atomic_warp(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = warp_sum(i < n ? x[i] : 0.0f);
    if ((threadIdx.x & 31) == 0) atomicAdd(y, v);
}

// One element a thread, shared-memory tree, one atomic a block.
extern "C" __global__ void fr_atomic_block(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int o = 128; o; o >>= 1) {
        if (t < o) s[t] += s[t + o];
        __syncthreads();
    }
    if (t == 0) atomicAdd(y, s[0]);
}

extern "C" __global__ void fr_gridstride(const float* __restrict__ x, float* __restrict__ y, int n) {
    float v = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) v += x[i];
    v = block_sum(v);
    if (threadIdx.x == 0) atomicAdd(y, v);
}

// n % 4 == 0.
extern "C" __global__ void fr_float4(const float4* __restrict__ x, float* __restrict__ y, int n) {
    float v = 0.0f;
#pragma unroll 4
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n / 4; i += gridDim.x * 256) {
        float4 a = x[i];
        v += (a.x + a.y) + (a.z + a.w);
    }
    v = block_sum(v);
    if (threadIdx.x == 0) atomicAdd(y, v);
}

// Two levels in one launch: block sums to `part`, the last block to finish adds them up. `count` starts at and returns to 0.
extern "C" __global__ void fr_last_block(const float* __restrict__ x, float* __restrict__ y, volatile float* part,
                                         unsigned* count, int n) {
    __shared__ bool last;
    float v = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) v += x[i];
    v = block_sum(v);
    if (threadIdx.x == 0) {
        part[blockIdx.x] = v;
        __threadfence();
        last = atomicAdd(count, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    v = 0.0f;
    for (int i = threadIdx.x; i < gridDim.x; i += 256) v += part[i];
    v = block_sum(v);
    if (threadIdx.x == 0) {
        *y = v;
        *count = 0;
    }
}
