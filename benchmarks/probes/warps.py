"""Lanes of a warp among themselves: shuffles, votes, match, redux, elect, masks."""

from __future__ import annotations

import numpy as np

from benchmarks.probes.integers import words
from benchmarks.probes.probe import Case, Group

GROUP = Group("warps")
RNG = np.random.Generator
LANE = np.arange(32)


@GROUP.probe("""(const int* a, const long long* w, int* out, long long* wide) {
  int i = threadIdx.x, v = a[i];
  out[i] = __shfl_sync(~0u, v, 5); out[32 + i] = __shfl_sync(~0u, v, i + 3, 8); out[64 + i] = __shfl_up_sync(~0u, v, 3);
  out[96 + i] = __shfl_up_sync(~0u, v, 2, 8); out[128 + i] = __shfl_down_sync(~0u, v, 5);
    out[160 + i] = __shfl_down_sync(~0u, v, 3, 16);
  out[192 + i] = __shfl_xor_sync(~0u, v, 9); out[224 + i] = __shfl_xor_sync(~0u, v, 5, 4);
  wide[i] = __shfl_xor_sync(~0u, w[i], 1); wide[32 + i] = __shfl_down_sync(~0u, w[i], 2, 4);
}""")
def shuffles(rng: RNG) -> Case:
    """__shfl_sync, _up, _down, _xor with widths 32, 16, 8, 4; 64 bits."""
    a, w = words(rng, 32, "i4"), words(rng, 32, "i8")
    def take(v: np.ndarray, source: np.ndarray, ok: np.ndarray) -> np.ndarray:
        return np.where(ok, v[np.clip(source, 0, 31)], v)
    def within(width: int, source: np.ndarray) -> np.ndarray:
        return source // width == LANE // width
    def expected() -> dict[str, np.ndarray]:
        always = np.ones(32, bool)
        out = [take(a, np.full(32, 5), always), take(a, LANE // 8 * 8 + (LANE + 3) % 8, always), take(a, LANE - 3, LANE >= 3),
               take(a, LANE - 2, within(8, LANE - 2)), take(a, LANE + 5, LANE + 5 < 32), take(a, LANE + 3, within(16,
                                                                                                                  LANE + 3)),
               take(a, LANE ^ 9, always), take(a, LANE ^ 5, (LANE ^ 5) // 4 <= LANE // 4)]
        return {"out": np.concatenate(out), "wide": np.concatenate([w[LANE ^ 1], take(w, LANE + 2, within(4, LANE + 2))])}
    return Case({"a": a, "w": w, "out": np.zeros(256, "i4"), "wide": np.zeros(64, "i8")}, expected)


@GROUP.probe("""(const int* a, unsigned* out) {
  int i = threadIdx.x, v = a[i]; unsigned u;
  out[i] = __ballot_sync(~0u, v > 0); out[32 + i] = __any_sync(~0u, v == 3) | __all_sync(~0u, v > -9) << 1;
  asm volatile("{.reg .pred p, q; setp.gt.s32 p, %1, 0; vote.sync.uni.pred q, p, 0xffffffff; selp.u32 %0, 1, 0, q;}"
    : "=r"(u) : "r"(v));
  out[64 + i] = u;
  if (v > 0) out[96 + i] = __ballot_sync(__activemask(), v & 1); else out[96 + i] = __ballot_sync(__activemask(), 1);
  if (i < 12) out[128 + i] = __ballot_sync(0xfff, v < 2);
}""")
def votes(rng: RNG) -> Case:
    """__ballot_sync, __any_sync, __all_sync, vote.uni, __activemask in divergent code."""
    a = rng.integers(-4, 5, 32, dtype="i4")
    def mask(which: np.ndarray) -> int:
        return sum(1 << int(lane) for lane in np.flatnonzero(which))
    def expected() -> dict[str, np.ndarray]:
        positive = a > 0
        uniform = int(positive.all() or not positive.any())
        split = np.where(positive, mask(positive & (a & 1 == 1)), mask(~positive))
        few = np.where(LANE < 12, mask((a < 2) & (LANE < 12)), 0)
        head = [np.full(32, mask(positive)), np.full(32, int((a == 3).any()) | int((a > -9).all()) << 1), np.full(32, uniform)]
        return {"out": np.concatenate([*head, split, few]).astype("u4")}
    return Case({"a": a, "out": np.zeros(160, "u4")}, expected)


@GROUP.probe("""(const int* a, unsigned* out) {
  int i = threadIdx.x, all; out[i] = __match_any_sync(~0u, a[i]); out[32 + i] = __match_any_sync(~0u, (long long)a[i] << 40);
  out[64 + i] = __match_all_sync(~0u, a[i] < 99, &all); out[96 + i] = all; out[128 + i] = __match_all_sync(~0u, a[i], &all);
    out[160 + i] = all;
}""")
def matches(rng: RNG) -> Case:
    """__match_any_sync, __match_all_sync, 32 and 64 bits."""
    a = rng.integers(0, 5, 32, dtype="i4")
    def expected() -> dict[str, np.ndarray]:
        any_ = (a[:, None] == a[None]).astype("u8") @ (1 << np.arange(32, dtype="u8"))
        parts = [any_, any_, np.full(32, 0xffffffff), np.ones(32), np.zeros(32), np.zeros(32)]
        return {"out": np.concatenate(parts).astype("u4")}
    return Case({"a": a, "out": np.zeros(192, "u4")}, expected)


@GROUP.probe("""(const int* a, int* out) {
  int i = threadIdx.x, v = a[i]; unsigned u = v;
  out[i] = __reduce_add_sync(~0u, v); out[32 + i] = __reduce_min_sync(~0u, v); out[64 + i] = __reduce_max_sync(~0u, u);
  out[96 + i] = __reduce_and_sync(~0u, u | 0xff); out[128 + i] = __reduce_or_sync(~0u, u & 0xff00);
    out[160 + i] = __reduce_xor_sync(~0u, u);
  out[192 + i] = i & 1 ? __reduce_max_sync(0xaaaaaaaa, v) : __reduce_add_sync(0x55555555, v);
}""")
def reductions(rng: RNG) -> Case:
    """__reduce_add, min, max, and, or, xor _sync; of part of a warp."""
    a = words(rng, 32, "i4")
    def expected() -> dict[str, np.ndarray]:
        u = a.view("u4")
        def total(v: np.ndarray) -> int:
            return int(v.view("u4").sum(dtype="u8")) & 0xffffffff
        values = [total(a), int(a.min()) & 0xffffffff, int(u.max()), int(np.bitwise_and.reduce(u | 0xff)),
                  int(np.bitwise_or.reduce(u & 0xff00)), int(np.bitwise_xor.reduce(u))]
        last = np.where(LANE & 1, int(a[1::2].max()) & 0xffffffff, total(np.ascontiguousarray(a[::2])))
        return {"out": np.concatenate([*(np.full(32, v) for v in values), last]).astype("u4").view("i4")}
    return Case({"a": a, "out": np.zeros(224, "i4")}, expected)


@GROUP.probe("""(unsigned* out) {
  int t = threadIdx.x + blockDim.x * threadIdx.y; unsigned p, r;
  asm volatile("{.reg .pred P; elect.sync %1|P, 0xffffffff; selp.u32 %0, 1, 0, P;}" : "=r"(p), "=r"(r)); out[t] = p;
    out[64 + t] = r;
  asm("mov.u32 %0, %%laneid;" : "=r"(r)); out[128 + t] = r; asm("mov.u32 %0, %%warpid;" : "=r"(r)); out[192 + t] = r;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(r)); out[256 + t] = r; asm("mov.u32 %0, %%lanemask_ge;" : "=r"(r)); out[320 + t] = r;
}""", block=(16, 4))
def lanes(rng: RNG) -> Case:
    """elect.sync, %laneid, %warpid, %lanemask_*, %nwarpid-free thread indices."""
    def expected() -> dict[str, np.ndarray]:
        lane = np.arange(64) % 32
        less = (1 << lane) - 1
        parts = [lane == 0, np.zeros(64), lane, np.arange(64) // 32, less, 0xffffffff - less]
        return {"out": np.concatenate(parts).astype("u4")}
    return Case({"out": np.zeros(384, "u4")}, expected)


@GROUP.probe("""(const int* a, int* out) {
  __shared__ int s[32]; int i = threadIdx.x;
  if (i >= 24) return;
  s[i] = a[i]; __syncwarp(0xffffff);
  out[i] = s[23 - i]; __syncwarp(0xffffff);
  if (i < 8) { s[i] = a[i] * 2; __syncwarp(0xff); out[32 + i] = s[7 - i]; }
}""")
def partial_warps(rng: RNG) -> Case:
    """__syncwarp of part of a warp; lanes that left early."""
    a = words(rng, 32, "i4")
    def expected() -> dict[str, np.ndarray]:
        out = np.zeros(64, "i4")
        out[:24], out[32:40] = a[23::-1], (a[7::-1].astype("i8") * 2).astype("u8").astype("u4").view("i4")
        return {"out": out}
    return Case({"a": a, "out": np.zeros(64, "i4")}, expected)
