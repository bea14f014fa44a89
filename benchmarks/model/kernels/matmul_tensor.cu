// tensor-core matrix product C[M,N] = A[M,K] B[K,N], row-major, fp32 accumulation. A and B are half
// (mt_wmma_*) or fp32 rounded to tf32 (mt_tf32_*). M, N, K must be multiples of the tiles.
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

typedef wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> FragA;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> FragB;
typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> FragC;

// Block of 4 warps side by side, 16x16 outputs a warp, fragments straight from global memory.
extern "C" __global__ void mt_tf32_simple(const float* __restrict__ A, const float* __restrict__ B,
                                          float* __restrict__ C, int M, int N, int K) {
    int r = blockIdx.y * 16, c = (blockIdx.x * 4 + threadIdx.x / 32) * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> acc;
    wmma::fill_fragment(acc, 0.0f);
    for (int k = 0; k < K; k += 8) {
        wmma::load_matrix_sync(a, A + r * K + k, K);
        wmma::load_matrix_sync(b, B + k * N + c, N);
#pragma unroll
        for (int i = 0; i < a.num_elements; i++) a.x[i] = wmma::__float_to_tf32(a.x[i]);
#pragma unroll
        for (int i = 0; i < b.num_elements; i++) b.x[i] = wmma::__float_to_tf32(b.x[i]);
        wmma::mma_sync(acc, a, b, acc);
    }
    wmma::store_matrix_sync(C + r * N + c, acc, N, wmma::mem_row_major);
}

extern "C" __global__ void mt_wmma_simple(const half* __restrict__ A, const half* __restrict__ B,
                                          float* __restrict__ C, int M, int N, int K) {
    int r = blockIdx.y * 16, c = (blockIdx.x * 4 + threadIdx.x / 32) * 16;
    FragA a;
    FragB b;
    FragC acc;
    wmma::fill_fragment(acc, 0.0f);
    for (int k = 0; k < K; k += 16) {
        wmma::load_matrix_sync(a, A + r * K + k, K);
        wmma::load_matrix_sync(b, B + k * N + c, N);
        wmma::mma_sync(acc, a, b, acc);
    }
    wmma::store_matrix_sync(C + r * N + c, acc, N, wmma::mem_row_major);
}

// Block of 4 warps (2x2), 32x32 outputs a warp: each fragment from global memory is used twice.
extern "C" __global__ void mt_wmma_register(const half* __restrict__ A, const half* __restrict__ B,
                                            float* __restrict__ C, int M, int N, int K) {
    int w = threadIdx.x / 32, r = blockIdx.y * 64 + (w / 2) * 32, c = blockIdx.x * 64 + (w % 2) * 32;
    FragA a[2];
    FragB b[2];
    FragC acc[2][2];
#pragma unroll
    for (int i = 0; i < 4; i++) wmma::fill_fragment(acc[i / 2][i % 2], 0.0f);
    for (int k = 0; k < K; k += 16) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            wmma::load_matrix_sync(a[i], A + (r + 16 * i) * K + k, K);
            wmma::load_matrix_sync(b[i], B + k * N + c + 16 * i, N);
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) wmma::mma_sync(acc[i][j], a[i], b[j], acc[i][j]);
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++)
            wmma::store_matrix_sync(C + (r + 16 * i) * N + c + 16 * j, acc[i][j], N, wmma::mem_row_major);
}

