"""f16 and bf16 arithmetic, alone and in pairs, and their transcendental functions."""

from __future__ import annotations

import numpy as np

from benchmarks.probes.probe import Case, Group, Relation

GROUP = Group("halves", "#include <cuda_fp16.h>\n#include <cuda_bf16.h>")
RNG = np.random.Generator
GUIDE = "CUDA Math API: half functions are f32 functions rounded to half, 1 to 2 ulp"


def halves(rng: RNG, n: int) -> np.ndarray:
    """f16 values, subnormals and specials among them."""
    values = np.ldexp(rng.standard_normal(n), rng.integers(-9, 6, n))
    values[:8] = [0.0, -0.0, np.inf, -np.inf, 6e-8, -5.96e-8, 65504, 3e-5]
    return values.astype("f2")


def bfloats(rng: RNG, n: int) -> np.ndarray:
    """bf16 values as f32: the upper half of the word."""
    values = np.ldexp(rng.standard_normal(n), rng.integers(-20, 20, n)).astype("f4")
    values[:6] = [0.0, -0.0, np.inf, -np.inf, 1e-39, 3e38]
    return (values.view("u4") & np.uint32(0xffff0000)).view("f4")


def raw(values: np.ndarray) -> np.ndarray:
    """bf16 values held as f32, as their 16 bits."""
    return (values.view("u4") >> 16).astype("u2")


def to_bf16(values: np.ndarray) -> np.ndarray:
    """f64 to bf16 bits, to nearest even, NaN as CUDA writes it."""
    import ml_dtypes
    with np.errstate(over="ignore", invalid="ignore"):
        code = values.astype(ml_dtypes.bfloat16).view("u2")
    return np.where(np.isnan(values), 0x7fff, code).astype("u2")


BODY = """(const {t}* a, const {t}* b, {t}* out) {{
  int i = threadIdx.x; {t} x = a[i], y = b[i], z = a[31 - i];
  out[i] = __hadd(x, y); out[32 + i] = __hsub(x, y); out[64 + i] = __hmul(x, y); out[96 + i] = __hfma(x, y, z);
  out[128 + i] = __hmin(x, y); out[160 + i] = __hmax(x, y); out[192 + i] = __hneg(x); out[224 + i] = __habs(x);
  out[256 + i] = __hfma_relu(x, y, z); out[288 + i] = __hadd_sat(x, y); out[320 + i] = __hfma_sat(x, y, z);
  out[352 + i] = __hmin_nan(x, y); out[384 + i] = __hadd_rn(x, y);
  {t}2 p = __halves2{h}2(x, y), q = __halves2{h}2(z,
    x), r[4] = {{__hfma2(p, q, q), __hmax2(p, q), __hmul2(p, q), __hsub2(p, q)}};
  for (int k = 0; k < 4; k++) {{ out[416 + 64 * k + i] = __low2{h}(r[k]); out[448 + 64 * k + i] = __high2{h}(r[k]); }}
  out[672 + i] = __hdiv(x, y);
}}"""


