// fp32 matrix product C[M,N] = A[M,K] B[K,N], row-major. The register-tiled kernels need M, N, K to be
// multiples of their tiles.

// Bad: threadIdx.x walks down a column, so A and C are uncoalesced.
extern "C" __global__ void mm_uncoalesced(const float* __restrict__ A, const float* __restrict__ B,
                                          float* __restrict__ C, int M, int N, int K) {
    int r = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= M || c >= N) return;
    float s = 0.0f;
    for (int k = 0; k < K; k++) s += A[r * K + k] * B[k * N + c];
    C[r * N + c] = s;
}

extern "C" __global__ void mm_naive(const float* __restrict__ A, const float* __restrict__ B,
                                    float* __restrict__ C, int M, int N, int K) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= M || c >= N) return;
    float s = 0.0f;
    for (int k = 0; k < K; k++) s += A[r * K + k] * B[k * N + c];
    C[r * N + c] = s;
}

template <int T>
__device__ __forceinline__ void tiled(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[T][T], b[T][T];
    int tx = threadIdx.x, ty = threadIdx.y, c = blockIdx.x * T + tx, r = blockIdx.y * T + ty;
    float s = 0.0f;
    for (int k0 = 0; k0 < K; k0 += T) {
        a[ty][tx] = (r < M && k0 + tx < K) ? A[r * K + k0 + tx] : 0.0f;
        b[ty][tx] = (k0 + ty < K && c < N) ? B[(k0 + ty) * N + c] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < T; k++) s += a[ty][k] * b[k][tx];
        __syncthreads();
    }
    if (r < M && c < N) C[r * N + c] = s;
}

extern "C" __global__ void mm_tile16(const float* __restrict__ A, const float* __restrict__ B,
                                     float* __restrict__ C, int M, int N, int K) {
    tiled<16>(A, B, C, M, N, K);
}

extern "C" __global__ void mm_tile32(const float* __restrict__ A, const float* __restrict__ B,
                                     float* __restrict__ C, int M, int N, int K) {
    tiled<32>(A, B, C, M, N, K);
}

// Block 256 threads, tile 64x64x8, 4x4 outputs a thread.
extern "C" __global__ void mm_register4x4(const float* __restrict__ A, const float* __restrict__ B,
                                          float* __restrict__ C, int M, int N, int K) {
    __shared__ float a[8][64], b[8][64];
    int t = threadIdx.x, tx = t % 16, ty = t / 16, r0 = blockIdx.y * 64, c0 = blockIdx.x * 64;
    float acc[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 8) {
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int i = t + 256 * j;
            a[i % 8][i / 8] = A[(r0 + i / 8) * K + k0 + i % 8];
            b[i / 64][i % 64] = B[(k0 + i / 64) * N + c0 + i % 64];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) {
            float u[4], v[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                u[i] = a[k][ty * 4 + i];
                v[i] = b[k][tx * 4 + i];
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) acc[i][j] += u[i] * v[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) C[(r0 + ty * 4 + i) * N + c0 + tx * 4 + j] = acc[i][j];
}

#define PITCH 132  // 128 + 4: spreads the transposed stores of A over banks, keeps 16-byte alignment

__device__ __forceinline__ void multiply_8x8(const float (*a)[PITCH], const float (*b)[PITCH], int tx, int ty,
                                             float (&acc)[8][8]) {
#pragma unroll
    for (int k = 0; k < 8; k++) {
        float u[8], v[8];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float4 p = *reinterpret_cast<const float4*>(&a[k][h * 64 + ty * 4]);
            float4 q = *reinterpret_cast<const float4*>(&b[k][h * 64 + tx * 4]);
            u[4 * h] = p.x; u[4 * h + 1] = p.y; u[4 * h + 2] = p.z; u[4 * h + 3] = p.w;
            v[4 * h] = q.x; v[4 * h + 1] = q.y; v[4 * h + 2] = q.z; v[4 * h + 3] = q.w;
        }
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 8; j++) acc[i][j] += u[i] * v[j];
    }
}

