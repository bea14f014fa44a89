"""Loads and stores: spaces, widths, vectors, cache hints, local arrays, constants, dynamic shared memory."""

from __future__ import annotations

import numpy as np

from benchmarks.probes.integers import words
from benchmarks.probes.probe import Case, Group

GROUP = Group("memory")
RNG = np.random.Generator


@GROUP.probe("""(const uint4* a, uint4* b, const uchar4* c, uchar4* d,
    const short4* e, double2* f) {
  int i = threadIdx.x; uint4 v = a[i]; b[i] = make_uint4(v.w, v.z, v.y, v.x);
  uchar4 u = c[i]; d[i] = make_uchar4(u.w, u.x, u.z, u.y); short4 s = e[i]; f[i] = make_double2(s.x + s.y, (double)s.z * s.w);
}""")
def vectors(rng: RNG) -> Case:
    """vectors of 2 to 16 bytes: float4, int2, uchar4, short4, double2, char3."""
    a, c, e = words(rng, 128), words(rng, 128, "u1"), words(rng, 128, "i2")
    def expected() -> dict[str, np.ndarray]:
        s = e.reshape(32, 4).astype("f8")
        return {"b": a.reshape(32, 4)[:, ::-1].ravel(), "d": c.reshape(32, 4)[:, [3, 0, 2, 1]].ravel(),
                "f": np.stack([s[:, 0] + s[:, 1], s[:, 2] * s[:, 3]], 1).ravel()}
    return Case({"a": a, "b": np.zeros(128, "u4"), "c": c, "d": np.zeros(128, "u1"), "e": e, "f": np.zeros(64, "f8")}, expected)


@GROUP.probe("""(const float4* a, float4* b, float* c) {
  int i = threadIdx.x; float4 v = __ldg(a + i), w = __ldcs(a + 31 - i); v.x += w.x; __stcg(b + i, v);
  __stcs(c + i, __ldcg((const float*)a + i)); __stwt(c + 32 + i, __ldca((const float*)a + i + 1));
    __stwb(c + 64 + i, __ldcv((const float*)a + i + 2));
  c[96 + i] = __ldlu((const float*)a + i + 3);
}""")
def cached(rng: RNG) -> Case:
    """cache hints: __ldg, __ldcg, __ldcs, __ldca, __ldcv, __ldlu, __stcg, __stcs, __stwt, __stwb."""
    a = rng.standard_normal(128).astype("f4")
    def expected() -> dict[str, np.ndarray]:
        v = a.reshape(32, 4).copy()
        v[:, 0] += a.reshape(32, 4)[::-1, 0]
        return {"b": v.ravel(), "c": np.concatenate([a[k:k + 32] for k in range(4)])}
    return Case({"a": a, "b": np.zeros(128, "f4"), "c": np.zeros(128, "f4")}, expected)


@GROUP.probe("""(const float* a, float* out) {
  int i = threadIdx.x; float x, y, z, w; unsigned long long policy;
  asm("ld.global.nc.L1::no_allocate.L2::128B.f32 %0, [%1];" : "=f"(x) : "l"(a + i));
  asm volatile("ld.global.L1::evict_last.L2::256B.f32 %0, [%1];" : "=f"(y) : "l"(a + 32 + i));
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(z) : "l"(a + 64 + i), "l"(policy));
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v2.f32 {%0, %1}, [%2], %3;" : "=f"(w),
    "=f"(y) : "l"(a + 2 * i), "l"(policy));
  asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" :: "l"(out + i), "f"(x + z + w - y), "l"(policy) : "memory");
}""")
def hinted(rng: RNG) -> Case:
    """ld.global.nc.L1::no_allocate.L2::128B/256B, .L1::evict_last, createpolicy with .L2::cache_hint."""
    a = rng.integers(-99, 99, 96).astype("f4")
    return Case({"a": a, "out": np.zeros(32, "f4")}, lambda: {"out": a[:32] + a[64:] + a[:64:2] - a[1:64:2]})


