// uk_*: C = A B with a small C and a long K (M = N = 256): too few tiles for the device unless K is split.
// uw_*: few warps a scheduler: y = p(x) by Horner's rule, 512 steps, blocks that fill a multiprocessor's shared memory.

extern "C" __global__ void uk_tile(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
    __shared__ float a[16][17], b[16][17];
    int r = blockIdx.y * 16 + threadIdx.y, c = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.f;
    for (int k = 0; k < K; k += 16) {
        a[threadIdx.y][threadIdx.x] = A[(size_t)r * K + k + threadIdx.x];
        b[threadIdx.y][threadIdx.x] = B[(size_t)(k + threadIdx.y) * N + c];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; i++) sum += a[threadIdx.y][i] * b[i][threadIdx.x];
        __syncthreads();
    }
    C[(size_t)r * N + c] = sum;
}

// gridDim.z parts of K, added up by atomics.
extern "C" __global__ void uk_split(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
    __shared__ float a[16][17], b[16][17];
    int r = blockIdx.y * 16 + threadIdx.y, c = blockIdx.x * 16 + threadIdx.x, part = K / gridDim.z, first = blockIdx.z * part;
    float sum = 0.f;
    for (int k = first; k < first + part; k += 16) {
        a[threadIdx.y][threadIdx.x] = A[(size_t)r * K + k + threadIdx.x];
        b[threadIdx.y][threadIdx.x] = B[(size_t)(k + threadIdx.y) * N + c];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; i++) sum += a[threadIdx.y][i] * b[i][threadIdx.x];
        __syncthreads();
    }
    atomicAdd(&C[(size_t)r * N + c], sum);
}

// A warp an output, lanes along K: both operands would have to be rows, so B is read down a column.
extern "C" __global__ void uk_warp(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
    int at = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, r = at / N, c = at % N;
    if (r >= M) return;
    float sum = 0.f;
    for (int k = lane; k < K; k += 32) sum += A[(size_t)r * K + k] * B[(size_t)k * N + c];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) C[(size_t)r * N + c] = sum;
}

template <int ILP>
__device__ __forceinline__ void horner(const float* x, float* y, int n) {
    extern __shared__ float unused[];
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += ILP * stride) {
        float v[ILP], p[ILP];
#pragma unroll
        for (int k = 0; k < ILP; k++) v[k] = i + k * stride < n ? x[i + k * stride] : 0.f, p[k] = 0.5f;
        for (int s = 0; s < 512; s++)
#pragma unroll
            for (int k = 0; k < ILP; k++) p[k] = p[k] * v[k] * 0.25f + 0.125f;
#pragma unroll
        for (int k = 0; k < ILP; k++)
            if (i + k * stride < n) y[i + k * stride] = p[k];
    }
}

extern "C" __global__ void uw_one(const float* __restrict__ x, float* __restrict__ y, int n) { horner<1>(x, y, n); }
extern "C" __global__ void uw_four(const float* __restrict__ x, float* __restrict__ y, int n) { horner<4>(x, y, n); }