__device__ __forceinline__ void store_8x8(float* C, int N, int r0, int c0, int tx, int ty, const float (&acc)[8][8]) {
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int r = r0 + (i / 4) * 64 + ty * 4 + i % 4;
            *reinterpret_cast<float4*>(&C[r * N + c0 + h * 64 + tx * 4]) =
                make_float4(acc[i][4 * h], acc[i][4 * h + 1], acc[i][4 * h + 2], acc[i][4 * h + 3]);
        }
}

// Block 256 threads, tile 128x128x8, 8x8 outputs a thread, 16-byte accesses.
extern "C" __global__ void mm_register8x8(const float* __restrict__ A, const float* __restrict__ B,
                                          float* __restrict__ C, int M, int N, int K) {
    __shared__ __align__(16) float a[8][PITCH];
    __shared__ __align__(16) float b[8][PITCH];
    int t = threadIdx.x, tx = t % 16, ty = t / 16, r0 = blockIdx.y * 128, c0 = blockIdx.x * 128;
    int ar = t / 2, ac = (t % 2) * 4, br = t / 32, bc = (t % 32) * 4;
    float acc[8][8] = {};
    for (int k0 = 0; k0 < K; k0 += 8) {
        float4 p = *reinterpret_cast<const float4*>(&A[(r0 + ar) * K + k0 + ac]);
        a[ac][ar] = p.x; a[ac + 1][ar] = p.y; a[ac + 2][ar] = p.z; a[ac + 3][ar] = p.w;
        *reinterpret_cast<float4*>(&b[br][bc]) = *reinterpret_cast<const float4*>(&B[(k0 + br) * N + c0 + bc]);
        __syncthreads();
        multiply_8x8(a, b, tx, ty, acc);
        __syncthreads();
    }
    store_8x8(C, N, r0, c0, tx, ty, acc);
}

// As above with two shared-memory buffers; the next tile is loaded to registers while this one is multiplied.
extern "C" __global__ void mm_double_buffer(const float* __restrict__ A, const float* __restrict__ B,
                                            float* __restrict__ C, int M, int N, int K) {
    __shared__ __align__(16) float a[2][8][PITCH];
    __shared__ __align__(16) float b[2][8][PITCH];
    int t = threadIdx.x, tx = t % 16, ty = t / 16, r0 = blockIdx.y * 128, c0 = blockIdx.x * 128;
    int ar = t / 2, ac = (t % 2) * 4, br = t / 32, bc = (t % 32) * 4;
    const float* pa = &A[(r0 + ar) * K + ac];
    const float* pb = &B[br * N + c0 + bc];
    float acc[8][8] = {};
    float4 p = *reinterpret_cast<const float4*>(pa), q = *reinterpret_cast<const float4*>(pb);
    a[0][ac][ar] = p.x; a[0][ac + 1][ar] = p.y; a[0][ac + 2][ar] = p.z; a[0][ac + 3][ar] = p.w;
    *reinterpret_cast<float4*>(&b[0][br][bc]) = q;
    __syncthreads();
    int cur = 0;
    for (int k0 = 8; k0 <= K; k0 += 8) {
        bool more = k0 < K;
        if (more) {
            p = *reinterpret_cast<const float4*>(pa + k0);
            q = *reinterpret_cast<const float4*>(pb + k0 * N);
        }
        multiply_8x8(a[cur], b[cur], tx, ty, acc);
        if (more) {
            cur ^= 1;
            a[cur][ac][ar] = p.x; a[cur][ac + 1][ar] = p.y; a[cur][ac + 2][ar] = p.z; a[cur][ac + 3][ar] = p.w;
            *reinterpret_cast<float4*>(&b[cur][br][bc]) = q;
            __syncthreads();
        }
    }
    store_8x8(C, N, r0, c0, tx, ty, acc);
}