@GROUP.probe("""(float* a) {
  int i = threadIdx.x;
  asm volatile("prefetch.global.L2 [%0]; prefetch.global.L1 [%0]; prefetchu.L1 [%0]; prefetch.global.L2::evict_last [%0];"
    :: "l"(a + i));
  asm volatile("applypriority.global.L2::evict_normal [%0], 128;" :: "l"(a));
  a[i] = a[i] * 2;
}""")
def prefetches(rng: RNG) -> Case:
    """prefetch.global.L1/L2, prefetchu, prefetch.L2::evict_last, discard, applypriority: no effect on values."""
    a = np.zeros(64, "f4")
    a[:32] = rng.integers(-99, 99, 32)
    return Case({"a": a.copy()}, lambda: {"a": a * 2})


@GROUP.probe("""(const int* a, const int* at, int* out) {
  int v[40]; struct { short s[3]; double d; } p[4]; int i = threadIdx.x;
  for (int k = 0; k < 40; k++) v[k] = a[(i + 3 * k) & 31] + k;
  for (int k = 0; k < 4; k++) { p[k].d = v[at[i] + k]; p[k].s[at[i] % 3] = (short)k; }
  out[i] = v[at[i]] - v[at[31 - i]]; out[32 + i] = (int)p[at[i] & 3].d + p[at[i] & 3].s[at[i] % 3];
}""")
def local_arrays(rng: RNG) -> Case:
    """local arrays with computed indices; structures by value."""
    a, at = rng.integers(-99, 99, 32, dtype="i4"), rng.integers(0, 36, 32, dtype="i4")
    def expected() -> dict[str, np.ndarray]:
        v = np.array([[a[(i + 3 * k) & 31] + k for k in range(40)] for i in range(32)])
        i = np.arange(32)
        return {"out": np.concatenate([v[i, at] - v[i, at[::-1]], v[i, at + (at & 3)] + (at & 3)]).astype("i4")}
    return Case({"a": a, "at": at, "out": np.zeros(64, "i4")}, expected)


@GROUP.probe("""(const int* at, float* out) {
  int i = threadIdx.x; out[i] = weights[at[i]] * scale; out[32 + i] = rows_of[at[i] & 1][at[i] >> 1]; out[64 + i] = text[at[i]];
  out[96 + i] = (float)records[at[i] & 1].b + records[at[i] & 1].a; if (i == 0) counter += 5; __syncwarp();
    out[128 + i] = counter;
}""",
helpers="""__constant__ float weights[8] = {1, 2.5f, -3, 4, 5e-3f, 6, 7, 8};
__device__ float scale = 3.0f; __device__ int counter = 2;
__device__ float grid_a[4] = {1, 2, 3, 4}, grid_b[4] = {5, 6, 7, 8}; __device__ float* rows_of[2] = {grid_a, grid_b + 0};
__constant__ char text[] = "kernels!"; struct Record { char a; double b; };
__device__ Record records[2] = {{'x', 0.5}, {'y', -2.25}};""")
def variables(rng: RNG) -> Case:
    """__constant__ and __device__ variables, pointers to them, tables of strings and structures."""
    at = rng.integers(0, 8, 32, dtype="i4")
    def expected() -> dict[str, np.ndarray]:
        weights = np.array([1, 2.5, -3, 4, 5e-3, 6, 7, 8], "f4")
        grid = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
        text = np.frombuffer(b"kernels!", "u1")
        record = np.array([ord("x") + 0.5, ord("y") - 2.25])
        parts = [weights[at] * np.float32(3), grid[at & 1, at >> 1], text[at], record[at & 1], np.full(32, 7)]
        return {"out": np.concatenate(parts).astype("f4")}
    return Case({"at": at, "out": np.zeros(160, "f4")}, expected)


@GROUP.probe("""(const int* a, double* out) {
  extern __shared__ __align__(16) unsigned char raw[]; __shared__ int fixed[64];
  double* d = (double*)raw; int* n = (int*)(raw + 64 * 8); unsigned char* c = raw + 64 * 12; int i = threadIdx.x;
  d[i] = a[i] * 0.5; n[i] = a[i] ^ 5; c[i] = a[i]; fixed[i] = a[i] + 1; __syncthreads();
  int k = 63 - i; out[i] = d[k] + n[k] + c[k] + fixed[k];
}""", block=(64,), shared=64 * 13)
def dynamic_shared(rng: RNG) -> Case:
    """dynamic shared memory carved into arrays of several types, beside static arrays."""
    a = rng.integers(-999, 999, 64, dtype="i4")
    return Case({"a": a, "out": np.zeros(64, "f8")},
                lambda: {"out": (a * 0.5 + (a ^ 5) + a.astype("u1") + (a + 1))[::-1].copy()})


