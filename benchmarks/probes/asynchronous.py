"""cp.async, mbarrier, bulk copies, clusters, grid-wide synchronisation, warpgroup instructions."""

from __future__ import annotations

import numpy as np

from benchmarks.probes.integers import words
from benchmarks.probes.probe import Case, Group

GROUP = Group("asynchronous", """__device__ unsigned at_shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void mbar_init(unsigned b, unsigned n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(b),
  "r"(n) : "memory"); }
__device__ void mbar_expect(unsigned b, unsigned n) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(b), "r"(n) : "memory"); }
__device__ void mbar_arrive(unsigned b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(b) : "memory"); }
__device__ void mbar_wait(unsigned b, unsigned parity) {
  asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again;}"
    :: "r"(b), "r"(parity) : "memory"); }""")
RNG = np.random.Generator


@GROUP.probe("""(const int* a, int* out) {
  __shared__ __align__(16) int s[3][128]; int t = threadIdx.x; unsigned d = at_shared(s[0] + 4 * t);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2; cp.async.commit_group;" :: "r"(d),
    "l"(a + 4 * t), "r"(t % 5 == 0 ? 8 : 16) : "memory");
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8; cp.async.commit_group;" :: "r"(at_shared(s[1] + 2 * t)),
    "l"(a + 2 * t) : "memory");
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(at_shared(s[2] + t)),
    "l"(a + t), "r"(t & 1 ? 0 : 4) : "memory");
  asm volatile("cp.async.wait_group 1;" ::: "memory"); __syncwarp(); for (int k = 0; k < 4;
    k++) out[32 * k + t] = s[0][32 * k + 31 - t];
  asm volatile("cp.async.wait_group 0;" ::: "memory"); __syncwarp(); for (int k = 0; k < 2;
    k++) out[128 + 32 * k + t] = s[1][32 * k + 31 - t];
  asm volatile("cp.async.wait_all;" ::: "memory"); __syncwarp(); out[192 + t] = s[2][31 - t];
}""")
def copies(rng: RNG) -> Case:
    """cp.async.ca/cg of 4, 8, 16 bytes with zero-fill; commit_group, wait_group N, wait_all."""
    a = words(rng, 128, "i4")
    def expected() -> dict[str, np.ndarray]:
        first = a.reshape(32, 4).copy()
        first[::5, 2:] = 0
        last = np.where(np.arange(32) & 1, 0, a[:32])
        return {"out": np.concatenate([first.ravel().reshape(4, 32)[:, ::-1].ravel(), a[:64].reshape(2, 32)[:, ::-1].ravel(),
                                       last[::-1]])}
    return Case({"a": a, "out": np.zeros(224, "i4")}, expected)


@GROUP.probe("""(const int* a, int* out) {
  __shared__ unsigned long long bar; __shared__ int s[64]; int t = threadIdx.x; unsigned b = at_shared(&bar);
    unsigned long long state; unsigned n, done;
  if (t == 0) mbar_init(b, 64);
  __syncthreads();
  for (int k = 0; k < 3; k++) {
    s[t] = a[k * 64 + t]; asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(b) : "memory");
    do { asm volatile("{.reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
      : "=r"(done) : "r"(b), "l"(state) : "memory"); } while (!done);
    out[k * 64 + t] = s[63 - t]; __syncthreads();
  }
  if (t >= 32) { asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1];" : "=l"(state) : "r"(b) : "memory"); }
  else { mbar_arrive(b); mbar_wait(b, 1); s[t] = a[t] + 1; mbar_arrive(b); mbar_wait(b, 0); out[192 + t] = s[31 - t]; }
  __syncthreads(); asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(n) : "l"(state));
  if (t == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" :: "r"(b) : "memory");
  out[224 + t] = n >= 1 && n <= 64;
}""", block=(64,))
def barrier_objects(rng: RNG) -> Case:
    """mbarrier init, arrive, test_wait (state), try_wait.parity, arrive_drop, pending_count, inval; phases."""
    a = words(rng, 192, "i4") >> 1
    return Case({"a": a, "out": np.zeros(288, "i4")}, lambda: {
        "out": np.concatenate([a.reshape(3, 64)[:, ::-1].ravel(), (a[:32] + 1)[::-1], np.ones(64, "i4")])})