def arithmetic(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    """What BODY computes, in f64 (one rounding is left to do)."""
    from benchmarks.probes.floats import least, most
    x, y = a.astype("f8"), b.astype("f8")
    z = x[::-1]
    with np.errstate(all="ignore"):
        fma = x * y + z
        def unit(v: np.ndarray) -> np.ndarray:
            return np.where(v > 0, np.minimum(v, 1), 0)
        relu = np.where(np.isnan(fma), fma, np.maximum(fma, 0) + 0.0)
        nan = np.where(np.isnan(x) | np.isnan(y), np.nan, least(x, y))
        pairs = [(x * z + z, y * x + x), (most(x, z), most(y, x)), (x * z, y * x), (x - z, y - x)]
        return [x + y, x - y, x * y, fma, least(x, y), most(x, y), -x, np.abs(x), relu, unit(x + y), unit(fma), nan, x + y,
                *(v for pair in pairs for v in pair), x / y]


@GROUP.probe(BODY.format(t="__half", h="half"))
def half_arithmetic(rng: RNG) -> Case:
    """f16: add, sub, mul, fma (relu, sat), min, max, neg, abs, div; half2."""
    a, b = halves(rng, 32), halves(rng, 32)[::-1].copy()
    def expected() -> dict[str, np.ndarray]:
        with np.errstate(all="ignore"):
            return {"out": np.concatenate(arithmetic(a, b)).astype("f2")}
    return Case({"a": a, "b": b, "out": np.zeros(704, "f2")}, expected)


@GROUP.probe(BODY.format(t="__nv_bfloat16", h="bfloat16"))
def bfloat_arithmetic(rng: RNG) -> Case:
    """bf16: add, sub, mul, fma (relu, sat), min, max, neg, abs, div; bfloat162."""
    a, b = bfloats(rng, 32), np.ascontiguousarray(bfloats(rng, 32)[::-1])
    return Case({"a": raw(a), "b": raw(b), "out": np.zeros(704, "u2")},
                lambda: {"out": np.concatenate([to_bf16(v) for v in arithmetic(a, b)])})


COMPARE = """(const {t}* a, const {t}* b, unsigned* out) {{
  int i = threadIdx.x; {t} x = a[i], y = b[i]; {t}2 p = __halves2{h}2(x, y), q = __halves2{h}2(y, y);
  out[i] = __heq(x, y) | __hne(x, y) << 1 | __hlt(x,
    y) << 2 | __hge(x, y) << 3 | __hltu(x, y) << 4 | __hgeu(x, y) << 5 | __hisnan(x) << 6;
  {t}2 s = __hgt2(p, q); out[32 + i] = *(unsigned*)&s; out[64 + i] = __hle2_mask(p, q);
    out[96 + i] = __hbeq2(p, q) | __hbgtu2(p, q) << 1;
}}"""


def compared(x: np.ndarray, y: np.ndarray, one: int) -> np.ndarray:
    """What COMPARE computes."""
    nan = np.isnan(x) | np.isnan(y)
    flags = ((x == y) | (~nan & (x != y)) << 1 | (x < y) << 2 | (x >= y) << 3 | (nan | (x < y)) << 4 | (nan | (x >= y)) << 5
             | np.isnan(x) << 6)
    greater = np.where(x > y, one, 0)
    mask = np.where(x <= y, 0xffff, 0) | np.where(y <= y, 0xffff0000, 0)
    both = ((x == y) & (y == y)) | ((nan | (x > y)) & np.isnan(y)) << 1
    return np.concatenate([flags, greater, mask, both]).astype("u4")


@GROUP.probe(COMPARE.format(t="__half", h="half"))
def half_comparisons(rng: RNG) -> Case:
    """f16 comparisons: ordered, unordered, pairs, masks."""
    a, b = halves(rng, 32), halves(rng, 32)
    a[9:12], b[10:13], b[14:18] = np.nan, np.nan, a[14:18]
    return Case({"a": a, "b": b, "out": np.zeros(128, "u4")}, lambda: {"out": compared(a, b, 0x3c00)})


@GROUP.probe(COMPARE.format(t="__nv_bfloat16", h="bfloat16"))
def bfloat_comparisons(rng: RNG) -> Case:
    """bf16 comparisons: ordered, unordered, pairs, masks."""
    a, b = bfloats(rng, 32), bfloats(rng, 32)
    a[9:12], b[10:13], b[14:18] = np.nan, np.nan, a[14:18]
    return Case({"a": raw(a), "b": raw(b), "out": np.zeros(128, "u4")}, lambda: {"out": compared(a, b, 0x3f80)})


FUNCTIONS = ("hexp", "hexp2", "hexp10", "hlog", "hlog2", "hsqrt", "hrsqrt", "hrcp", "hsin", "hcos", "htanh")


def function_values(x: np.ndarray) -> list[np.ndarray]:
    """The FUNCTIONS in f64."""
    return [np.exp(x), np.exp2(x), 10**x, np.log(x), np.log2(x), np.sqrt(x), 1 / np.sqrt(x), 1 / x, np.sin(x), np.cos(x),
            np.tanh(x)]


@GROUP.probe("(const __half* a, __half* out) { int i = threadIdx.x; __half x = a[i];"
             + " ".join(f"out[{64 * k} + i] = {f}(x);" for k, f in enumerate(FUNCTIONS)) + "}", block=(64,),
             relation=Relation(2.0**-14, 2 * 2.0**-10, GUIDE), feature="f16 functions: " + ", ".join(FUNCTIONS))
def half_functions(rng: RNG) -> Case:
    """The FUNCTIONS of f16."""
    a = rng.uniform(0.1, 4, 64).astype("f2")
    return Case({"a": a, "out": np.zeros(704, "f2")},
                lambda: {"out": np.concatenate(function_values(a.astype("f8"))).astype("f2")})


@GROUP.probe("""(const __half2* a, const __nv_bfloat162* b,
    float2* out) {
  int i = threadIdx.x;
  out[i] = __half22float2(h2exp(a[i])); out[32 + i] = __half22float2(h2exp2(a[i])); out[64 + i] = __half22float2(h2log(a[i]));
  out[96 + i] = __bfloat1622float2(h2exp(b[i])); out[128 + i] = __bfloat1622float2(h2sqrt(b[i]));
    out[160 + i] = __bfloat1622float2(h2rcp(b[i]));
}""", relation=Relation(2.0**-14, 2.0**-6, GUIDE))
def pair_functions(rng: RNG) -> Case:
    """bf16x2 and half2 functions: h2exp, h2exp2, h2log, h2sqrt, h2rcp; results widened to f32."""
    a = rng.uniform(0.1, 4, 64).astype("f2")
    b = (rng.uniform(0.1, 4, 64).astype("f4").view("u4") & np.uint32(0xffff0000)).view("f4")
    def expected() -> dict[str, np.ndarray]:
        x, y = a.astype("f8"), b.astype("f8")
        return {"out": np.concatenate([np.exp(x), np.exp2(x), np.log(x), np.exp(y), np.sqrt(y), 1 / y]).astype("f4")}
    return Case({"a": a, "b": raw(b), "out": np.zeros(384, "f4")}, expected)


@GROUP.probe("""(const __half* a, __half* out) {
  int i = threadIdx.x; unsigned short r, x = __half_as_ushort(a[i]); unsigned p = x | x << 16, q;
  asm("tanh.approx.f16 %0, %1;" : "=h"(r) : "h"(x)); out[i] = __ushort_as_half(r);
  asm("ex2.approx.f16 %0, %1;" : "=h"(r) : "h"(x)); out[64 + i] = __ushort_as_half(r);
  asm("tanh.approx.f16x2 %0, %1;" : "=r"(q) : "r"(p)); out[128 + i] = __ushort_as_half(q >> 16);
  unsigned short bf = __bfloat16_as_ushort(__float2bfloat16(__half2float(a[i])));
  asm("ex2.approx.ftz.bf16 %0, %1;" : "=h"(r) : "h"(bf));
    out[192 + i] = __float2half(__bfloat162float(__ushort_as_bfloat16(r)));
}""", block=(64,), relation=Relation(2.0**-9.5, 2.0**-6,
                                     "PTX ISA: tanh.approx.f16 2^-10.987 absolute, ex2.approx 2^-9.9 relative, bf16 2^-7"))
def half_approximations(rng: RNG) -> Case:
    """tanh.approx and ex2.approx in f16, f16x2, bf16."""
    a = (rng.integers(-24, 24, 64) / 8).astype("f2")
    def expected() -> dict[str, np.ndarray]:
        x = a.astype("f8")
        return {"out": np.concatenate([np.tanh(x), np.exp2(x), np.tanh(x), np.exp2(x)]).astype("f2")}
    return Case({"a": a, "out": np.zeros(256, "f2")}, expected)
