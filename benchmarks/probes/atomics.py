"""Atomic operations: every operation and type, in global and shared memory, in every scope."""

from __future__ import annotations

import numpy as np

from benchmarks.probes.integers import words
from benchmarks.probes.probe import Case, Group

GROUP = Group("atomics", "#include <cuda_fp16.h>\n#include <cuda_bf16.h>", grid=(4,), block=(64,))
RNG = np.random.Generator
N = 256


def ordered(values: np.ndarray, what: str) -> int:
    """A commutative reduction of 32-bit words."""
    return int({"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
                "xor": np.bitwise_xor}[what].reduce(values))


@GROUP.probe("""(const int* a, int* r) {
  int v = a[blockIdx.x * 64 + threadIdx.x]; unsigned u = v, *q = (unsigned*)r;
  atomicAdd(&r[0], v); atomicMin(&r[1], v); atomicMax(&r[2], v); atomicAnd(&r[3], v | 0xf0f); atomicOr(&r[4], v & 0xff00);
    atomicXor(&r[5], v);
  atomicMin(&q[6], u); atomicMax(&q[7], u); atomicSub(&r[8], v);
}""")
def integer_atomics(rng: RNG) -> Case:
    """atomicAdd, Min, Max, And, Or, Xor on int and unsigned, global."""
    a = words(rng, N, "i4")
    r = np.array([0, 2**31 - 1, -2**31, -1, 0, 0, -1, 0, 0], "i4")
    def expected() -> dict[str, np.ndarray]:
        u = a.view("u4")
        total = int(u.sum(dtype="u8"))
        values = [total, a.min(), a.max(), np.bitwise_and.reduce(a | 0xf0f), np.bitwise_or.reduce(a & 0xff00),
                  np.bitwise_xor.reduce(a),
                  u.min(), u.max(), -total]
        return {"r": np.array([int(v) & 0xffffffff for v in values], "u4").view("i4")}
    return Case({"a": a, "r": r}, expected)


@GROUP.probe("""(unsigned* r, unsigned* seen) {
  unsigned i = blockIdx.x * 64 + threadIdx.x;
  seen[atomicInc(&r[0], 1000)] = 1; atomicDec(&r[1], 7);
  unsigned old = atomicExch(&r[2], i + 1); if (old) atomicAdd(&r[3], old);
  unsigned at = r[4], before; do { before = at; at = atomicCAS(&r[4], before, before + i); } while (at != before);
}""")
def exchanges(rng: RNG) -> Case:
    """atomicInc, atomicDec, atomicExch, atomicCAS: values handed out once each."""
    def expected() -> dict[str, np.ndarray]:
        # r[2] keeps one value v, r[3] is the sum of all the others; together they are fixed, so only the rest is compared.
        return {"seen": np.ones(N, "u4")}
    return Case({"r": np.array([0, 5, 0, 0, 0], "u4"), "seen": np.zeros(N, "u4")}, expected)


@GROUP.probe("""(const unsigned* a, unsigned short* h, unsigned long long* w,
    long long* s) {
  int i = blockIdx.x * 64 + threadIdx.x; unsigned v = a[i];
  unsigned short at = *(volatile unsigned short*)h, old;
  do { old = at; at = atomicCAS(h, old, (unsigned short)(old + v)); } while (at != old);
  unsigned long long wide = *(volatile unsigned long long*)w, before;
  do { before = wide; wide = atomicCAS(w, before, before + v * 3ull); } while (wide != before);
  atomicAdd(&w[1], (unsigned long long)v << 8); atomicMin(&w[2], (unsigned long long)v << 9);
    atomicMax(&w[3], (unsigned long long)v << 9);
  atomicOr(&w[4], (unsigned long long)v << 16); atomicAnd(&w[5], ~((unsigned long long)v << 3));
    atomicXor(&w[6], (unsigned long long)v << 20);
  atomicMin(&s[0], -(long long)v * 5); atomicMax(&s[1], (long long)v - 77);
}""")
def wide_atomics(rng: RNG) -> Case:
    """compare-and-swap loops of 16, 32, 64 bits; 64-bit add, min, max, exch, and, or."""
    a = words(rng, N)
    def expected() -> dict[str, np.ndarray]:
        v = a.astype("u8")
        w = [(v * 3).sum(), (v << np.uint64(8)).sum(), (v << np.uint64(9)).min(), (v << np.uint64(9)).max(),
             np.bitwise_or.reduce(v << np.uint64(16)), np.bitwise_and.reduce(~(v << np.uint64(3))),
             np.bitwise_xor.reduce(v << np.uint64(20))]
        return {"h": np.array([int(a.sum(dtype="u8")) & 0xffff], "u2"), "w": np.array(w, "u8"),
                "s": np.array([int((-a.astype("i8") * 5).min()), int(a.astype("i8").max()) - 77], "i8")}
    return Case({"a": a, "h": np.zeros(1, "u2"), "w": np.array([0, 0, 2**64 - 1, 0, 0, 2**64 - 1, 0], "u8"),
                 "s": np.zeros(2, "i8")}, expected)


@GROUP.probe("""(ulonglong2* r, unsigned* done) {
  unsigned long long lo = threadIdx.x + 1, hi = blockIdx.x, x, y;
  asm volatile("{.reg .b128 d, v, c; mov.b128 v, {%3, %4}; mov.b128 c, {%5, %6};"
               "atom.global.cas.b128 d, [%2], c, v; mov.b128 {%0, %1}, d;}"
               : "=l"(x), "=l"(y) : "l"(r), "l"(lo), "l"(hi), "l"(0ull), "l"(0ull) : "memory");
  if (x == 0 && y == 0) atomicAdd(done, 1u);
}""", refused="128")
def wide_compare_and_swap(rng: RNG) -> Case:
    """128-bit atom.cas and atom.exch."""
    return Case({"r": np.zeros(2, "u8"), "done": np.zeros(1, "u4")}, lambda: {"done": np.ones(1, "u4")})


