"""Integer instructions: extended arithmetic, bit fields, permutations, dot products, division."""

from __future__ import annotations

import numpy as np

from benchmarks.probes.probe import Case, Group

GROUP = Group("integers")
RNG = np.random.Generator
M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def words(rng: RNG, n: int, dtype: str = "u4") -> np.ndarray:
    """Random integers of the whole range, with the extremes among them."""
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    values[:4] = [0, info.max, info.min, 1]
    return values


def out(n: int, dtype: str = "u4") -> np.ndarray:
    """An output, zero before the launch."""
    return np.zeros(n, dtype)


def rows(*columns: list[int], bits: int = 32) -> np.ndarray:
    """Columns of Python integers as unsigned words, one after the other."""
    return np.array([v & ((1 << bits) - 1) for column in columns for v in column], f"u{bits // 8}")


def signed(v: int, bits: int = 32) -> int:
    """Two's complement."""
    return v - (1 << bits) if v >> (bits - 1) & 1 else v


@GROUP.probe("""(const unsigned* a, const unsigned* b, unsigned* out) {
  int i = threadIdx.x; unsigned x, y, z;
  asm("add.cc.u32 %0, %3, %6; addc.cc.u32 %1, %4, %7; addc.u32 %2, %5, %8;" : "=&r"(x), "=&r"(y), "=r"(z)
      : "r"(a[i]), "r"(a[32 + i]), "r"(a[64 + i]), "r"(b[i]), "r"(b[32 + i]), "r"(b[64 + i]));
  out[i] = x; out[32 + i] = y; out[64 + i] = z;
  asm("sub.cc.u32 %0, %3, %6; subc.cc.u32 %1, %4, %7; subc.u32 %2, %5, %8;" : "=&r"(x), "=&r"(y), "=r"(z)
      : "r"(a[i]), "r"(a[32 + i]), "r"(a[64 + i]), "r"(b[i]), "r"(b[32 + i]), "r"(b[64 + i]));
  out[96 + i] = x; out[128 + i] = y; out[160 + i] = z;
}""")
def extended_sums(rng: RNG) -> Case:
    """add.cc, addc, sub.cc, subc: 96-bit sums."""
    a, b = words(rng, 96), words(rng, 96)
    def expected() -> dict[str, np.ndarray]:
        x, y = ([sum(int(v[32 * k + i]) << 32 * k for k in range(3)) for i in range(32)] for v in (a, b))
        total, rest = [p + q for p, q in zip(x, y, strict=True)], [p - q for p, q in zip(x, y, strict=True)]
        return {"out": rows(*([v >> s for v in t] for t in (total, rest) for s in (0, 32, 64)))}
    return Case({"a": a, "b": b, "out": out(192)}, expected)


@GROUP.probe("""(const unsigned* a, const unsigned* b, unsigned* out) {
  int i = threadIdx.x; unsigned r0, r1, r2, r3, al = a[i], ah = a[32 + i], bl = b[i], bh = b[32 + i];
  asm("mul.lo.u32 %0, %4, %6; mul.hi.u32 %1, %4, %6; mad.lo.cc.u32 %1, %4, %7, %1; madc.hi.u32 %2, %4, %7, 0;"
      "mad.lo.cc.u32 %1, %5, %6, %1; madc.hi.cc.u32 %2, %5, %6, %2; madc.hi.u32 %3, %5, %7, 0;"
      "mad.lo.cc.u32 %2, %5, %7, %2; addc.u32 %3, %3, 0;"
      : "=&r"(r0), "=&r"(r1), "=&r"(r2), "=&r"(r3) : "r"(al), "r"(ah), "r"(bl), "r"(bh));
  out[i] = r0; out[32 + i] = r1; out[64 + i] = r2; out[96 + i] = r3;
}""")
def extended_products(rng: RNG) -> Case:
    """mad.lo.cc, madc.hi.cc, madc: 64 x 64 -> 128 bits."""
    a, b = words(rng, 64), words(rng, 64)
    def expected() -> dict[str, np.ndarray]:
        product = [(int(a[i]) | int(a[32 + i]) << 32) * (int(b[i]) | int(b[32 + i]) << 32) for i in range(32)]
        return {"out": rows(*([v >> s for v in product] for s in (0, 32, 64, 96)))}
    return Case({"a": a, "b": b, "out": out(128)}, expected)