@GROUP.probe("""(const int* a, int* out) {
  __shared__ __align__(128) int s[2][128]; __shared__ unsigned long long full[2], empty[2]; int t = threadIdx.x;
  if (t == 0) for (int k = 0; k < 2; k++) { mbar_init(at_shared(&full[k]), 1); mbar_init(at_shared(&empty[k]), 128); }
  asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory"); __syncthreads();
  if (t >= 128) {
    if (t == 128) for (int k = 0; k < 5; k++) {
      if (k >= 2) mbar_wait(at_shared(&empty[k & 1]), (k / 2 - 1) & 1);
      mbar_expect(at_shared(&full[k & 1]), 512);
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        :: "r"(at_shared(s[k & 1])), "l"(a + 128 * k),
                   "r"(512), "r"(at_shared(&full[k & 1])) : "memory");
    }
  } else for (int k = 0; k < 5; k++) {
    mbar_wait(at_shared(&full[k & 1]), k / 2 & 1); out[128 * k + t] = s[k & 1][127 - t] + 1;
      mbar_arrive(at_shared(&empty[k & 1]));
  }
}""", block=(160,))
def bulk_ring(rng: RNG) -> Case:
    """cp.async.bulk global -> shared with mbarrier expect_tx; a two-stage ring of producer and consumers."""
    a = words(rng, 640, "i4") >> 1
    return Case({"a": a, "out": np.zeros(640, "i4")}, lambda: {"out": (a.reshape(5, 128)[:, ::-1] + 1).ravel()})


@GROUP.probe("""(const int* a, int* out) {
  __shared__ __align__(128) int s[128], q[128]; __shared__ unsigned long long bar; int t = threadIdx.x;
  if (t == 0) { mbar_init(at_shared(&bar), 128); asm volatile("cp.async.bulk.prefetch.L2.global [%0], 512;"
    :: "l"(a) : "memory"); }
  s[t] = a[t] * 3; asm volatile("fence.proxy.async;" ::: "memory"); __syncthreads();
  if (t == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(out),
      "r"(at_shared(s)), "r"(512) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;" ::: "memory");
  }
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at_shared(q + t)), "l"(a + 128 + t) : "memory");
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(at_shared(&bar)) : "memory");
  mbar_wait(at_shared(&bar), 0); out[128 + t] = q[127 - t];
}""", block=(128,))
def bulk_stores(rng: RNG) -> Case:
    """cp.async.bulk shared -> global with bulk groups; prefetch.L2; cp.async.mbarrier.arrive.noinc."""
    a = words(rng, 256, "i4") >> 3
    return Case({"a": a, "out": np.zeros(256, "i4")}, lambda: {"out": np.concatenate([a[:128] * 3, a[128:][::-1]])})


@GROUP.probe("""(int* out, unsigned long long map) {
  __shared__ __align__(128) int s[128]; __shared__ unsigned long long bar;
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               :: "r"(at_shared(s)), "l"(map), "r"(0), "r"(0), "r"(at_shared(&bar)) : "memory");
                 out[threadIdx.x] = s[threadIdx.x];
}""", refused="tensor", compiled_only=True)
def tensor_map(rng: RNG) -> Case:
    """cp.async.bulk.tensor (TMA with a tensor map)."""
    return Case({"out": np.zeros(32, "i4")}, scalars=(np.uint64(0),))