// Block of 4 warps, tile 64x64x32 staged in shared memory, PAD halfs between rows.
template <int PAD>
__device__ __forceinline__ void staged(const half* A, const half* B, float* C, int N, int K) {
    __shared__ __align__(128) half a[64][32 + PAD];
    __shared__ __align__(128) half b[32][64 + PAD];
    int t = threadIdx.x, w = t / 32, wr = (w / 2) * 32, wc = (w % 2) * 32, r0 = blockIdx.y * 64, c0 = blockIdx.x * 64;
    FragA fa[2];
    FragB fb[2];
    FragC acc[2][2];
#pragma unroll
    for (int i = 0; i < 4; i++) wmma::fill_fragment(acc[i / 2][i % 2], 0.0f);
    for (int k0 = 0; k0 < K; k0 += 32) {
#pragma unroll
        for (int j = 0; j < 2; j++) {  // 256 chunks of 16 bytes each for A and B
            int i = t + 128 * j;
            *reinterpret_cast<uint4*>(&a[i / 4][(i % 4) * 8]) =
                *reinterpret_cast<const uint4*>(&A[(r0 + i / 4) * K + k0 + (i % 4) * 8]);
            *reinterpret_cast<uint4*>(&b[i / 8][(i % 8) * 8]) =
                *reinterpret_cast<const uint4*>(&B[(k0 + i / 8) * N + c0 + (i % 8) * 8]);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k += 16) {
#pragma unroll
            for (int i = 0; i < 2; i++) {
                wmma::load_matrix_sync(fa[i], &a[wr + 16 * i][k], 32 + PAD);
                wmma::load_matrix_sync(fb[i], &b[k][wc + 16 * i], 64 + PAD);
            }
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) wmma::mma_sync(acc[i][j], fa[i], fb[j], acc[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++)
            wmma::store_matrix_sync(C + (r0 + wr + 16 * i) * N + c0 + wc + 16 * j, acc[i][j], N, wmma::mem_row_major);
}

extern "C" __global__ void mt_wmma_smem_conflict(const half* __restrict__ A, const half* __restrict__ B,
                                                 float* __restrict__ C, int M, int N, int K) {
    staged<0>(A, B, C, N, K);
}

extern "C" __global__ void mt_wmma_smem_padded(const half* __restrict__ A, const half* __restrict__ B,
                                               float* __restrict__ C, int M, int N, int K) {
    staged<8>(A, B, C, N, K);
}

__device__ __forceinline__ void copy16(void* to, const void* from) {
    unsigned s = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s), "l"(from) : "memory");
}

// Block of 8 warps, tile 128x128x32, 64x32 outputs a warp, two stages filled by cp.async.
extern "C" __global__ void mt_wmma_async(const half* __restrict__ A, const half* __restrict__ B,
                                         float* __restrict__ C, int M, int N, int K) {
    __shared__ __align__(128) half a[2][128][40];
    __shared__ __align__(128) half b[2][32][136];
    int t = threadIdx.x, w = t / 32, wr = (w / 4) * 64, wc = (w % 4) * 32, r0 = blockIdx.y * 128, c0 = blockIdx.x * 128;
    FragA fa[4];
    FragB fb[2];
    FragC acc[4][2];
#pragma unroll
    for (int i = 0; i < 8; i++) wmma::fill_fragment(acc[i / 2][i % 2], 0.0f);
    auto fill = [&](int stage, int k0) {
#pragma unroll
        for (int j = 0; j < 2; j++) {  // 512 chunks of 16 bytes each for A and B
            int i = t + 256 * j;
            copy16(&a[stage][i / 4][(i % 4) * 8], &A[(r0 + i / 4) * K + k0 + (i % 4) * 8]);
            copy16(&b[stage][i / 16][(i % 16) * 8], &B[(k0 + i / 16) * N + c0 + (i % 16) * 8]);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    fill(0, 0);
    int cur = 0;
    for (int k0 = 0; k0 < K; k0 += 32) {
        if (k0 + 32 < K) {
            fill(cur ^ 1, k0 + 32);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k += 16) {
#pragma unroll
            for (int i = 0; i < 4; i++) wmma::load_matrix_sync(fa[i], &a[cur][wr + 16 * i][k], 40);
#pragma unroll
            for (int j = 0; j < 2; j++) wmma::load_matrix_sync(fb[j], &b[cur][k][wc + 16 * j], 136);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) wmma::mma_sync(acc[i][j], fa[i], fb[j], acc[i][j]);
        }
        __syncthreads();
        cur ^= 1;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 2; j++)
            wmma::store_matrix_sync(C + (r0 + wr + 16 * i) * N + c0 + wc + 16 * j, acc[i][j], N, wmma::mem_row_major);
}