@GROUP.probe("""(const unsigned long long* a, const unsigned long long* b,
    unsigned long long* out) {
  int i = threadIdx.x; unsigned __int128 x = ((unsigned __int128)a[i] << 64) | b[i],
    q = x / (a[31 - i] | 1), r = x % (a[31 - i] | 1);
  __int128 s = (__int128)x; s >>= 7; x *= a[31 - i]; x -= q; x <<= i;
  unsigned long long v[8] = {(unsigned long long)q, (unsigned long long)(q >> 64),
    (unsigned long long)r, (unsigned long long)(r >> 64),
    (unsigned long long)s, (unsigned long long)(s >> 64), (unsigned long long)x, (unsigned long long)(x >> 64)};
  for (int k = 0; k < 8; k++) out[32 * k + i] = v[k];
}""", options=("--device-int128",))
def int128(rng: RNG) -> Case:
    """__int128: product, quotient, remainder, shifts."""
    a, b = words(rng, 32, "u8"), words(rng, 32, "u8")
    def expected() -> dict[str, np.ndarray]:
        columns: list[list[int]] = [[] for _ in range(8)]
        for i in range(32):
            x, d = int(a[i]) << 64 | int(b[i]), int(a[31 - i]) | 1
            q, r = divmod(x, d)
            s = (x - (1 << 128) if x >> 127 else x) >> 7
            x = (x * int(a[31 - i]) - q) << i
            for k, v in enumerate((q, q >> 64, r, r >> 64, s, s >> 64, x, x >> 64)):
                columns[k].append(v)
        return {"out": rows(*columns, bits=64)}
    return Case({"a": a, "b": b, "out": out(256, "u8")}, expected)


@GROUP.probe("""(const unsigned long long* a, const unsigned long long* b,
    unsigned long long* out) {
  int i = threadIdx.x; unsigned x = (unsigned)a[i], y = (unsigned)b[i], h; unsigned long long w;
  out[i] = __umul64hi(a[i], b[i]); out[32 + i] = (unsigned long long)__mul64hi((long long)a[i], (long long)b[i]);
  out[64 + i] = (unsigned long long)__umulhi(x, y) << 32 | (unsigned)__mulhi((int)x, (int)y);
  asm("mad.hi.s32 %0, %1, %2, %3;" : "=r"(h) : "r"(x), "r"(y), "r"(7)); out[96 + i] = h;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(w) : "r"(x), "r"(y), "l"(a[i])); out[128 + i] = w;
}""")
def wide_products(rng: RNG) -> Case:
    """__umul64hi, __mul64hi, __umulhi, __mulhi, mad.hi, mul.wide."""
    a, b = words(rng, 32, "u8"), words(rng, 32, "u8")
    def expected() -> dict[str, np.ndarray]:
        pairs = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
        low = [(x & M32, y & M32) for x, y in pairs]
        return {"out": rows([x * y >> 64 for x, y in pairs], [signed(x, 64) * signed(y, 64) >> 64 for x, y in pairs],
                            [(x * y >> 32) << 32 | (signed(x) * signed(y) >> 32 & M32) for x, y in low],
                            [((signed(x) * signed(y) >> 32) + 7) & M32 for x, y in low],
                            [signed(x) * signed(y) + p for (x, y), (p, _) in zip(low, pairs, strict=True)], bits=64)}
    return Case({"a": a, "b": b, "out": out(160, "u8")}, expected)