@GROUP.probe("""(float* out) {
  __shared__ __align__(128) float s[576]; float d[4] = {0, 0, 0, 0};
    unsigned long long desc = at_shared(s) >> 4 | 8ull << 16 | 16ull << 32;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%0, %1, %2, %3}, %4, %4, 1, 1, 1;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(desc));
  asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory"); out[threadIdx.x] = d[0];
}""", refused="wgmma", compiled_only=True, arch="sm_90a", block=(128,))
def warpgroup_products(rng: RNG) -> Case:
    """wgmma.mma_async."""
    return Case({"out": np.zeros(128, "f4")})


@GROUP.probe("""(int* out) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;" ::: "memory"); out[threadIdx.x] = threadIdx.x; }""",
             attributes="__launch_bounds__(128, 1)", block=(128,), arch="sm_90a", compiled_only=True)
def register_limits(rng: RNG) -> Case:
    """setmaxnreg."""
    return Case({"out": np.zeros(128, "i4")}, lambda: {"out": np.arange(128, dtype="i4")})


@GROUP.probe("""(const int* a, int* out) {
  __shared__ int s[32]; unsigned rank, n, id, peer; int t = threadIdx.x, v;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank)); asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(n));
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(id));
  s[t] = a[32 * blockIdx.x + t];
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(at_shared(s + 31 - t)), "r"((rank + 1) % n));
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(v) : "r"(peer) : "memory");
  out[32 * blockIdx.x + t] = v; out[256 + 32 * blockIdx.x + t] = rank + 10 * n + 100 * id;
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}""", attributes="__cluster_dims__(4, 1, 1)", grid=(8,))
def clusters(rng: RNG) -> Case:
    """clusters: ranks and sizes, barrier.cluster, mapa and ld.shared::cluster."""
    a = words(rng, 256, "i4")
    def expected() -> dict[str, np.ndarray]:
        tiles = a.reshape(2, 4, 32)
        info = np.arange(8)[:, None] % 4 + 40 + 100 * (np.arange(8)[:, None] // 4) + np.zeros((8, 32), int)
        return {"out": np.concatenate([np.roll(tiles, -1, 1)[..., ::-1].ravel(), info.ravel()]).astype("i4")}
    return Case({"a": a, "out": np.zeros(512, "i4")}, expected)


@GROUP.probe("""(const int* a, int* out) {
  __shared__ __align__(128) int s[32], m[32]; __shared__ int total; __shared__ unsigned long long bar;
    unsigned rank, far, far_bar, far_total; int t = threadIdx.x;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank)); if (t == 0) { mbar_init(at_shared(&bar), 1); total = 0; }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  if (t == 0) mbar_expect(at_shared(&bar), 128 + 128 + 128);
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far) : "r"(at_shared(s + t)), "r"(rank ^ 1));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far_total) : "r"(at_shared(&total)), "r"(rank ^ 1));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far_bar) : "r"(at_shared(&bar)), "r"(rank ^ 1));
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" :: "r"(far),
    "r"(a[32 * blockIdx.x + t]), "r"(far_bar) : "memory");
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];"
    :: "r"(far_total), "r"(t), "r"(far_bar) : "memory");
  if (rank == 0 && t == 0)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1], %2, [%3], %4;"
                 :: "r"(at_shared(m)), "l"(a + 128), "r"(128), "r"(at_shared(&bar)), "h"((unsigned short)3) : "memory");
  mbar_wait(at_shared(&bar), 0);
  out[32 * blockIdx.x + t] = s[31 - t] + m[t]; if (t == 0) out[64 + blockIdx.x] = total;
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}""", attributes="__cluster_dims__(2, 1, 1)", grid=(2,))
def asynchronous_stores(rng: RNG) -> Case:
    """st.async and red.async into the neighbour block, reported to its mbarrier; multicast bulk copy."""
    a = rng.integers(-9999, 9999, 160, dtype="i4")
    def expected() -> dict[str, np.ndarray]:
        tiles = a[:64].reshape(2, 32)[::-1, ::-1] + a[128:]
        return {"out": np.concatenate([tiles.ravel(), [496, 496]]).astype("i4")}
    return Case({"a": a, "out": np.zeros(66, "i4")}, expected)
