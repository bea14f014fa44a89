"""Libraries that come with CUDA: cooperative groups, cub block primitives, cuda::pipeline, cuda::barrier, cuda::atomic_ref."""

from __future__ import annotations

import numpy as np

from benchmarks.probes.integers import words
from benchmarks.probes.probe import Case, Group

GROUP = Group("libraries", """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>
#include <cuda/barrier>
#include <cuda/atomic>
#include <cuda/std/complex>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
namespace cg = cooperative_groups;""", block=(128,))
RNG = np.random.Generator
N = 128


def numbers(rng: RNG, n: int = N) -> np.ndarray:
    """Small integers."""
    return rng.integers(-50, 50, n, dtype="i4")


@GROUP.probe("""(const int* a, int* out) {
  auto block = cg::this_thread_block(); auto t = cg::tiled_partition<32>(block); auto u = cg::tiled_partition<8>(t);
    auto w = cg::tiled_partition<4>(block);
  int i = block.thread_rank(), v = a[i];
  out[i] = cg::reduce(t, v, cg::plus<int>()); out[128 + i] = cg::reduce(u, v, cg::greater<int>());
    out[256 + i] = cg::reduce(w, v, cg::bit_xor<int>());
  out[384 + i] = u.shfl_xor(v, 3) + u.shfl_down(v, 2) * 1000;
    out[512 + i] = u.ballot(v > 0) | u.any(v == 7) << 8 | u.meta_group_rank() << 16;
}""")
def tiles(rng: RNG) -> Case:
    """cg::tiled_partition of 32, 8, 4: reduce (plus, greater, bit_xor), shfl, ballot, any, meta_group_rank."""
    a = numbers(rng)
    def expected() -> dict[str, np.ndarray]:
        i = np.arange(N)
        down = np.where(i % 8 + 2 < 8, a[np.minimum(i + 2, N - 1)], a)
        eight = a.reshape(-1, 8)
        ballot = ((eight > 0) << np.arange(8)).sum(1) | (eight == 7).any(1) << 8
        out = [a.reshape(-1, 32).sum(1).repeat(32), eight.max(1).repeat(8), np.bitwise_xor.reduce(a.reshape(-1, 4),
                                                                                                  1).repeat(4),
               a[i ^ 3] + down * 1000, ballot.repeat(8) | i % 32 // 8 << 16]
        return {"out": np.concatenate(out).astype("i4")}
    return Case({"a": a, "out": np.zeros(640, "i4")}, expected)


@GROUP.probe("""(const int* a, int* out, int* counter) {
  auto t = cg::tiled_partition<32>(cg::this_thread_block()); int i = threadIdx.x, v = a[i];
  if (v > 0) { auto g = cg::coalesced_threads(); out[i] = g.size() * 100 + g.thread_rank();
    if (g.thread_rank() == 0) atomicAdd(counter, g.size());
    out[128 + i] = cg::reduce(g, v, cg::plus<int>()); }
  auto l = cg::labeled_partition(t, v & 3); out[256 + i] = cg::reduce(l, v, cg::plus<int>());
  out[384 + i] = cg::inclusive_scan(t, v, cg::plus<int>()); out[512 + i] = cg::exclusive_scan(t, v, cg::plus<int>());
  out[640 + i] = (int)cg::reduce(t, (float)v, cg::less<float>());
}""")
def coalesced(rng: RNG) -> Case:
    """cg::coalesced_threads, labeled_partition, inclusive_scan, exclusive_scan, float reduce."""
    a = numbers(rng)
    def expected() -> dict[str, np.ndarray]:
        out = np.zeros((6, N), "i4")
        for w in range(4):
            x = a[32 * w:32 * w + 32]
            at = slice(32 * w, 32 * w + 32)
            positive = x > 0
            out[0, at] = np.where(positive, positive.sum() * 100 + np.cumsum(positive) - 1, 0)
            out[1, at] = np.where(positive, x[positive].sum(), 0)
            out[2, at] = [(x[(x & 3) == (v & 3)]).sum() for v in x]
            out[3, at], out[4, at], out[5, at] = np.cumsum(x), np.cumsum(x) - x, x.min()
        return {"out": out.ravel(), "counter": np.array([(a > 0).sum()], "i4")}
    return Case({"a": a, "out": np.zeros(768, "i4"), "counter": np.zeros(1, "i4")}, expected)


@GROUP.probe("""(const int* a, int* out) {
  __shared__ int s[128]; __shared__ cuda::barrier<cuda::thread_scope_block> bar; __shared__ alignas(16) int q[128];
    auto g = cg::this_thread_block();
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  g.sync(); cg::memcpy_async(g, s, a, 512); cg::wait(g); out[threadIdx.x] = s[127 - threadIdx.x];
  cuda::memcpy_async(g, q, a + 128, cuda::aligned_size_t<16>(512), bar); bar.arrive_and_wait();
    out[128 + threadIdx.x] = q[127 - threadIdx.x];
}""")
def asynchronous_copies(rng: RNG) -> Case:
    """cg::memcpy_async and wait; block.sync; cuda::memcpy_async with cuda::barrier."""
    a = numbers(rng, 256)
    return Case({"a": a, "out": np.zeros(256, "i4")}, lambda: {"out": a.reshape(2, 128)[:, ::-1].ravel()})


@GROUP.probe("""(const int* a, int* out) {
  __shared__ int s[128]; __shared__ cuda::barrier<cuda::thread_scope_block> full; int t = threadIdx.x;
  if (t == 0) init(&full, blockDim.x);
  __syncthreads();
  for (int k = 0; k < 3; k++) {
    s[t] = a[k * 128 + t]; auto token = full.arrive(); full.wait(cuda::std::move(token)); out[k * 128 + t] = s[127 - t];
      full.arrive_and_wait();
  }
  if (t >= 64) { full.arrive_and_drop(); return; }
  full.arrive_and_wait(); s[t] = a[t] * 2; full.arrive_and_wait(); out[384 + t] = s[63 - t];
}""")
def barriers(rng: RNG) -> Case:
    """cuda::barrier: arrive, wait, arrive_and_drop, phases."""
    a = numbers(rng, 384)
    return Case({"a": a, "out": np.zeros(448, "i4")},
                lambda: {"out": np.concatenate([a.reshape(3, 128)[:, ::-1].ravel(), a[:64][::-1] * 2])})


@GROUP.probe("""(const int4* a, int4* out) {
  __shared__ int4 s[2][128]; __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto g = cg::this_thread_block(); int t = threadIdx.x;
  auto p = cuda::make_pipeline();
  for (int k = 0; k < 2; k++) { p.producer_acquire();
    cuda::memcpy_async(&s[k][t], a + k * 128 + t, cuda::aligned_size_t<16>(16), p); p.producer_commit(); }
  for (int k = 0; k < 2; k++) { cuda::pipeline_consumer_wait_prior<0>(p); __syncthreads(); out[k * 128 + t] = s[k][127 - t];
    p.consumer_release(); __syncthreads(); }
  auto q = cuda::make_pipeline(g, &state);
  q.producer_acquire(); cuda::memcpy_async(g, s[0], a, cuda::aligned_size_t<16>(2048), q); q.producer_commit();
  q.consumer_wait(); out[256 + t] = s[0][127 - t]; q.consumer_release();
}""")
def pipelines(rng: RNG) -> Case:
    """cuda::pipeline: thread scope with two stages; block scope with shared state."""
    a = words(rng, 1024, "i4")
    def expected() -> dict[str, np.ndarray]:
        rows = a.reshape(2, 128, 4)[:, ::-1]
        return {"out": np.concatenate([rows.ravel(), rows[0].ravel()])}
    return Case({"a": a, "out": np.zeros(1536, "i4")}, expected)


@GROUP.probe("""(const int* a, int* r, unsigned long long* w) {
  int i = threadIdx.x; cuda::atomic_ref<int, cuda::thread_scope_device> x(r[0]), y(r[1]);
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_system> z(w[0]);
  x.fetch_add(a[i], cuda::memory_order_relaxed); y.fetch_max(a[i], cuda::memory_order_acq_rel);
    z.fetch_add(3, cuda::memory_order_release);
  int old = r[2]; cuda::atomic_ref<int, cuda::thread_scope_block> c(r[2]); while (!c.compare_exchange_weak(old, old + a[i])) {}
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
  cuda::atomic_ref<int, cuda::thread_scope_device> mine(r[4 + i]); mine.store(a[i], cuda::memory_order_release);
    r[4 + i] = mine.load(cuda::memory_order_acquire) + 1;
}""")
def atomic_refs(rng: RNG) -> Case:
    """cuda::atomic_ref: fetch_add, fetch_max, compare_exchange, load, store, orders; atomic_thread_fence."""
    a = numbers(rng)
    def expected() -> dict[str, np.ndarray]:
        return {"r": np.concatenate([[a.sum(), max(a.max(), 0), a.sum(), 0], a + 1]).astype("i4"), "w": np.array([3 * N], "u8")}
    return Case({"a": a, "r": np.zeros(132, "i4"), "w": np.zeros(1, "u8")}, expected)


@GROUP.probe("""(const int* a, int* out) {
  using A = cub::BlockReduce<int, 128, cub::BLOCK_REDUCE_RAKING>;
    using B = cub::BlockReduce<int, 128, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  using C = cub::BlockReduce<int, 128, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>; using W = cub::WarpReduce<int>;
  __shared__ typename A::TempStorage x; __shared__ typename B::TempStorage y; __shared__ typename C::TempStorage z;
    __shared__ typename W::TempStorage w[4];
  int t = threadIdx.x, v = a[t]; auto larger = [](int p, int q) { return p > q ? p : q; };
  int r0 = A(x).Sum(v), r1 = B(y).Reduce(v, larger), r2 = C(z).Sum(v), r3 = W(w[t / 32]).Sum(v); __syncthreads();
  int r4 = B(y).Sum(v, 100);
  if (t == 0) { out[0] = r0; out[1] = r1; out[2] = r2; out[3] = r4; } if (t % 32 == 0) out[4 + t / 32] = r3;
}""")
def cub_reductions(rng: RNG) -> Case:
    """cub::BlockReduce (three algorithms), WarpReduce, with Sum, Max, a lambda, part of a block."""
    a = numbers(rng)
    return Case({"a": a, "out": np.zeros(8, "i4")}, lambda: {"out": np.array(
        [a.sum(), a.max(), a.sum(), a[:100].sum(), *a.reshape(4, 32).sum(1)], "i4")})


@GROUP.probe("""(const int* a, int* out) {
  using S = cub::BlockScan<int, 128, cub::BLOCK_SCAN_WARP_SCANS>;
    using R = cub::BlockScan<int, 128, cub::BLOCK_SCAN_RAKING>; using W = cub::WarpScan<int>;
  __shared__ typename S::TempStorage x; __shared__ typename R::TempStorage y; __shared__ typename W::TempStorage w[4];
  int t = threadIdx.x, v = a[t], p, q, r, total; S(x).InclusiveSum(v, p); R(y).ExclusiveSum(v, q, total);
    W(w[t / 32]).ExclusiveSum(v, r);
  out[t] = p; out[128 + t] = q; out[256 + t] = r; out[384 + t] = total;
}""")
def cub_scans(rng: RNG) -> Case:
    """cub::BlockScan inclusive, exclusive, with aggregate; WarpScan."""
    a = numbers(rng)
    def expected() -> dict[str, np.ndarray]:
        warp = a.reshape(4, 32)
        return {"out": np.concatenate([np.cumsum(a), np.cumsum(a) - a, (np.cumsum(warp, 1) - warp).ravel(), np.full(N,
                                                                                                                    a.sum())]).astype("i4")}
    return Case({"a": a, "out": np.zeros(512, "i4")}, expected)


@GROUP.probe("""(const unsigned* a, unsigned* out, unsigned* pairs) {
  using S = cub::BlockRadixSort<unsigned, 128, 4>; using P = cub::BlockRadixSort<unsigned, 128, 2, unsigned>;
    using M = cub::BlockMergeSort<unsigned, 128, 2>;
  __shared__ union { typename S::TempStorage s; typename P::TempStorage p; typename M::TempStorage m; } at;
    int t = threadIdx.x; unsigned v[4], k[2], w[2], m[2];
  for (int i = 0; i < 4; i++) v[i] = a[4 * t + i]; for (int i = 0; i < 2; i++) { k[i] = a[2 * t + i] % 61; w[i] = 2 * t + i;
    m[i] = a[2 * t + i]; }
  S(at.s).Sort(v); __syncthreads(); P(at.p).SortDescending(k, w); __syncthreads();
    M(at.m).Sort(m, [](unsigned p, unsigned q) { return p < q; });
  for (int i = 0; i < 4; i++) out[4 * t + i] = v[i]; for (int i = 0; i < 2; i++) { pairs[2 * t + i] = k[i];
    pairs[256 + 2 * t + i] = w[i]; pairs[512 + 2 * t + i] = m[i]; }
}""")
def cub_sorts(rng: RNG) -> Case:
    """cub::BlockRadixSort of keys, of pairs descending; BlockMergeSort."""
    a = words(rng, 512)
    def expected() -> dict[str, np.ndarray]:
        keys = a[:256] % 61
        order = np.argsort(-keys.astype("i8"), kind="stable")
        return {"out": np.sort(a), "pairs": np.concatenate([keys[order], order.astype("u4"), np.sort(a[:256])])}
    return Case({"a": a, "out": np.zeros(512, "u4"), "pairs": np.zeros(768, "u4")}, expected)


@GROUP.probe("""(int* a, int* out, unsigned* histogram, int* flags) {
  using L = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using V = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_VECTORIZE>;
  using S = cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>; using X = cub::BlockExchange<int, 128, 4>;
    using H = cub::BlockHistogram<unsigned char, 128, 4, 16>;
  using D = cub::BlockDiscontinuity<int, 128>;
  __shared__ union { typename L::TempStorage l; typename V::TempStorage v; typename S::TempStorage s;
    typename X::TempStorage x; typename H::TempStorage h; typename D::TempStorage d; } at;
  __shared__ unsigned bins[16]; int v[4], w[4], heads[4]; unsigned char b[4];
  L(at.l).Load(a, v); __syncthreads(); V(at.v).Load(a, w); __syncthreads();
  for (int i = 0; i < 4; i++) { b[i] = (unsigned char)(v[i] & 15); w[i] += v[i]; }
  X(at.x).BlockedToStriped(v, v); __syncthreads(); H(at.h).Histogram(b, bins); __syncthreads();
  D(at.d).FlagHeads(heads, w, [](int p, int q) { return p / 64 != q / 64; }); __syncthreads(); S(at.s).Store(out, w);
  for (int i = 0; i < 4; i++) { out[512 + 128 * i + threadIdx.x] = v[i]; flags[4 * threadIdx.x + i] = heads[i]; }
    if (threadIdx.x < 16) histogram[threadIdx.x] = bins[threadIdx.x];
}""")
def cub_movement(rng: RNG) -> Case:
    """cub::BlockLoad and BlockStore (vectorize, transpose, striped), BlockExchange, BlockHistogram, BlockDiscontinuity."""
    a = rng.integers(0, 1000, 512, dtype="i4")
    def expected() -> dict[str, np.ndarray]:
        twice = 2 * a
        heads = np.concatenate([[1], twice[1:] // 64 != twice[:-1] // 64]).astype("i4")
        return {"out": np.concatenate([twice, a]), "histogram": np.bincount(a & 15, minlength=16).astype("u4"), "flags": heads}
    return Case({"a": a.copy(), "out": np.zeros(1024, "i4"), "histogram": np.zeros(16, "u4"), "flags": np.zeros(512, "i4")},
                expected)


@GROUP.probe("""(const float2* a, float2* out) {
  int i = threadIdx.x; cuda::std::complex<float> x(a[i].x, a[i].y), y(2.0f, 1.0f); auto p = x * y;
    cuda::std::array<float, 3> v{p.real(), p.imag(), 1.0f};
  auto t = cuda::std::make_tuple(v[0] + v[2], v[1]); unsigned b = cuda::std::bit_cast<unsigned>(a[i].x);
  out[i] = make_float2(cuda::std::get<0>(t) + (b >> 31),
    cuda::std::get<1>(t) < cuda::std::numeric_limits<float>::max() ? cuda::std::get<1>(t) : 0);
}""")
def standard_library(rng: RNG) -> Case:
    """cuda::std::complex, array, tuple, optional, bit_cast, numeric_limits."""
    a = rng.integers(-50, 50, 256).astype("f4")
    def expected() -> dict[str, np.ndarray]:
        z = (a[::2] + 1j * a[1::2]) * (2 + 1j)
        return {"out": np.stack([z.real + 1 + np.signbit(a[::2]), z.imag], 1).ravel().astype("f4")}
    return Case({"a": a, "out": np.zeros(256, "f4")}, expected)


@GROUP.probe("""(const int* a, int* out) {
  auto c = cg::this_cluster(); __shared__ int s[32]; __shared__ int sum;
    int t = threadIdx.x, b = blockIdx.y * gridDim.x + blockIdx.x;
  s[t] = a[32 * b + t]; if (t == 0) sum = 0;
  c.sync();
  int* far = c.map_shared_rank(s, c.block_rank() ^ 3); out[32 * b + t] = far[t]; atomicAdd(c.map_shared_rank(&sum, 0), s[t]);
  c.sync();
  if (t == 0) out[128 + b] = c.block_rank() == 0 ? sum : -1;
    if (t == 1) out[132 + b] = c.block_index().y * 10 + c.block_index().x;
}""", attributes="__cluster_dims__(2, 2, 1)", grid=(2, 2), block=(32,))
def cluster_groups(rng: RNG) -> Case:
    """cg::this_cluster: map_shared_rank (generic), atomics in another block's shared memory, two-dimensional clusters."""
    a = rng.integers(-99, 99, 128, dtype="i4")
    return Case({"a": a, "out": np.zeros(136, "i4")}, lambda: {
        "out": np.concatenate([a.reshape(4, 32)[::-1].ravel(), [a.sum(), -1, -1, -1], [0, 1, 10, 11]]).astype("i4")})


@GROUP.probe("""(const int* a, int* t, int* out) {
  int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < 3; k++) { t[i] = (k ? out[i] : a[i]) + 1; cooperative_groups::this_grid().sync();
    out[i] = t[n - 1 - i] * 2; cooperative_groups::this_grid().sync(); }
}""", grid=(6,), block=(64,), cooperative=True)
def grid_barrier(rng: RNG) -> Case:
    """cg::this_grid().sync() in a cooperative launch."""
    a = rng.integers(-99, 99, 384, dtype="i4")
    def expected() -> dict[str, np.ndarray]:
        v = a
        for _ in range(3):
            t = v + 1
            v = t[::-1] * 2
        return {"t": t, "out": v.astype("i4")}
    return Case({"a": a, "t": np.zeros(384, "i4"), "out": np.zeros(384, "i4")}, expected)