@GROUP.probe("""(const long long* a, const long long* b, long long* out) {
  int i = threadIdx.x; int x = (int)a[i], y = (int)b[i] | 1;
  out[i] = a[i] / (b[i] | 1); out[32 + i] = a[i] % (b[i] | 1);
  out[64 + i] = (unsigned long long)a[i] / (unsigned long long)(b[i] | 1);
  out[96 + i] = (unsigned long long)a[i] % (unsigned long long)(b[i] | 1);
  out[128 + i] = x / y; out[160 + i] = x % y; out[192 + i] = (unsigned)x / (unsigned)y;
    out[224 + i] = (unsigned)x % (unsigned)y;
}""")
def division(rng: RNG) -> Case:
    """division and remainder, 32 and 64 bits, signed and unsigned."""
    a = words(rng, 32, "i8") | 2
    b = words(rng, 32, "i8") >> rng.integers(0, 60, 32)
    def quotient(x: int, y: int) -> int:
        return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    def expected() -> dict[str, np.ndarray]:
        big = [(int(x), int(y) | 1) for x, y in zip(a, b, strict=True)]
        small = [(signed(x & M32), signed(y & M32)) for x, y in big]
        return {"out": rows([quotient(*p) for p in big], [x - quotient(x, y) * y for x, y in big],
                            [(x & M64) // (y & M64) for x, y in big], [(x & M64) % (y & M64) for x, y in big],
                            [quotient(*p) for p in small], [x - quotient(x, y) * y for x, y in small],
                            [(x & M32) // (y & M32) for x, y in small], [(x & M32) % (y & M32) for x, y in small],
                            bits=64).view("i8")}
    return Case({"a": a, "b": b, "out": out(256, "i8")}, expected)


@GROUP.probe("(const unsigned* a, unsigned* out) {\n  int i = threadIdx.x; unsigned r;"
             + "".join(f'\n  asm("prmt.b32{mode} %0, %1, %2, %3;" : "=r"(r) : "r"(a[i]), "r"(a[32 + i]), "r"({selector}));'
                       f" out[{32 * k} + i] = r;"
                       for k, (mode, selector) in enumerate([("", "a[64 + i]")] + [(f".{m}", "i") for m in
                                                             ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")])) + "\n}")
def permute(rng: RNG) -> Case:
    """prmt in every mode (default, f4e, b4e, rc8, ecl, ecr, rc16)."""
    a = words(rng, 96)
    def pick(mode: str, s: int) -> list[int]:
        return {"f4e": [s + k for k in range(4)], "b4e": [(s - k) & 7 for k in range(4)], "rc8": [s] * 4,
                "ecl": [max(s, k) for k in range(4)], "ecr": [min(s, k) for k in range(4)],
                "rc16": [2 * (s & 1), 2 * (s & 1) + 1] * 2}[mode]
    def expected() -> dict[str, np.ndarray]:
        columns: list[list[int]] = [[] for _ in range(7)]
        for i in range(32):
            raw = [(int(a[i]) | int(a[32 + i]) << 32) >> 8 * k & 255 for k in range(8)]
            nibbles = [int(a[64 + i]) >> 4 * k & 15 for k in range(4)]
            columns[0].append(sum((raw[n & 7] if n < 8 else 255 * (raw[n & 7] >> 7)) << 8 * k for k, n in enumerate(nibbles)))
            for c, mode in enumerate(("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"), 1):
                columns[c].append(sum(raw[n & 7] << 8 * k for k, n in enumerate(pick(mode, i & 3))))
        return {"out": rows(*columns)}
    return Case({"a": a, "out": out(224)}, expected)


@GROUP.probe("(const unsigned* a, unsigned* out) {\n  int i = threadIdx.x; unsigned r;" + "".join(
    f'\n  asm("lop3.b32 %0, %1, %2, %3, {table};" : "=r"(r) : "r"(a[i]), "r"(a[32 + i]), "r"(a[64 + i]));'
    f" out[{32 * k} + i] = r;" for k, table in enumerate((0x80, 0xfe, 0x96, 0xe8, 0xca, 0x1d, 0x7f, 0x38))) + "\n}")
def logic3(rng: RNG) -> Case:
    """lop3 with eight tables."""
    a = words(rng, 96)
    def expected() -> dict[str, np.ndarray]:
        x, y, z = (a[32 * k:32 * k + 32].astype("u8") for k in range(3))
        def apply(table: int) -> np.ndarray:
            result = np.zeros(32, "u8")
            for bit in range(32):
                index = (x >> bit & 1) << 2 | (y >> bit & 1) << 1 | (z >> bit & 1)
                result |= (table >> index.astype(int) & 1).astype("u8") << bit
            return result.astype("u4")
        return {"out": np.concatenate([apply(t) for t in (0x80, 0xfe, 0x96, 0xe8, 0xca, 0x1d, 0x7f, 0x38)])}
    return Case({"a": a, "out": out(256)}, expected)


@GROUP.probe("""(const unsigned* a, const unsigned long long* w, unsigned* out, unsigned long long* wide) {
  int i = threadIdx.x; unsigned r, p = i, n = (7 * i) % 40; unsigned long long q;
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a[i]), "r"(p), "r"(n)); out[i] = r;
  asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a[i]), "r"(p), "r"(n)); out[32 + i] = r;
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a[i]), "r"(a[32 + i]), "r"(p), "r"(n)); out[64 + i] = r;
  asm("szext.clamp.s32 %0, %1, %2;" : "=r"(r) : "r"(a[i]), "r"(n)); out[96 + i] = r;
  asm("szext.wrap.u32 %0, %1, %2;" : "=r"(r) : "r"(a[i]), "r"(n)); out[128 + i] = r;
  asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r) : "r"(p), "r"(n)); out[160 + i] = r;
  asm("bfe.s64 %0, %1, %2, %3;" : "=l"(q) : "l"(w[i]), "r"(2 * p), "r"(n)); wide[i] = q;
  asm("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(q) : "l"(w[i]), "l"(w[31 - i]), "r"(2 * p), "r"(n)); wide[32 + i] = q;
}""")
def bit_fields(rng: RNG) -> Case:
    """bfe, bfi, szext, bmsk."""
    a, w = words(rng, 64), words(rng, 32, "u8")
    def extract(v: int, p: int, n: int, is_signed: bool, bits: int) -> int:
        sign = v >> min(p + n - 1, bits - 1) & 1 if is_signed and n else 0
        field = sum((v >> p + k & 1 if p + k < bits else sign) << k for k in range(min(n, bits)))
        return field | (((1 << bits) - 1) & ~((1 << min(n, bits)) - 1) if sign else 0)
    def insert(v: int, base: int, p: int, n: int, bits: int) -> int:
        mask = (((1 << n) - 1) << p) & ((1 << bits) - 1)
        return base & ~mask | v << p & mask
    def expected() -> dict[str, np.ndarray]:
        at = [(i, (7 * i) % 40) for i in range(32)]
        x, y, z = [int(v) for v in a[:32]], [int(v) for v in a[32:]], [int(v) for v in w]
        return {"out": rows([extract(v, p, n, False, 32) for v, (p, n) in zip(x, at, strict=True)],
                            [extract(v, p, n, True, 32) for v, (p, n) in zip(x, at, strict=True)],
                            [insert(v, b, p, n, 32) for v, b, (p, n) in zip(x, y, at, strict=True)],
                            [extract(v, 0, n, True, 32) for v, (_, n) in zip(x, at, strict=True)],
                            [extract(v, 0, n % 32, False, 32) for v, (_, n) in zip(x, at, strict=True)],
                            [insert(M32, 0, p, n, 32) for p, n in at]),
                "wide": rows([extract(v, 2 * p, n, True, 64) for v, (p, n) in zip(z, at, strict=True)],
                             [insert(v, z[31 - i], 2 * p, n, 64) for i, (v, (p, n)) in enumerate(zip(z, at, strict=True))],
                             bits=64)}
    return Case({"a": a, "w": w, "out": out(192), "wide": out(64, "u8")}, expected)


@GROUP.probe("""(const unsigned* a, unsigned* out) {
  int i = threadIdx.x; unsigned n = 3 * i;
  out[i] = __funnelshift_l(a[i], a[32 + i], n); out[32 + i] = __funnelshift_r(a[i], a[32 + i], n);
  out[64 + i] = __funnelshift_lc(a[i], a[32 + i], n); out[96 + i] = __funnelshift_rc(a[i], a[32 + i], n);
}""")
def funnel_shifts(rng: RNG) -> Case:
    """funnel shifts: left and right, wrap and clamp."""
    a = words(rng, 64)
    def expected() -> dict[str, np.ndarray]:
        whole = [int(a[i]) | int(a[32 + i]) << 32 for i in range(32)]
        wrap, clamp = [3 * i % 32 for i in range(32)], [min(3 * i, 32) for i in range(32)]
        return {"out": rows([v << n >> 32 for v, n in zip(whole, wrap, strict=True)], [v >> n for v, n in zip(whole, wrap,
                                                                                                              strict=True)],
                            [v << n >> 32 for v, n in zip(whole, clamp, strict=True)], [v >> n for v, n in zip(whole, clamp,
                                                                                                               strict=True)])}
    return Case({"a": a, "out": out(128)}, expected)


@GROUP.probe("""(const unsigned* a, const unsigned long long* w, unsigned* out) {
  int i = threadIdx.x; unsigned r, v = a[i] >> (i & 15);
  out[i] = __popc(v) | __popcll(w[i]) << 8; out[32 + i] = __clz(v) | __clzll(w[i]) << 8; out[64 + i] = __brev(v);
  out[96 + i] = (unsigned)(__brevll(w[i]) >> 32); out[128 + i] = __ffs(v) | __ffsll(w[i]) << 8;
  asm("bfind.s32 %0, %1;" : "=r"(r) : "r"(v)); out[160 + i] = r;
  asm("bfind.shiftamt.u64 %0, %1;" : "=r"(r) : "l"(w[i])); out[192 + i] = r;
  out[224 + i] = __fns(v, 0, 3);
}""")
def bit_counts(rng: RNG) -> Case:
    """popc, clz, brev, ffs, bfind, fns."""
    a, w = words(rng, 32), words(rng, 32, "u8")
    def first(v: int) -> int:
        return (v & -v).bit_length()
    def nth(v: int, n: int) -> int:
        places = [k for k in range(32) if v >> k & 1]
        return places[n - 1] if len(places) >= n else M32
    def expected() -> dict[str, np.ndarray]:
        x, y = [int(v) >> (i & 15) for i, v in enumerate(a)], [int(v) for v in w]
        def significant(v: int) -> int:
            v = ~v & M32 if v >> 31 else v
            return v.bit_length() - 1 & M32
        return {"out": rows([v.bit_count() | q.bit_count() << 8 for v, q in zip(x, y, strict=True)],
                            [32 - v.bit_length() | (64 - q.bit_length()) << 8 for v, q in zip(x, y, strict=True)],
                            [int(f"{v:032b}"[::-1], 2) for v in x], [int(f"{q:064b}"[::-1], 2) >> 32 for q in y],
                            [first(v) | first(q) << 8 for v, q in zip(x, y, strict=True)], [significant(v) for v in x],
                            [64 - q.bit_length() if q else M32 for q in y], [nth(v, 3) for v in x])}
    return Case({"a": a, "w": w, "out": out(256)}, expected)


@GROUP.probe("""(const int* a, const int* b, int* out) {
  int i = threadIdx.x;
  out[i] = __dp4a(a[i], b[i], 5); out[32 + i] = (int)__dp4a((unsigned)a[i], (unsigned)b[i], 5u);
  out[64 + i] = __dp2a_lo(a[i], b[i], 7); out[96 + i] = __dp2a_hi(a[i], b[i], 7);
  out[128 + i] = (int)__dp2a_hi((unsigned)a[i], (unsigned)b[i], 7u);
}""")
def dot_products(rng: RNG) -> Case:
    """dp4a, dp2a.lo, dp2a.hi, signed and unsigned."""
    a, b = words(rng, 32, "i4"), words(rng, 32, "i4")
    def expected() -> dict[str, np.ndarray]:
        s8, u8, s16, u16 = (lambda v, t=t: v.view(t).reshape(32, -1).astype("i8") for t in ("i1", "u1", "i2", "u2"))
        sums = [(s8(a) * s8(b)).sum(1) + 5, (u8(a) * u8(b)).sum(1) + 5, (s16(a) * s8(b)[:, :2]).sum(1) + 7,
                (s16(a) * s8(b)[:, 2:]).sum(1) + 7, (u16(a) * u8(b)[:, 2:]).sum(1) + 7]
        return {"out": np.concatenate(sums).astype("u8").astype("u4").view("i4")}
    return Case({"a": a, "b": b, "out": out(160, "i4")}, expected)


@GROUP.probe("""(const unsigned* a,
    const unsigned* b, unsigned* out) {
  int i = threadIdx.x; unsigned x = a[i], y = b[i];
  out[i] = __vadd4(x, y); out[32 + i] = __vsub2(x, y); out[64 + i] = __vabsdiffu4(x, y); out[96 + i] = __vmaxs2(x, y);
  out[128 + i] = __vcmpgtu4(x, y); out[160 + i] = __vsadu4(x, y); out[192 + i] = __vavgu4(x, y); out[224 + i] = __vaddus4(x, y);
  out[256 + i] = __vaddss2(x, y);
}""")
def video(rng: RNG) -> Case:
    """SIMD video functions: __vadd4, __vsub2, __vabsdiffu4, __vmaxs2, __vcmpgtu4, __vsadu4, __vavgu4."""
    a, b = words(rng, 32), words(rng, 32)
    def expected() -> dict[str, np.ndarray]:
        def parts(v: np.ndarray, kind: str) -> np.ndarray:
            return v.view(kind).astype("i8")
        u, s2 = [parts(v, "u1") for v in (a, b)], [parts(v, "i2") for v in (a, b)]
        def word(v: np.ndarray, kind: str) -> np.ndarray:
            return v.astype(kind).view("u4")
        sad = np.abs(u[0] - u[1]).reshape(32, 4).sum(1).astype("u4")
        return {"out": np.concatenate([
            word(u[0] + u[1], "u1"), word(s2[0] - s2[1], "i2"), word(np.abs(u[0] - u[1]), "u1"), word(np.maximum(*s2), "i2"),
            word((u[0] > u[1]) * 255, "u1"), sad, word((u[0] + u[1] + 1) >> 1, "u1"), word(np.minimum(u[0] + u[1], 255), "u1"),
            word(np.clip(s2[0] + s2[1], -32768, 32767), "i2")])}
    return Case({"a": a, "b": b, "out": out(288)}, expected)


@GROUP.probe("""(const int* a, const int* b, int* out) {
  int i = threadIdx.x, r;
  asm("vadd.s32.s32.s32 %0, %1.b1, %2.h1;" : "=r"(r) : "r"(a[i]), "r"(b[i])); out[i] = r;
  asm("vabsdiff.u32.u32.u32.add %0, %1.b0, %2.b3, %3;" : "=r"(r) : "r"(a[i]), "r"(b[i]), "r"(9)); out[32 + i] = r;
}""", refused="vadd")
def scalar_video(rng: RNG) -> Case:
    """vadd/vmin/vset/vmad scalar video instructions."""
    a, b = words(rng, 32, "i4"), words(rng, 32, "i4")
    def expected() -> dict[str, np.ndarray]:
        first = a.view("i1").reshape(32, 4)[:, 1].astype("i4") + b.view("i2").reshape(32, 2)[:, 1]
        second = np.abs(a.view("u1").reshape(32, 4)[:, 0].astype("i4") - b.view("u1").reshape(32, 4)[:, 3]) + 9
        return {"out": np.concatenate([first, second])}
    return Case({"a": a, "b": b, "out": out(64, "i4")}, expected)


@GROUP.probe("""(const int* a, const int* b, int* out) {
  int i = threadIdx.x;
  out[i] = __sad(a[i], b[i], 3u); out[32 + i] = __usad(a[i], b[i], 3u); out[64 + i] = __mul24(a[i], b[i]);
  out[96 + i] = __umul24(a[i], b[i]); out[128 + i] = __hadd(a[i], b[i]); out[160 + i] = __rhadd(a[i], b[i]);
    out[192 + i] = abs(a[i]);
}""")
def averages(rng: RNG) -> Case:
    """__sad, __usad, __mul24, __umul24, __hadd, __rhadd, abs of INT_MIN."""
    a, b = words(rng, 32, "i4"), words(rng, 32, "i4")
    def expected() -> dict[str, np.ndarray]:
        x, y, u, v = a.astype("i8"), b.astype("i8"), a.view("u4").astype("i8"), b.view("u4").astype("i8")
        low = [w << 40 >> 40 for w in (x, y)]
        results = [np.abs(x - y) + 3, np.abs(u - v) + 3, low[0] * low[1], (u & 0xffffff) * (v & 0xffffff), (x + y) >> 1,
                   (x + y + 1) >> 1, np.abs(x)]
        return {"out": np.concatenate([(r & M32).astype("u4") for r in results]).view("i4")}
    return Case({"a": a, "b": b, "out": out(224, "i4")}, expected)


@GROUP.probe("""(const int* a, const int* b, int* out) {
  int i = threadIdx.x, x = a[i] >> 2, y = b[i] >> 2; bool p;
  out[i] = __vimax3_s32(x, y, a[31 - i]); out[32 + i] = __viaddmax_s32_relu(x, y, a[31 - i]);
    out[64 + i] = __vibmin_s32(x, y, &p);
  out[96 + i] = p; out[128 + i] = __viaddmin_s16x2(a[i], b[i], a[31 - i]); out[160 + i] = __vimax_s16x2_relu(a[i], b[i]);
}""")
def dpx(rng: RNG) -> Case:
    """DPX: __vimax3_s32, __viaddmax_s32_relu, __vibmin_s32, __viaddmin_s16x2."""
    a, b = words(rng, 32, "i4"), words(rng, 32, "i4")
    def expected() -> dict[str, np.ndarray]:
        x, y, z = a >> 2, b >> 2, a[::-1]
        h, k, m = (v.view("i2") for v in (a, b, np.ascontiguousarray(z)))
        return {"out": np.concatenate([
            np.maximum(np.maximum(x, y), z), np.maximum(np.maximum(x + y, z), 0), np.minimum(x, y), (x <= y).astype("i4"),
            np.minimum(h + k, m).view("i4"), np.maximum(np.maximum(h, k), 0).view("i4")])}
    return Case({"a": a, "b": b, "out": out(192, "i4")}, expected)


@GROUP.probe("""(const int* a, const long long* w, int* out, long long* wide) {
  int i = threadIdx.x, r; long long q; short h; unsigned n = 2 * i + 1;
  asm("shl.b32 %0, %1, %2;" : "=r"(r) : "r"(a[i]), "r"(n)); out[i] = r;
  asm("shr.s32 %0, %1, %2;" : "=r"(r) : "r"(a[i]), "r"(n)); out[32 + i] = r;
  asm("shr.u32 %0, %1, %2;" : "=r"(r) : "r"(a[i]), "r"(n)); out[64 + i] = r;
  asm("shr.s16 %0, %1, %2;" : "=h"(h) : "h"((short)a[i]), "r"(n)); out[96 + i] = h;
  asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a[i]), "r"(a[31 - i])); out[128 + i] = r;
  asm("sub.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a[i]), "r"(a[31 - i])); out[160 + i] = r;
  asm("shr.s64 %0, %1, %2;" : "=l"(q) : "l"(w[i]), "r"(3 * n)); wide[i] = q;
  asm("shl.b64 %0, %1, %2;" : "=l"(q) : "l"(w[i]), "r"(3 * n)); wide[32 + i] = q;
}""")
def shifts(rng: RNG) -> Case:
    """shifts by the width and more, 16, 32 and 64 bits; add.sat, sub.sat."""
    a, w = words(rng, 32, "i4"), words(rng, 32, "i8")
    def expected() -> dict[str, np.ndarray]:
        n = [2 * i + 1 for i in range(32)]
        x, y, z = [int(v) for v in a], [int(v) for v in a[::-1]], [int(v) for v in w]
        def clip(v: int) -> int:
            return min(max(v, -2**31), 2**31 - 1)
        return {"out": rows([v << s if s < 32 else 0 for v, s in zip(x, n, strict=True)], [v >> min(s, 31) for v, s in zip(x,
                                                                                                                           n,
                                                                                                                           strict=True)],
                            [(v & M32) >> s for v, s in zip(x, n, strict=True)], [signed(v & 0xffff, 16) >> min(s, 15) for v,
                                                                                  s in zip(x, n, strict=True)],
                            [clip(p + q) for p, q in zip(x, y, strict=True)], [clip(p - q) for p, q in zip(x, y,
                                                                                                           strict=True)]).view("i4"),
                "wide": rows([v >> min(3 * s, 63) for v, s in zip(z, n, strict=True)], [v << 3 * s if 3 * s < 64 else 0 for v,
                                                                                        s in zip(z, n, strict=True)],
                             bits=64).view("i8")}
    return Case({"a": a, "w": w, "out": out(192, "i4"), "wide": out(64, "i8")}, expected)
