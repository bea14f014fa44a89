"""Correct kernels whose synchronisation is subtle: results right, no finding."""

from __future__ import annotations

import numpy as np

SOURCE = r"""
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
namespace cg = cooperative_groups;
extern "C" {
__global__ void tree_reduction(const float* a, float* out) {
  __shared__ float s[256];
  s[threadIdx.x] = a[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  for (int o = 128; o; o >>= 1) {
    if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
__global__ void warp_synchronous(const float* a, float* out) {
  __shared__ float s[64];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) {
    float v = s[threadIdx.x] + s[threadIdx.x + 32];
    for (int o = 16; o; o >>= 1) {
      __syncwarp();
      s[threadIdx.x] = v;
      __syncwarp();
      v += s[threadIdx.x ^ o];
    }
    if (threadIdx.x == 0) out[0] = v;
  }
}
__global__ void shuffle_reduction(const float* a, float* out, int n) {
  __shared__ float part[32];
  float v = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) v += a[i];
  for (int o = 16; o; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f;
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    if (threadIdx.x == 0) out[0] = v;
  }
}
__global__ void double_buffer(const float* a, float* b, int steps) {
  __shared__ float s[2][128];
  float sum = 0.0f;
  s[0][threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  for (int k = 0; k < steps; k++) {
    if (k + 1 < steps) s[(k + 1) & 1][threadIdx.x] = a[(k + 1) * 128 + threadIdx.x];
    sum += s[k & 1][127 - threadIdx.x];
    __syncthreads();
  }
  b[threadIdx.x] = sum;
}
__global__ void async_pipeline(const float4* a, float4* b, int steps) {
  __shared__ float4 s[2][128];
  float4 sum = make_float4(0, 0, 0, 0);
  __pipeline_memcpy_async(&s[0][threadIdx.x], &a[threadIdx.x], 16);
  __pipeline_commit();
  for (int k = 0; k < steps; k++) {
    if (k + 1 < steps) __pipeline_memcpy_async(&s[(k + 1) & 1][threadIdx.x], &a[(k + 1) * 128 + threadIdx.x], 16);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    float4 v = s[k & 1][127 - threadIdx.x];
    sum.x += v.x; sum.y += v.y; sum.z += v.z; sum.w += v.w;
    __syncthreads();
  }
  b[threadIdx.x] = sum;
}
__global__ void early_return(const float* a, float* b, int n) {
  __shared__ float s[128];
  if (threadIdx.x >= n) return;
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  b[threadIdx.x] = s[n - 1 - threadIdx.x];
}
__global__ void same_value_flag(const float* a, int* out) {
  __shared__ int found;
  found = 0;
  __syncthreads();
  if (a[threadIdx.x] > 0.0f) found = 1;
  __syncthreads();
  out[threadIdx.x] = found;
}
__global__ void half_transpose(const __half* a, __half* b) {
  __shared__ __half t[32][33];
  t[threadIdx.y][threadIdx.x] = a[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  b[threadIdx.y * 32 + threadIdx.x] = t[threadIdx.x][threadIdx.y];
}
__global__ void bytes_by_column(const unsigned char* a, unsigned char* b) {
  __shared__ unsigned char t[32][32];
  t[threadIdx.x][threadIdx.y] = a[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  b[threadIdx.y * 32 + threadIdx.x] = t[threadIdx.y][threadIdx.x];
}
__global__ void histogram(const int* a, int* b, int n) {
  __shared__ int h[64];
  if (threadIdx.x < 64) h[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&h[a[i] & 63], 1);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&b[threadIdx.x], h[threadIdx.x]);
}
__global__ void tiles_of_eight(const float* a, float* b) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  float v = cg::reduce(tile, a[threadIdx.x], cg::plus<float>());
  b[threadIdx.x] = v + tile.shfl(a[threadIdx.x], 3);
}
__global__ void lock_between_warps(int* total) {
  __shared__ int lock, sum;
  if (threadIdx.x == 0) { lock = 0; sum = 0; }
  __syncthreads();
  if ((threadIdx.x & 31) == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) { }
    atomicAdd(&sum, (int)threadIdx.x);
    atomicExch(&lock, 0);
  }
  __syncthreads();
  if (threadIdx.x == 0) total[0] = sum;
}
__global__ void lock_between_lanes(int* state) {
  bool done = false;
  while (!done) {
    if (atomicCAS(&state[0], 0, 1) == 0) { state[1] += 1; __threadfence(); atomicExch(&state[0], 0); done = true; }
  }
}
__global__ void warp_roles(const float* a, float* b) {
  __shared__ float s[32];
  if (threadIdx.x < 32) {
    s[threadIdx.x] = a[threadIdx.x];
    asm volatile("bar.sync 1, 64;");
  } else {
    asm volatile("bar.sync 1, 64;");
    b[threadIdx.x - 32] = s[63 - threadIdx.x];
  }
}
__global__ void radix_sort(unsigned* a) {
  using Sort = cub::BlockRadixSort<unsigned, 128, 4>;
  __shared__ typename Sort::TempStorage temp;
  unsigned v[4];
  for (int i = 0; i < 4; i++) v[i] = a[threadIdx.x * 4 + i];
  Sort(temp).Sort(v);
  for (int i = 0; i < 4; i++) a[threadIdx.x * 4 + i] = v[i];
}
__global__ void scan(const int* a, int* b) {
  using Scan = cub::BlockScan<int, 256>;
  __shared__ typename Scan::TempStorage temp;
  int v;
  Scan(temp).InclusiveSum(a[threadIdx.x], v);
  b[threadIdx.x] = v;
}
__global__ void votes_at_barrier(const int* a, int* b) {
  int any = __syncthreads_or(a[threadIdx.x] == 3), all = __syncthreads_and(a[threadIdx.x] < 100);
  b[threadIdx.x] = any * 10000 + all * 1000 + __syncthreads_count(a[threadIdx.x] > 5);
}
}
"""


