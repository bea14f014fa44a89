// Reuse between nearby blocks. uv_*: 7-point stencil of a cube; ub_*: 5 x 5 box of an image; edges repeat.

__device__ __forceinline__ float at3(const float* x, int i, int j, int k, int n) {
    i = min(max(i, 0), n - 1); j = min(max(j, 0), n - 1); k = min(max(k, 0), n - 1);
    return x[((size_t)k * n + j) * n + i];
}

__device__ __forceinline__ void seven(const float* x, float* y, int i, int j, int k, int n) {
    y[((size_t)k * n + j) * n + i] = 0.5f * at3(x, i, j, k, n) + 0.0833f * (at3(x, i - 1, j, k, n) + at3(x, i + 1, j, k, n) +
        at3(x, i, j - 1, k, n) + at3(x, i, j + 1, k, n) + at3(x, i, j, k - 1, n) + at3(x, i, j, k + 1, n));
}

extern "C" __global__ void uv_row(const float* __restrict__ x, float* __restrict__ y, int n) {
    seven(x, y, blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y, blockIdx.z, n);
}

extern "C" __global__ void uv_brick(const float* __restrict__ x, float* __restrict__ y, int n) {
    seven(x, y, blockIdx.x * 32 + threadIdx.x, blockIdx.y * 4 + threadIdx.y, blockIdx.z * 2 + threadIdx.z, n);
}

// A thread walks along z and keeps its column in registers.
extern "C" __global__ void uv_march(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 8 + threadIdx.y, first = blockIdx.z * 32;
    float below = at3(x, i, j, first - 1, n), here = at3(x, i, j, first, n);
    for (int k = first; k < first + 32; k++) {
        float above = at3(x, i, j, k + 1, n);
        y[((size_t)k * n + j) * n + i] = 0.5f * here + 0.0833f * (at3(x, i - 1, j, k, n) + at3(x, i + 1, j, k, n) +
            at3(x, i, j - 1, k, n) + at3(x, i, j + 1, k, n) + below + above);
        below = here;
        here = above;
    }
}

__device__ __forceinline__ float at2(const float* x, int r, int c, int rows, int cols) {
    return x[(size_t)min(max(r, 0), rows - 1) * cols + min(max(c, 0), cols - 1)];
}

extern "C" __global__ void ub_naive(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.f;
#pragma unroll
    for (int i = -2; i <= 2; i++)
#pragma unroll
        for (int j = -2; j <= 2; j++) sum += at2(x, r + i, c + j, rows, cols);
    y[(size_t)r * cols + c] = 0.04f * sum;
}

extern "C" __global__ void ub_tile(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float s[12][36];
    int r0 = blockIdx.y * 8, c0 = blockIdx.x * 32;
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 12 * 36; i += 256) s[i / 36][i % 36] = at2(x, r0 + i / 36 - 2, c0 + i % 36 - 2, rows, cols);
    __syncthreads();
    float sum = 0.f;
#pragma unroll
    for (int i = 0; i < 5; i++)
#pragma unroll
        for (int j = 0; j < 5; j++) sum += s[threadIdx.y + i][threadIdx.x + j];
    y[(size_t)(r0 + threadIdx.y) * cols + c0 + threadIdx.x] = 0.04f * sum;
}