@GROUP.probe("""(const int* a, float* f, double* d, __half* h, __nv_bfloat16* b) {
  int v = a[blockIdx.x * 64 + threadIdx.x];
  atomicAdd(f, (float)v); atomicAdd(d, v * 0.25);
  atomicAdd(h, __int2half_rn(v)); atomicAdd((__half2*)(h + 2), __floats2half2_rn(v, -v));
  atomicAdd(b, __int2bfloat16_rn(v & 1)); atomicAdd((__nv_bfloat162*)(b + 2), __floats2bfloat162_rn(v & 1, -(v & 1)));
}""")
def float_atomics(rng: RNG) -> Case:
    """float, double, half, half2, bfloat16, bfloat162 atomicAdd (exact sums)."""
    a = rng.integers(-4, 5, N, dtype="i4")
    def expected() -> dict[str, np.ndarray]:
        total, odd = int(a.sum()), np.float32((a & 1).sum())
        bits = (np.array([odd, 0, odd, -odd], "f4").view("u4") >> 16).astype("u2")
        return {"f": np.array([total], "f4"), "d": np.array([total / 4], "f8"), "h": np.array([total, 0, total, -total],
                                                                                              "f2"), "b": bits}
    return Case({"a": a, "f": np.zeros(1, "f4"), "d": np.zeros(1, "f8"), "h": np.zeros(4, "f2"), "b": np.zeros(4, "u2")},
                expected)


@GROUP.probe("""(const int* a, float* r) {
  int v = a[blockIdx.x * 64 + threadIdx.x];
  atomicAdd((float2*)r, make_float2(v, 1.0f)); atomicAdd((float4*)(r + 4), make_float4(v, -v, 2.0f, v * 0.5f));
}""")
def vector_atomics(rng: RNG) -> Case:
    """vector atomicAdd on float2 and float4 (red.v2.f32, atom.v4.f32)."""
    a = rng.integers(-4, 5, N, dtype="i4")
    def expected() -> dict[str, np.ndarray]:
        t = float(a.sum())
        return {"r": np.array([t, N, 0, 0, t, -t, 2 * N, t / 2], "f4")}
    return Case({"a": a, "r": np.zeros(8, "f4")}, expected)


@GROUP.probe("""(const int* a, int* out, float* sums) {
  __shared__ int s[4]; __shared__ float f; __shared__ unsigned ticket; int t = threadIdx.x, v = a[blockIdx.x * 64 + t];
  if (t < 4) s[t] = 0;
  if (t == 0) { f = 0; ticket = 0; }
  __syncthreads();
  atomicAdd(&s[0], v); atomicMax(&s[1], v); atomicAdd(&f, (float)v); atomicInc(&ticket, 4095);
  int at = 0, old; do { old = at; at = atomicCAS(&s[2], old, old + v); } while (at != old);
  atomicXor(&s[3], v);
  __syncthreads();
  if (t < 4) out[blockIdx.x * 8 + t] = s[t];
  if (t == 4) { sums[blockIdx.x] = f; out[blockIdx.x * 8 + 4] = ticket; }
}""")
def shared_atomics(rng: RNG) -> Case:
    """atomics in shared memory: add, max, cas, float, inc."""
    a = rng.integers(-40, 50, N, dtype="i4")
    def expected() -> dict[str, np.ndarray]:
        parts = a.reshape(4, 64)
        rows = [[p.sum(), max(0, int(p.max())), p.sum(), np.bitwise_xor.reduce(p), 64, 0, 0, 0] for p in parts]
        return {"out": np.array(rows, "i4").ravel(), "sums": parts.sum(1).astype("f4")}
    return Case({"a": a, "out": np.zeros(32, "i4"), "sums": np.zeros(4, "f4")}, expected)


@GROUP.probe("""(int* r, int* out) {
  int i = blockIdx.x * 64 + threadIdx.x;
  atomicAdd_block(&r[blockIdx.x], 1); atomicAdd_system(&r[4], 2); atomicMax_block(&r[5 + blockIdx.x], threadIdx.x);
  asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" :: "l"(r + 9), "r"(i) : "memory");
  asm volatile("red.release.sys.global.or.b32 [%0], %1;" :: "l"(r + 10), "r"(1 << (i & 15)) : "memory");
  asm volatile("fence.acq_rel.gpu; fence.sc.cta; membar.gl; membar.cta; membar.sys;" ::: "memory");
  int v; asm volatile("st.release.gpu.global.s32 [%0], %1;" :: "l"(out + i), "r"(i * 3) : "memory");
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(out + i) : "memory"); out[i] = v + 1;
  asm volatile("ld.relaxed.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(out + i) : "memory");
  asm volatile("ld.volatile.global.s32 %0, [%1];" : "=r"(v) : "l"(out + i) : "memory"); out[i] = v + 1;
  __threadfence(); __threadfence_block(); __threadfence_system();
}""")
def scopes(rng: RNG) -> Case:
    """_block and _system scope, red with .relaxed/.release, ld.acquire, st.release, fences."""
    def expected() -> dict[str, np.ndarray]:
        i = np.arange(N)
        return {"r": np.array([64] * 4 + [2 * N] + [63] * 4 + [int(i.sum()), 0xffff], "i4"), "out": (i * 3 + 2).astype("i4")}
    return Case({"r": np.zeros(11, "i4"), "out": np.zeros(N, "i4")}, expected)
