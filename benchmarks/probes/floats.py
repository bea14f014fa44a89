"""f32 and f64 arithmetic: roundings, flushing, saturation, NaN, approximations, libm."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from benchmarks.probes.probe import Case, Group, Relation, ulps

GROUP = Group("floats")
RNG = np.random.Generator
GUIDE = "CUDA C++ Programming Guide, Mathematical Functions"
ISA = "PTX ISA, the instruction's own section"


def floats(rng: RNG, n: int, dtype: str = "f4", wide: bool = False) -> np.ndarray:
    """Normal numbers; `wide`: exponents over most of the range."""
    values = rng.standard_normal(n)
    if wide:
        values = np.ldexp(values, rng.integers(-60, 60, n))
    return values.astype(dtype)


def edges(rng: RNG, n: int = 32, dtype: str = "f4") -> np.ndarray:
    """Every special value once, then subnormals and normals near the border."""
    info = np.finfo(dtype)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, -info.max, info.tiny, -info.tiny, info.smallest_subnormal, 1.0,
               -1.0]
    rest = rng.choice([-1, 1], n) * np.ldexp(1 + rng.random(n), int(np.log2(info.tiny)) + rng.integers(-8, 3, n))
    return np.array([*special, *rest][:n], dtype)


def zeros(n: int, dtype: str = "f4") -> np.ndarray:
    """An output, zero before the launch."""
    return np.zeros(n, dtype)


def flush(values: np.ndarray) -> np.ndarray:
    """Subnormals as zeros of their sign."""
    return np.where(np.abs(values) < np.finfo(values.dtype).tiny, np.copysign(values.dtype.type(0), values), values)


def rounded(exact: Fraction, mode: str, dtype: str) -> float:
    """The neighbour of `exact` that a rounding mode (rn, rz, rm, rp) chooses."""
    kind = np.dtype(dtype).type
    mantissa = np.finfo(dtype).nmant
    if exact == 0:
        return 0.0
    exponent = abs(exact).numerator.bit_length() - abs(exact).denominator.bit_length()
    if Fraction(2) ** exponent > abs(exact):
        exponent -= 1
    step = Fraction(2) ** (max(exponent, int(np.log2(np.finfo(dtype).tiny))) - mantissa)
    below = exact // step
    if mode == "rn":
        steps = round(exact / step)
    else:
        up = mode == "rp" or (mode == "rz" and exact < 0)
        steps = below + (1 if up and exact != below * step else 0)
    return float(kind(float(steps * step)))


MODES = ("rn", "rz", "rm", "rp")


def rounding_body(kind: str, letter: str) -> str:
    """A kernel with add, mul, fma, div, sqrt, rcp in every rounding."""
    operations = [("add", "a[i], b[i]"), ("mul", "a[i], b[i]"), ("fma", "a[i], b[i], c[i]"), ("div", "a[i], b[i]"), ("sqrt",
                                                                                                                     "c[i]"),
                  ("rcp", "b[i]")]
    lines = []
    for k, (op, operands) in enumerate(operations):
        values = operands.split(", ")
        for m, mode in enumerate(MODES):
            places = ", ".join(f"%{j + 1}" for j in range(len(values)))
            inputs = ", ".join(f'"{letter}"({v})' for v in values)
            store = f"out[{32 * (4 * k + m)} + i] = r;"
            lines.append(f'  asm("{op}.{mode}.{kind} %0, {places};" : "={letter}"(r) : {inputs}); {store}')
    ctype = "float" if kind == "f32" else "double"
    head = f"(const {ctype}* a, const {ctype}* b, const {ctype}* c, {ctype}* out)"
    return "\n".join([head + " {", f"  int i = threadIdx.x; {ctype} r;", *lines, "}"])


def rounding_case(rng: RNG, dtype: str) -> Case:
    """Arguments and exact results of `rounding_body`."""
    a, b = (floats(rng, 32, dtype, wide=True) for _ in range(2))
    c = np.abs(floats(rng, 32, dtype, wide=True))
    def expected() -> dict[str, np.ndarray]:
        x, y, z = ([Fraction(float(v)) for v in values] for values in (a, b, c))
        def root(q: Fraction) -> Fraction:  # close enough below and above, and exact where the root is
            scale = 1 << 400
            from math import isqrt
            whole = isqrt(q.numerator * q.denominator * scale * scale)
            return Fraction(2 * whole + (whole * whole != q.numerator * q.denominator * scale * scale),
                            2 * q.denominator * scale)
        exact = [[p + q for p, q in zip(x, y, strict=True)], [p * q for p, q in zip(x, y, strict=True)], [p * q + r for p, q,
                                                                                                          r in zip(x, y, z,
                                                                                                                   strict=False)],
                 [p / q for p, q in zip(x, y, strict=True)], [root(r) for r in z], [1 / q for q in y]]
        return {"out": np.array([rounded(v, mode, dtype) for values in exact for mode in MODES for v in values], dtype)}
    return Case({"a": a, "b": b, "c": c, "out": zeros(32 * 24, dtype)}, expected)


@GROUP.probe(rounding_body("f32", "f"))
def rounding_f32(rng: RNG) -> Case:
    """f32 add, mul, fma, div, sqrt, rcp in rn, rz, rm, rp."""
    return rounding_case(rng, "f4")


@GROUP.probe(rounding_body("f64", "d"))
def rounding_f64(rng: RNG) -> Case:
    """f64 add, mul, fma, div, sqrt, rcp in rn, rz, rm, rp."""
    return rounding_case(rng, "f8")


@GROUP.probe("""(const float* a, const float* b, float* out) {
  int i = threadIdx.x; float r;
  asm("add.f32 %0, %1, %2;" : "=f"(r) : "f"(a[i]), "f"(b[i])); out[i] = r;
  asm("mul.f32 %0, %1, %2;" : "=f"(r) : "f"(a[i]), "f"(b[i])); out[32 + i] = r;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a[i]), "f"(0.5f), "f"(b[i])); out[64 + i] = r;
  asm("div.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a[i]), "f"(4.0f)); out[96 + i] = r;
  asm("min.f32 %0, %1, %2;" : "=f"(r) : "f"(a[i]), "f"(b[i])); out[128 + i] = r;
  asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(a[i]), "f"(b[i])); out[160 + i] = r;
  asm("{.reg .pred p; setp.gt.f32 p, %1, 0f00000000; selp.f32 %0, 0f3f800000, 0f00000000, p;}" : "=f"(r) : "f"(a[i]));
    out[192 + i] = r;
}""")
def subnormals_kept(rng: RNG) -> Case:
    """subnormals kept without .ftz: add, mul, fma, div, sqrt, min, max, setp, cvt."""
    a, b = edges(rng), edges(rng)[::-1].copy()
    def expected() -> dict[str, np.ndarray]:
        with np.errstate(all="ignore"):
            fma = (a.astype("f8") * 0.5 + b.astype("f8")).astype("f4")
            results = [a + b, a * b, fma, a / np.float32(4), least(a, b), most(a, b), (a > 0).astype("f4")]
        return {"out": np.concatenate(results)}
    return Case({"a": a, "b": b, "out": zeros(224)}, expected)


def least(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """PTX min: numbers win over NaN, -0 is below +0."""
    return np.where((a == b) & np.signbit(a), a, np.where((a == b) & np.signbit(b), b, np.fmin(a, b)))


def most(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """PTX max."""
    return -least(-a, -b)


@GROUP.probe("""(const float* a, const float* b, float* out) {
  int i = threadIdx.x; float r;
  asm("add.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(a[i]), "f"(b[i])); out[i] = r;
  asm("mul.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(a[i]), "f"(b[i])); out[32 + i] = r;
  asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a[i]), "f"(0.5f), "f"(b[i])); out[64 + i] = r;
  asm("div.rn.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(a[i]), "f"(4.0f)); out[96 + i] = r;
  asm("min.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(a[i]), "f"(b[i])); out[128 + i] = r;
  asm("max.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(a[i]), "f"(b[i])); out[160 + i] = r;
  asm("{.reg .pred p; setp.gt.ftz.f32 p, %1, 0f00000000; selp.f32 %0, 0f3f800000, 0f00000000, p;}" : "=f"(r) : "f"(a[i]));
  out[192 + i] = r;
  asm("abs.ftz.f32 %0, %1;" : "=f"(r) : "f"(a[i])); out[224 + i] = r;
  asm("rcp.rn.ftz.f32 %0, %1;" : "=f"(r) : "f"(a[i])); out[256 + i] = r;
}""")
def subnormals_flushed(rng: RNG) -> Case:
    """subnormals flushed with .ftz: add, mul, fma, div, rcp, min, max, abs, neg, setp."""
    a, b = edges(rng), edges(rng)[::-1].copy()
    def expected() -> dict[str, np.ndarray]:
        x, y = flush(a), flush(b)
        with np.errstate(all="ignore"):
            fma = (x.astype("f8") * 0.5 + y.astype("f8")).astype("f4")
            results = [x + y, x * y, fma, x / np.float32(4), least(x, y), most(x, y), (x > 0).astype("f4"), np.abs(x), 1 / x]
        return {"out": np.concatenate([flush(r.astype("f4")) for r in results])}
    return Case({"a": a, "b": b, "out": zeros(288)}, expected)


@GROUP.probe("""(const float* a, const float* b, float* out) {
  int i = threadIdx.x; float r;
  out[i] = __saturatef(a[i]);
  asm("add.sat.f32 %0, %1, %2;" : "=f"(r) : "f"(a[i]), "f"(b[i])); out[32 + i] = r;
  asm("mul.sat.f32 %0, %1, %2;" : "=f"(r) : "f"(a[i]), "f"(b[i])); out[64 + i] = r;
  asm("fma.rn.sat.f32 %0, %1, %2, %1;" : "=f"(r) : "f"(a[i]), "f"(b[i])); out[96 + i] = r;
}""")
def saturation(rng: RNG) -> Case:
    """.sat on add, mul, fma, cvt; NaN becomes 0."""
    a, b = floats(rng, 32), floats(rng, 32)
    a[:4] = [np.nan, np.inf, -np.inf, -0.0]
    def expected() -> dict[str, np.ndarray]:
        with np.errstate(all="ignore"):
            fma = (a.astype("f8") * b.astype("f8") + a.astype("f8")).astype("f4")
            values = np.concatenate([a, a + b, a * b, fma])
        return {"out": np.where(values > 0, np.minimum(values, 1), 0).astype("f4")}
    return Case({"a": a, "b": b, "out": zeros(128)}, expected)


@GROUP.probe("""(const float* a, const float* b, float* out, double* wide, int* flags) {
  int i = threadIdx.x; float r; int p;
  out[i] = fminf(a[i], b[i]); out[32 + i] = fmaxf(a[i], b[i]);
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a[i]), "f"(b[i])); out[64 + i] = r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a[i]), "f"(b[i])); out[96 + i] = r;
  out[128 + i] = copysignf(a[i], b[i]);
  wide[i] = fmin((double)a[i], (double)b[i]); wide[32 + i] = fmax((double)a[i], (double)b[i]);
  asm("{.reg .pred p; testp.normal.f32 p, %1; selp.s32 %0, 1, 0, p;}" : "=r"(p) : "f"(a[i])); flags[i] = p;
  flags[32 + i] = isfinite(a[i]) + 2 * isinf(a[i]) + 4 * isnan(a[i]) + 8 * (signbit(a[i]) != 0);
}""", options=("-ftz=false",))
def minimum_maximum(rng: RNG) -> Case:
    """min, max, min.NaN, max.NaN, copysign, testp, f64 min and max."""
    a, b = edges(rng), rng.permutation(edges(rng))
    def expected() -> dict[str, np.ndarray]:
        either = np.isnan(a) | np.isnan(b)
        nan = np.float32(np.nan)
        normal = np.isfinite(a) & (np.abs(a) >= np.finfo("f4").tiny)
        flags = np.isfinite(a) + 2 * np.isinf(a) + 4 * np.isnan(a) + 8 * np.signbit(a)
        return {"out": np.concatenate([least(a, b), most(a, b), np.where(either, nan, least(a, b)),
                                       np.where(either, nan, most(a, b)), np.copysign(a, b)]),
                "wide": np.concatenate([least(a, b), most(a, b)]).astype("f8"),
                "flags": np.concatenate([normal, flags]).astype("i4")}
    return Case({"a": a, "b": b, "out": zeros(160), "wide": zeros(64, "f8"), "flags": zeros(64, "i4")}, expected)


def approximation(name: str, feature: str, body: str, relation: Relation, inputs: Callable[[RNG], np.ndarray],
                  reference: Callable[[np.ndarray], np.ndarray]) -> None:
    """A probe of one approximate function of 256 values."""
    def make(rng: RNG) -> Case:
        a = inputs(rng)
        return Case({"a": a, "out": zeros(256)}, lambda: {"out": reference(a.astype("f8")).astype("f4")})
    make.__name__ = name
    GROUP.probe(f"(const float* a, float* out) {{ int i = threadIdx.x; float x = a[i]; {body} }}", block=(256,),
                relation=relation, feature=feature)(make)


def spread(low: float, high: float) -> Callable[[RNG], np.ndarray]:
    """256 values between two numbers."""
    return lambda rng: rng.uniform(low, high, 256).astype("f4")


def powers(low: int, high: int) -> Callable[[RNG], np.ndarray]:
    """256 positive values with exponents between two numbers."""
    return lambda rng: np.ldexp(1 + rng.random(256), rng.integers(low, high, 256)).astype("f4")


approximation("approx_ex2", "ex2.approx.ftz.f32", 'asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(x)); out[i] = x;',
              Relation(0, 2.0**-21, f"{ISA}: relative error at most 2^-22; doubled for two implementations"), spread(-100,
                                                                                                                     100),
                                                                                                                     np.exp2)
approximation("approx_lg2", "lg2.approx.f32", 'asm("lg2.approx.f32 %0, %1;" : "=f"(x) : "f"(x)); out[i] = x;',
              Relation(2.0**-21, 2.0**-21, f"{ISA}: error at most 2^-22, absolute in (0.5, 2)"), powers(-100, 100), np.log2)
approximation("approx_sin", "sin.approx.f32 in [-pi, pi]", 'asm("sin.approx.f32 %0, %1;" : "=f"(x) : "f"(x)); out[i] = x;',
              Relation(2.0**-19.5, 0, f"{ISA}: absolute error at most 2^-20.5"), spread(-3.14, 3.14), np.sin)
approximation("approx_cos", "cos.approx.f32 in [-pi, pi]", 'asm("cos.approx.f32 %0, %1;" : "=f"(x) : "f"(x)); out[i] = x;',
              Relation(2.0**-19.5, 0, f"{ISA}: absolute error at most 2^-20.5"), spread(-3.14, 3.14), np.cos)
approximation("approx_tanh", "tanh.approx.f32", 'asm("tanh.approx.f32 %0, %1;" : "=f"(x) : "f"(x)); out[i] = x;',
              Relation(2.0**-24, 2.0**-10, f"{ISA}: relative error at most 2^-11"), spread(-6, 6), np.tanh)
approximation("approx_rcp", "rcp.approx.f32", 'asm("rcp.approx.f32 %0, %1;" : "=f"(x) : "f"(x)); out[i] = x;',
              ulps(2, f"{ISA}: at most 1 ulp"), powers(-100, 100), lambda x: 1 / x)
approximation("approx_rsqrt", "rsqrt.approx.f32", 'asm("rsqrt.approx.f32 %0, %1;" : "=f"(x) : "f"(x)); out[i] = x;',
              Relation(0, 2.0**-21.9, f"{ISA}: relative error at most 2^-22.9"), powers(-100, 100), lambda x: 1 / np.sqrt(x))
approximation("approx_sqrt", "sqrt.approx.f32", 'asm("sqrt.approx.f32 %0, %1;" : "=f"(x) : "f"(x)); out[i] = x;',
              Relation(0, 2.0**-22, f"{ISA}: relative error at most 2^-23"), powers(-100, 100), np.sqrt)
approximation("approx_div", "div.approx.f32, div.full.f32", "out[i] = __fdividef(x, 3.7f);",
              ulps(4, f"{GUIDE}: __fdividef at most 2 ulp"), powers(-100, 100), lambda x: x / np.float64(np.float32(3.7)))
approximation("fast_exp", "__expf", "out[i] = __expf(x);",
              ulps(2 * (2 + 11), f"{GUIDE}: 2 + floor(|1.173 x|) ulp"), spread(-10, 10), np.exp)
approximation("fast_log", "__logf", "out[i] = __logf(x);",
              Relation(2.0**-20.4, 6 * 2.0**-23, f"{GUIDE}: 3 ulp, absolute 2^-21.41 in [0.5, 2]"), powers(-100, 100), np.log)
approximation("fast_pow", "__powf(x, 1.7)", "out[i] = __powf(x, 1.7f);",
              Relation(0, 2.0**-16, f"{GUIDE}: exp2f(y * __log2f(x)); the logarithm's error times y times |log2 result|"),
              powers(-8, 8),
              lambda x: x ** np.float64(np.float32(1.7)))
LIBM: list[tuple[str, float, Callable[[RNG], np.ndarray], Callable[[np.ndarray], np.ndarray]]] = [
    ("expf", 2, spread(-20, 20), np.exp), ("exp2f", 2, spread(-20, 20), np.exp2), ("exp10f", 2, spread(-9, 9), lambda x: 10**x),
    ("expm1f", 1, spread(-3, 3), np.expm1), ("logf", 1, powers(-60, 60), np.log), ("log2f", 1, powers(-60, 60), np.log2),
    ("log10f", 2, powers(-60, 60), np.log10), ("log1pf", 1, spread(-0.5, 5), np.log1p), ("sinf", 2, spread(-20, 20), np.sin),
    ("cosf", 2, spread(-20, 20), np.cos), ("tanf", 4, spread(-1.5, 1.5), np.tan), ("asinf", 4, spread(-1, 1), np.arcsin),
    ("acosf", 2, spread(-1, 1), np.arccos), ("atanf", 2, spread(-9, 9), np.arctan), ("sinhf", 3, spread(-5, 5), np.sinh),
    ("coshf", 2, spread(-5, 5), np.cosh), ("tanhf", 2, spread(-4, 4), np.tanh), ("cbrtf", 1, powers(-60, 60), np.cbrt),
    ("rsqrtf", 2, powers(-60, 60), lambda x: 1 / np.sqrt(x)), ("sqrtf", 1, powers(-60, 60), np.sqrt),
]


@GROUP.probe("(const float* a, float* out) {\n  int i = threadIdx.x;" + "".join(
    f"\n  out[{256 * k} + i] = {name}(a[{256 * k} + i]);" for k, (name, *_) in enumerate(LIBM)) + "\n}", block=(256,),
    relation=ulps(8, f"{GUIDE}: at most 4 ulp (tanf, asinf), the others less; doubled for two implementations", 2.0**-22),
    feature="f32 libm: " + ", ".join(name for name, *_ in LIBM))
def libm_f32(rng: RNG) -> Case:
    """The functions of LIBM."""
    a = np.concatenate([inputs(rng) for _, _, inputs, _ in LIBM])
    def expected() -> dict[str, np.ndarray]:
        parts = a.astype("f8").reshape(len(LIBM), 256)
        return {"out": np.concatenate([function(part) for part, (*_, function) in zip(parts, LIBM, strict=True)]).astype("f4")}
    return Case({"a": a, "out": zeros(a.size)}, expected)


@GROUP.probe("""(const float* a, const float* b,
    float* out) {
  int i = threadIdx.x; float x = a[i], y = b[i];
  out[i] = erff(x); out[128 + i] = erfcf(x); out[256 + i] = lgammaf(y); out[384 + i] = tgammaf(y); out[512 + i] = powf(y, x);
  out[640 + i] = atan2f(x, y - 2); out[768 + i] = fmodf(x, y); out[896 + i] = hypotf(x, y); out[1024 + i] = normcdff(x);
}""", block=(128,), relation=ulps(24,
                                  f"{GUIDE}: lgammaf 6 ulp outside (-10.001, -2.264), tgammaf 5, powf 4, erfcf 4, normcdff 5",
                                  4e-7))
def libm_special(rng: RNG) -> Case:
    """f32 libm by table: erff, erfcf, lgammaf, tgammaf, powf, atan2f, fmodf, hypotf, normcdff, erfinvf."""
    a, b = rng.uniform(-3, 3, 128).astype("f4"), rng.uniform(0.3, 6, 128).astype("f4")
    def expected() -> dict[str, np.ndarray]:
        from scipy import special
        x, y = a.astype("f8"), b.astype("f8")
        results = [special.erf(x), special.erfc(x), special.gammaln(y), special.gamma(y), y**x, np.arctan2(x, y - 2),
                   np.fmod(x, y), np.hypot(x, y), special.ndtr(x)]
        return {"out": np.concatenate(results).astype("f4")}
    return Case({"a": a, "b": b, "out": zeros(1152)}, expected)


@GROUP.probe("""(const double* a, double* out) {
  int i = threadIdx.x; double x = a[i];
  out[i] = sin(x); out[64 + i] = cos(x); out[128 + i] = exp(x); out[192 + i] = log(x); out[256 + i] = pow(x, 1.7);
    out[320 + i] = cbrt(x);
  out[384 + i] = erf(x); out[448 + i] = tgamma(x); out[512 + i] = atan2(x, 2.0); out[576 + i] = fmod(x, 0.7);
    out[640 + i] = log1p(x);
  out[704 + i] = tanh(x); out[768 + i] = rsqrt(x);
}""", block=(64,), relation=Relation(1e-15, 20 * 2.0**-52, f"{GUIDE}: tgamma 10 ulp, the others at most 2; doubled"))
def libm_f64(rng: RNG) -> Case:
    """f64 libm: sin, cos, exp, log, pow, sqrt, cbrt, erf, tgamma, atan2, fmod, log1p, tanh."""
    a = rng.uniform(0.1, 9, 64)
    def expected() -> dict[str, np.ndarray]:
        from scipy import special
        results = [np.sin(a), np.cos(a), np.exp(a), np.log(a), a**1.7, np.cbrt(a), special.erf(a), special.gamma(a),
                   np.arctan2(a, 2.0), np.fmod(a, 0.7), np.log1p(a), np.tanh(a), 1 / np.sqrt(a)]
        return {"out": np.concatenate(results)}
    return Case({"a": a, "out": zeros(832, "f8")}, expected)


@GROUP.probe("""(const float* a,
    const float* b, float* out) {
  int i = threadIdx.x, e; float x = a[i], y = b[i];
  out[i] = sqrtf(fabsf(x)); out[32 + i] = x / y; out[64 + i] = fmaf(x, y, x); out[96 + i] = rintf(x); out[128 + i] = roundf(x);
  out[160 + i] = floorf(x); out[192 + i] = ceilf(x); out[224 + i] = truncf(x); out[256 + i] = remainderf(x, y);
  out[288 + i] = ldexpf(x, 3); out[320 + i] = frexpf(x, &e); out[352 + i] = e; out[384 + i] = fmodf(x, y);
    out[416 + i] = nextafterf(x, y);
}""", options=("-ftz=false",))
def exact_functions(rng: RNG) -> Case:
    """correctly rounded functions: sqrtf, division, fmaf, rintf, roundf, floorf, ceilf, truncf, remainderf, ldexpf, frexpf."""
    a, b = floats(rng, 32) * 8, floats(rng, 32)
    a[:4] = [2.5, -2.5, 0.5, -0.0]
    def expected() -> dict[str, np.ndarray]:
        fma = (a.astype("f8") * b.astype("f8") + a.astype("f8")).astype("f4")
        mantissa, exponent = np.frexp(a)
        whole = a.astype("f8") - b.astype("f8") * np.rint(a.astype("f8") / b.astype("f8"))
        remainder = np.where(whole == 0, np.copysign(0, a), whole)
        half_away = np.copysign(np.floor(np.abs(a) + np.float32(0.5)), a)
        results = [np.sqrt(np.abs(a)), a / b, fma, np.rint(a), half_away, np.floor(a), np.ceil(a), np.trunc(a), remainder,
                   a * 8, mantissa, exponent, np.fmod(a, b), np.nextafter(a, b)]
        return {"out": np.concatenate([np.asarray(r, "f4") for r in results])}
    return Case({"a": a, "b": b, "out": zeros(448)}, expected)
