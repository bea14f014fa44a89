// The kernels of h200_naive_gemm_relu_softmax.ncu-*.csv. Launched once each: gemm 128x128 blocks of 16x16 with N = 2048,
// relu 262144 blocks of 256 with n = 2^26, softmax 4096 blocks of 256 with n = 16384 and 1024 bytes of dynamic shared memory.
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int N) {
    int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < N && c < N) {
        float s = 0;
        for (int k = 0; k < N; k++) s += A[r * N + k] * B[k * N + c];
        C[r * N + c] = s;
    }
}

extern "C" __global__ void relu(const float* x, float* y, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}

extern "C" __global__ void softmax(const float* x, float* y, int n) {
    extern __shared__ float s[];
    const float* p = x + (size_t)blockIdx.x * n;
    float m = -1e30f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) m = fmaxf(m, p[i]);
    s[threadIdx.x] = m;
    __syncthreads();
    for (int o = blockDim.x / 2; o; o >>= 1) {
        if (threadIdx.x < o) s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + o]);
        __syncthreads();
    }
    m = s[0];
    __syncthreads();
    float t = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) t += expf(p[i] - m);
    s[threadIdx.x] = t;
    __syncthreads();
    for (int o = blockDim.x / 2; o; o >>= 1) {
        if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o];
        __syncthreads();
    }
    t = s[0];
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[(size_t)blockIdx.x * n + i] = expf(p[i] - m) / t;
}