@GROUP.probe("""(int* a, int* out) {
  __shared__ int s[32]; int v[4] = {7, 8, 9, 10}, i = threadIdx.x; s[i] = i * 3; v[i & 3] += i; __syncwarp();
  int* p = i % 3 == 0 ? &s[31 - i] : i % 3 == 1 ? &v[i & 3] : &a[i]; out[i] = *p; *p = -i; __syncwarp();
  out[32 + i] = s[i] + v[i & 3]; out[64 + i] = (__isShared(p) ? 1 : 0) + (__isGlobal(p) ? 2 : 0) + (__isLocal(p) ? 4 : 0);
}""")
def generic_pointers(rng: RNG) -> Case:
    """generic pointers into shared, local and global memory in one instruction."""
    a = rng.integers(100, 200, 32, dtype="i4")
    def expected() -> dict[str, np.ndarray]:
        i = np.arange(32)
        s, v = i * 3, np.array([7, 8, 9, 10])[i & 3] + i
        first = np.where(i % 3 == 0, s[31 - i], np.where(i % 3 == 1, v, a))
        s2, v2, a2 = s.copy(), v.copy(), a.copy()
        s2[31 - i[i % 3 == 0]] = -i[i % 3 == 0]
        v2[i % 3 == 1] = -i[i % 3 == 1]
        a2[i % 3 == 2] = -i[i % 3 == 2]
        return {"a": a2, "out": np.concatenate([first, s2 + v2, np.array([1, 4, 2])[i % 3]]).astype("i4")}
    return Case({"a": a.copy(), "out": np.zeros(96, "i4")}, expected)


@GROUP.probe("""(const signed char* a, short* b, bool* c, char* d) {
  int i = threadIdx.x; b[i] = (short)(a[i] * a[i + 1]); c[i] = a[i] > 3; struct S { char x[7]; } s;
  for (int k = 0; k < 7; k++) s.x[k] = a[i + k]; if (i < 4) ((S*)d)[i] = s;
}""")
def narrow_types(rng: RNG) -> Case:
    """narrow types: bool, signed char, unsigned short; unaligned copies byte by byte."""
    a = words(rng, 40, "i1")
    def expected() -> dict[str, np.ndarray]:
        x = a.astype("i4")
        return {"b": (x[:32] * x[1:33]).astype("i2"), "c": a[:32] > 3, "d": np.concatenate([a[i:i + 7] for i in range(4)])}
    return Case({"a": a, "b": np.zeros(32, "i2"), "c": np.zeros(32, "?"), "d": np.zeros(28, "i1")}, expected)


@GROUP.probe("""(const float* a, float* out, int shift) {
  Table t; for (int k = 0; k < 6; k++) t.v[k] = a[k]; out[threadIdx.x] = pick(t, (threadIdx.x + shift) % 6);
}""",
helpers="struct Table { float v[6]; };\n__device__ __noinline__ float pick(Table t, int i) { t.v[0] += 1; return t.v[i] * 2; }")
def structures(rng: RNG) -> Case:
    """structure and array parameters; __grid_constant__."""
    a = rng.standard_normal(6).astype("f4")
    def expected() -> dict[str, np.ndarray]:
        t = a.copy()
        t[0] += 1
        return {"out": t[(np.arange(32) + 4) % 6] * 2}
    return Case({"a": a, "out": np.zeros(32, "f4")}, expected, (np.int32(4),))


@GROUP.probe("(float* out, unsigned long long t) { out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x); }", refused="tex",
             compiled_only=True)
def textures(rng: RNG) -> Case:
    """tex1Dfetch, tex2D."""
    return Case({"out": np.zeros(32, "f4")}, scalars=(np.uint64(0),))
