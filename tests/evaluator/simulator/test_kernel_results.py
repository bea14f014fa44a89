"""Kernels of every kind against NumPy: tensor cores, libm, calls, local arrays, vectors, module variables, atomics, votes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernel_bench import module_of

SOURCE = r"""
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
__device__ __noinline__ float polynomial(float x, int k) { for (int i = 0; i < k; i++) x = x * 1.5f + 0.25f; return x; }
struct Pair { float x; double y; int k; };
__device__ __noinline__ Pair twice(Pair p) { p.x *= 2; p.y *= 2; p.k += 1; return p; }
__constant__ float coefficients[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ int counter = 5;
__device__ float table[3][2] = {{1, 2}, {3, 4}, {5, 6}};
__device__ float* table_pointer = &table[1][0];
struct Parameters { float scale; int offsets[5]; const float* data; };
extern "C" {
__global__ void wmma_product(const __half* a, const __half* b, float* c, int M, int N, int K) {
  __shared__ __half tile[16 * 24];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  int row = blockIdx.y * 16, col = blockIdx.x * 16;
  for (int k = 0; k < K; k += 16) {
    for (int i = threadIdx.x; i < 256; i += 32) tile[i / 16 * 24 + i % 16] = a[(row + i / 16) * K + k + i % 16];
    __syncwarp();
    wmma::load_matrix_sync(fa, tile, 24);
    wmma::load_matrix_sync(fb, b + k * N + col, N);
    wmma::mma_sync(fc, fa, fb, fc);
    __syncwarp();
  }
  for (int i = 0; i < fc.num_elements; i++) fc.x[i] *= 0.5f;
  wmma::store_matrix_sync(c + row * N + col, fc, N, wmma::mem_row_major);
}
__global__ void mma_product(const __half* A, const __half* B, float* C, int N, int K) {
  __shared__ __align__(16) __half sA[16 * 16], sB[16 * 8];
  int l = threadIdx.x;
  float c[4] = {0, 0, 0, 0};
  int bm = blockIdx.y * 16, bn = blockIdx.x * 8;
  for (int k = 0; k < K; k += 16) {
    int r = l / 2, h = (l % 2) * 8;
    *(uint4*)&sA[r * 16 + h] = *(const uint4*)&A[(bm + r) * K + k + h];
    if (l < 16) *(uint4*)&sB[l * 8] = *(const uint4*)&B[(k + l) * N + bn];
    __syncwarp();
    unsigned a[4], b[2];
    unsigned pa = __cvta_generic_to_shared(&sA[(l % 16) * 16 + (l / 16) * 8]), pb = __cvta_generic_to_shared(&sB[(l % 16) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(pb));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    __syncwarp();
  }
  int g = l / 4, t = l % 4;
  C[(bm + g) * N + bn + t * 2] = c[0]; C[(bm + g) * N + bn + t * 2 + 1] = c[1];
  C[(bm + g + 8) * N + bn + t * 2] = c[2]; C[(bm + g + 8) * N + bn + t * 2 + 1] = c[3];
}
__global__ void libm(const float* a, float* b, double* d, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = a[i];
  b[i] = sinf(x) + expf(x) + logf(fabsf(x) + 1.0f) + sqrtf(fabsf(x)) + rsqrtf(fabsf(x) + 1) + tanhf(x) + erff(x)
       + powf(fabsf(x), 1.3f) + x / 3.7f;
  d[i] = exp((double)x) / 3.0 + log(fabs((double)x) + 1.0) * sqrt(fabs((double)x));
}
__global__ void calls(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = polynomial(a[i], i % 5) * coefficients[i & 3];
}
__global__ void struct_calls(const float* a, double* b) {
  int i = threadIdx.x;
  Pair p = {a[i], a[i] * 0.25, i};
  if (i & 1) p = twice(p);
  p = twice(p);
  b[i] = p.x + p.y * p.k;
}
__global__ void local_array(const float* a, float* b, const int* at, int n) {
  float v[32];
  for (int i = 0; i < 32; i++) v[i] = a[i * n + threadIdx.x];
  for (int k = 0; k < 8; k++) b[k * n + threadIdx.x] = v[at[k * n + threadIdx.x] & 31];
}
__global__ void module_variables(float* out) {
  if (threadIdx.x == 0) counter += 2;
  out[threadIdx.x] = table_pointer[threadIdx.x & 3] + coefficients[threadIdx.x & 3];
}
__global__ void struct_parameter(Parameters p, float* out, int i) {
  out[threadIdx.x] = p.scale * p.data[threadIdx.x] + p.offsets[i];
}
__global__ void vectors(const float4* a, float4* b, const double2* c, double2* d, const uchar4* e, uchar4* f) {
  int i = threadIdx.x;
  float4 v = a[i];
  b[i] = make_float4(v.w, v.z, v.y, v.x);
  d[i] = make_double2(c[i].y, c[i].x);
  uchar4 u = e[i];
  f[i] = make_uchar4(u.w, u.z, u.y, u.x);
}
__global__ void switches(const int* a, int* b) {
  int r;
  switch (a[threadIdx.x]) {
    case 0: r = 3; break; case 1: r = a[0] * 9; break; case 2: r = a[1] ^ 5; break; case 3: r = a[2] - 7; break;
    case 4: r = a[3] / 3; break; case 5: r = a[4] << 4; break; case 6: r = 1; break; default: r = -1;
  }
  b[threadIdx.x] = r;
}
__global__ void votes(const int* a, unsigned* b) {
  int v = a[threadIdx.x];
  b[threadIdx.x] = __ballot_sync(~0u, v > 0);
  b[64 + threadIdx.x] = __reduce_add_sync(~0u, v);
  b[128 + threadIdx.x] = __match_any_sync(~0u, v);
  b[192 + threadIdx.x] = __any_sync(~0u, v == 3) + 2 * __all_sync(~0u, v > -4);
  if (v > 0) {
    unsigned active = __activemask();
    b[256 + threadIdx.x] = __shfl_sync(active, v, __ffs(active) - 1);
  }
}
__global__ void bits(const int* a, int* b) {
  int v = a[threadIdx.x];
  b[threadIdx.x] = __popc(v);
  b[32 + threadIdx.x] = __clz(v);
  b[64 + threadIdx.x] = __brev(v);
  b[96 + threadIdx.x] = __byte_perm(v, ~v, 0x5410);
  b[128 + threadIdx.x] = __dp4a(v, a[0], 7);
}
__global__ void atomics(int* i, float* f, double* d, __half2* h, unsigned* u) {
  atomicMax(&i[0], (int)threadIdx.x * (threadIdx.x & 1 ? -1 : 1));
  atomicMin(&i[1], -(int)threadIdx.x);
  atomicAdd(f, 0.5f);
  atomicAdd(d, 0.25);
  atomicAdd(h, __floats2half2_rn(1.0f, 2.0f));
  atomicInc(u, 9);
  atomicCAS(&u[1], 0, 7);
  atomicOr(&u[2], 1u << (threadIdx.x & 31));
}
__global__ void wide_adds(const unsigned* a, const unsigned* b, unsigned* out) {
  int i = threadIdx.x;
  unsigned lo, hi;
  asm("add.cc.u32 %0, %2, %4; addc.u32 %1, %3, %5;"
      : "=r"(lo), "=r"(hi) : "r"(a[2 * i]), "r"(a[2 * i + 1]), "r"(b[2 * i]), "r"(b[2 * i + 1]));
  out[2 * i] = lo; out[2 * i + 1] = hi;
}
__global__ void index3(int* out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  out[(z * gridDim.y * blockDim.y + y) * gridDim.x * blockDim.x + x] = x + 100 * y + 10000 * z;
}
}
"""


@pytest.mark.parametrize("kernel", ["wmma_product", "mma_product"])
def test_tensor_core_products(device, rng, kernel):
    m, n, k = 32, 48, 64
    a, b = device.array(rng.standard_normal((m, k)), "f2"), device.array(rng.standard_normal((k, n)), "f2")
    c = device.zeros((m, n))
    expected = a.astype("f8") @ b.astype("f8")
    if kernel == "wmma_product":
        device.clean(SOURCE, kernel, (n // 16, m // 16), 32, [a, b, c, m, n, k])
        expected *= 0.5
    else:
        device.clean(SOURCE, kernel, (n // 8, m // 16), 32, [a, b, c, n, k])
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


def test_libm_functions(device, rng):
    n = 300
    a, b, d = device.array(rng.standard_normal(n) * 3, "f4"), device.zeros(n), device.zeros(n, "f8")
    device.clean(SOURCE, "libm", 3, 128, [a, b, d, n])
    x = a.astype("f8")
    expected = (np.sin(x) + np.exp(x) + np.log(abs(x) + 1) + np.sqrt(abs(x)) + 1 / np.sqrt(abs(x) + 1) + np.tanh(x)
                + np.array([math.erf(v) for v in x]) + abs(x) ** 1.2999999523162842 + x / 3.7)
    np.testing.assert_allclose(b, expected, rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(d, np.exp(x) / 3 + np.log(abs(x) + 1) * np.sqrt(abs(x)), rtol=1e-14)


def test_calls_with_different_depths_in_one_warp(device, rng):
    n = 200
    a, b = device.array(rng.standard_normal(n), "f4"), device.zeros(n)
    device.clean(SOURCE, "calls", 2, 128, [a, b, n])
    expected = a.astype("f8")
    for i in range(n):
        for _ in range(i % 5):
            expected[i] = expected[i] * 1.5 + 0.25
    np.testing.assert_allclose(b, expected * np.array([1, 2, 3, 4])[np.arange(n) & 3], rtol=1e-6)


def test_structs_passed_and_returned_by_value(device, rng):
    a, b = device.array(rng.standard_normal(64), "f4"), device.zeros(64, "f8")
    device.clean(SOURCE, "struct_calls", 1, 64, [a, b])
    i = np.arange(64)
    times = 1 + (i & 1)
    y = (a * np.float32(0.25)).astype("f8")
    np.testing.assert_allclose(b, a * 2.0**times + y * 2.0**times * (i + times), rtol=1e-12)


def test_local_array_with_dynamic_index(device, rng):
    n = 64
    a, at = device.array(rng.standard_normal((32, n)), "f4"), device.array(rng.integers(0, 1000, (8, n)), "i4")
    b = device.zeros((8, n))
    result = device.clean(SOURCE, "local_array", 1, n, [a, b, at, n])
    np.testing.assert_array_equal(b, np.take_along_axis(a, at & 31, 0))
    assert result.counts.local_requests > 0


def test_module_variables_keep_their_values_between_launches(device):
    out = device.zeros(4)
    module = module_of(SOURCE)
    address, size = module.global_address("counter")
    before = int(np.ctypeslib.as_array((np.ctypeslib.ctypes.c_int * 1).from_address(address))[0])
    for _ in range(2):
        device.clean(SOURCE, "module_variables", 1, 4, [out])
    after = int(np.ctypeslib.as_array((np.ctypeslib.ctypes.c_int * 1).from_address(address))[0])
    assert (size, before, after) == (4, 5, 9)
    assert out.tolist() == [4.0, 6.0, 8.0, 10.0]


def test_struct_as_kernel_parameter(device):
    data, out = device.array(np.arange(32), "f4"), device.zeros(32)
    record = np.zeros(1, np.dtype([("scale", "f4"), ("offsets", "i4", 5), ("data", "u8")]))
    record[0] = (2.0, [10, 20, 30, 40, 50], data.ctypes.data)
    device.clean(SOURCE, "struct_parameter", 1, 32, [record.tobytes(), out, 3])
    np.testing.assert_array_equal(out, data * 2 + 40)


def test_vector_types(device, rng):
    a, c = device.array(rng.standard_normal((32, 4)), "f4"), device.array(rng.standard_normal((32, 2)), "f8")
    e = device.array(rng.integers(0, 256, (32, 4)), "u1")
    b, d, f = device.zeros((32, 4)), device.zeros((32, 2), "f8"), device.zeros((32, 4), "u1")
    device.clean(SOURCE, "vectors", 1, 32, [a, b, c, d, e, f])
    for got, given in ((b, a), (d, c), (f, e)):
        np.testing.assert_array_equal(got, given[:, ::-1])


def test_switch(device):
    a, b = device.array([0, 1, 2, 3, 4, 5, 6, 7, 6, 5, 4, 3], "i4"), device.zeros(12, "i4")
    device.clean(SOURCE, "switches", 1, 12, [a, b])
    assert b.tolist() == [3, 0, 4, -5, 1, 64, 1, -1, 1, 64, 1, -5]


def test_warp_votes(device, rng):
    a = device.array(rng.integers(-3, 4, 64), "i4")
    b = device.zeros((5, 64), "u4")
    device.clean(SOURCE, "votes", 1, 64, [a, b])
    for w in (0, 32):
        v = a[w:w + 32].astype("i8")
        assert (b[0, w:w + 32] == sum(1 << i for i in range(32) if v[i] > 0)).all()
        assert (b[1, w:w + 32] == v.sum() % 2**32).all()
        assert b[2, w:w + 32].tolist() == [sum(1 << i for i in range(32) if v[i] == x) for x in v]
        assert (b[3, w:w + 32] == int((v == 3).any()) + 2 * int((v > -4).all())).all()
        assert (b[4, w:w + 32][v > 0] == v[v > 0][0]).all()


def test_bit_intrinsics(device, rng):
    a, b = device.array(rng.integers(-2**31, 2**31, 32), "i4"), device.zeros((5, 32), "i4")
    device.clean(SOURCE, "bits", 1, 32, [a, b])
    for lane, v in enumerate(int(x) & 0xFFFFFFFF for x in a):
        got = [int(x) & 0xFFFFFFFF for x in b[:, lane]]
        assert got[0] == v.bit_count()
        assert got[1] == 32 - v.bit_length()
        assert got[2] == int(f"{v:032b}"[::-1], 2)
        assert got[3] == (v & 0xFFFF) | ((~v & 0xFFFF) << 16)
        bytes_of = lambda x: np.array([x & 0xFFFFFFFF], "u4").view("i1").astype("i8")  # noqa: E731
        assert got[4] == int(bytes_of(v) @ bytes_of(int(a[0]))) + 7 & 0xFFFFFFFF


def test_atomics_of_every_type(device):
    i, f, d = device.array([-5, 5], "i4"), device.zeros(1), device.zeros(1, "f8")
    h, u = device.zeros(2, "f2"), device.zeros(3, "u4")
    device.clean(SOURCE, "atomics", 2, 64, [i, f, d, h, u])
    assert i.tolist() == [62, -63] and f[0] == 64 and d[0] == 32 and h.tolist() == [128, 256]
    assert u.tolist() == [128 % 10, 7, 2**32 - 1]


def test_carry_chain(device, rng):
    a, b = device.array(rng.integers(0, 2**64, 32, dtype="u8")), device.array(rng.integers(0, 2**64, 32, dtype="u8"))
    out = device.zeros(32, "u8")
    device.clean(SOURCE, "wide_adds", 1, 32, [a, b, out])
    np.testing.assert_array_equal(out, a + b)


def test_three_dimensional_grids(device):
    out = device.zeros((4, 6, 10), "i4")
    device.clean(SOURCE, "index3", (2, 3, 2), (5, 2, 2), [out])
    z, y, x = np.indices(out.shape)
    np.testing.assert_array_equal(out, x + 100 * y + 10000 * z)


def test_only_the_chosen_blocks_run(device):
    out = device.zeros((4, 6, 10), "i4")
    result = device.clean(SOURCE, "index3", (2, 3, 2), (5, 2, 2), [out], blocks=[0, 11])
    assert result.blocks_run == 2
    assert out[3, 5, 9] == 9 + 500 + 30000 and out[0, 2, 0] == 0