def test_tree_reduction(device, rng):
    a = device.array(rng.standard_normal(1024), "f4")
    out = device.zeros(4)
    device.clean(SOURCE, "tree_reduction", 4, 256, [a, out])
    np.testing.assert_allclose(out, a.reshape(4, 256).sum(1), rtol=1e-4, atol=1e-4)


def test_warp_synchronous_code_with_syncwarp(device, rng):
    a = device.array(rng.standard_normal(64), "f4")
    out = device.zeros(1)
    device.clean(SOURCE, "warp_synchronous", 1, 64, [a, out])
    np.testing.assert_allclose(out[0], a.sum(), rtol=1e-4, atol=1e-5)


def test_shuffle_reduction(device, rng):
    a = device.array(rng.standard_normal(1000), "f4")
    out = device.zeros(1)
    device.clean(SOURCE, "shuffle_reduction", 1, 192, [a, out, 1000])
    np.testing.assert_allclose(out[0], a.sum(dtype="f8"), rtol=1e-4, atol=1e-4)


def test_double_buffer(device, rng):
    a = device.array(rng.standard_normal((5, 128)), "f4")
    b = device.zeros(128)
    device.clean(SOURCE, "double_buffer", 1, 128, [a, b, 5])
    np.testing.assert_allclose(b, a.sum(0)[::-1], rtol=1e-4, atol=1e-5)


def test_async_copy_pipeline(device, rng):
    a = device.array(rng.standard_normal((5, 128, 4)), "f4")
    b = device.zeros((128, 4))
    device.clean(SOURCE, "async_pipeline", 1, 128, [a, b, 5])
    np.testing.assert_allclose(b, a.sum(0)[::-1], rtol=1e-4, atol=1e-5)


def test_threads_that_return_before_a_barrier(device, rng):
    a = device.array(rng.standard_normal(128), "f4")
    b = device.zeros(128)
    device.clean(SOURCE, "early_return", 1, 128, [a, b, 77])
    np.testing.assert_array_equal(b[:77], a[:77][::-1])
    assert not b[77:].any()


def test_many_threads_store_the_same_flag(device):
    out = device.zeros(128, "i4")
    device.clean(SOURCE, "same_value_flag", 1, 128, [device.array(np.arange(128) - 5, "f4"), out])
    assert (out == 1).all()


def test_neighbouring_halves_and_bytes_of_one_word_are_no_race(device, rng):
    a = device.array(rng.standard_normal((32, 32)), "f2")
    b = device.zeros((32, 32), "f2")
    device.clean(SOURCE, "half_transpose", 1, (32, 32), [a, b])
    np.testing.assert_array_equal(b, a.T)
    c, d = device.array(rng.integers(0, 256, (32, 32)), "u1"), device.zeros((32, 32), "u1")
    device.clean(SOURCE, "bytes_by_column", 1, (32, 32), [c, d])
    np.testing.assert_array_equal(d, c.T)


def test_shared_and_global_atomics(device, rng):
    a = device.array(rng.integers(0, 1000, 5000), "i4")
    b = device.zeros(64, "i4")
    device.clean(SOURCE, "histogram", 4, 256, [a, b, 5000], threads=2)
    np.testing.assert_array_equal(b, np.bincount(a & 63, minlength=64))


def test_cooperative_tiles_with_masks_of_their_own(device, rng):
    a = device.array(rng.standard_normal(64), "f4")
    b = device.zeros(64)
    device.clean(SOURCE, "tiles_of_eight", 1, 64, [a, b])
    tiles = a.reshape(8, 8)
    np.testing.assert_allclose(b.reshape(8, 8), np.repeat(tiles.sum(1) + tiles[:, 3], 8).reshape(8, 8), rtol=1e-5, atol=1e-5)


def test_locks_between_warps_and_between_lanes_make_progress(device):
    total = device.zeros(1, "i4")
    device.clean(SOURCE, "lock_between_warps", 1, 128, [total], budget=2_000_000)
    assert total[0] == 32 + 64 + 96
    state = device.zeros(2, "i4")
    device.clean(SOURCE, "lock_between_lanes", 1, 64, [state], budget=2_000_000)
    assert state.tolist() == [0, 64]


def test_named_barrier_between_two_warps(device, rng):
    a = device.array(rng.standard_normal(32), "f4")
    b = device.zeros(32)
    device.clean(SOURCE, "warp_roles", 1, 64, [a, b])
    np.testing.assert_array_equal(b, a[::-1])


def test_cub_sort_and_scan(device, rng):
    a = device.array(rng.integers(0, 2**32, 512), "u4")
    expected = np.sort(a)
    device.clean(SOURCE, "radix_sort", 1, 128, [a])
    np.testing.assert_array_equal(a, expected)
    c, d = device.array(rng.integers(0, 9, 256), "i4"), device.zeros(256, "i4")
    device.clean(SOURCE, "scan", 1, 256, [c, d])
    np.testing.assert_array_equal(d, np.cumsum(c))


def test_reductions_at_barriers(device):
    a = device.array(np.arange(96) % 10, "i4")
    b = device.zeros(96, "i4")
    device.clean(SOURCE, "votes_at_barrier", 1, 96, [a, b])
    assert (b == 11000 + int((a > 5).sum())).all()
