"""cvt: between integers, f16, bf16, tf32, f32, f64 and the 8-bit floats, in every rounding."""

from __future__ import annotations

import numpy as np

from benchmarks.probes.floats import edges, floats
from benchmarks.probes.integers import words
from benchmarks.probes.probe import Case, Group

GROUP = Group("conversions", "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_fp8.h>")
RNG = np.random.Generator


def mixed(rng: RNG, dtype: str = "f4") -> np.ndarray:
    """Special values, halves of integers, and numbers beyond the integers' range."""
    ties = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5, 127.5, 254.5, 255.5, -128.5], dtype)
    large = np.array([3e9, -3e9, 1e20, -1e20, 65520, 65504, 65519, -65536], dtype)
    return np.concatenate([edges(rng, 24, dtype), ties, large, floats(rng, 21, dtype) * 50])[:64]


def clamp(values: np.ndarray, dtype: str) -> np.ndarray:
    """Float to integer as PTX does it: limits, and 0 for NaN."""
    info = np.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        inside = np.where(np.isnan(values), 0, np.clip(values, float(info.min), float(info.max)))
        return np.array([min(max(int(v), info.min), info.max) for v in inside], dtype)


@GROUP.probe("""(const float* a, int* out, long long* wide) {
  int i = threadIdx.x; short h; unsigned u;
  out[i] = __float2int_rn(a[i]); out[64 + i] = __float2int_rz(a[i]); out[128 + i] = __float2int_rd(a[i]);
    out[192 + i] = __float2int_ru(a[i]);
  out[256 + i] = __float2uint_rn(a[i]);
  asm("cvt.rzi.s16.f32 %0, %1;" : "=h"(h) : "f"(a[i])); out[320 + i] = h;
  asm("{.reg .u16 t; cvt.rni.u8.f32 t, %1; cvt.u32.u16 %0, t;}" : "=r"(u) : "f"(a[i])); out[384 + i] = u & 255;
  wide[i] = a[i] != a[i] ? 0 : __float2ll_rd(a[i]);
}""", block=(64,), options=("-ftz=false",))
def float_to_integer(rng: RNG) -> Case:
    """cvt.rni, .rzi, .rmi, .rpi from f32 to s32, u32, u8, s16, s64."""
    a = mixed(rng)
    def expected() -> dict[str, np.ndarray]:
        with np.errstate(invalid="ignore"):
            x = a.astype("f8")
            out = [clamp(np.rint(x), "i4"), clamp(np.trunc(x), "i4"), clamp(np.floor(x), "i4"), clamp(np.ceil(x), "i4"),
                   clamp(np.rint(x), "u4").view("i4"), clamp(np.trunc(x), "i2").astype("i4"), clamp(np.rint(x),
                                                                                                    "u1").astype("i4")]
            return {"out": np.concatenate(out), "wide": clamp(np.floor(x), "i8")}
    return Case({"a": a, "out": np.zeros(448, "i4"), "wide": np.zeros(64, "i8")}, expected)


@GROUP.probe("""(const long long* a, float* out, double* wide,
    unsigned short* halves) {
  int i = threadIdx.x, x = (int)a[i];
  out[i] = __int2float_rn(x); out[32 + i] = __int2float_rz(x); out[64 + i] = __int2float_rd(x); out[96 + i] = __int2float_ru(x);
  out[128 + i] = __uint2float_rn((unsigned)x); out[160 + i] = __ll2float_rn(a[i]); out[192 + i] = __ull2float_rz(a[i]);
  wide[i] = __ll2double_rn(a[i]); wide[32 + i] = __ull2double_rd(a[i]); wide[64 + i] = (double)x;
  halves[i] = __half_as_ushort(__int2half_rn(x >> 14)); halves[32 + i] = __bfloat16_as_ushort(__int2bfloat16_rn(x));
}""")
def integer_to_float(rng: RNG) -> Case:
    """cvt.rn, .rz, .rm, .rp from s32, u32, s64, u64 to f32; to f64; to f16, bf16."""
    a = words(rng, 32, "i8") >> rng.integers(0, 50, 32)
    def expected() -> dict[str, np.ndarray]:
        from fractions import Fraction

        import ml_dtypes

        from benchmarks.probes.floats import rounded
        low = [int(v) for v in a.astype("i4")]
        def all_of(values: list[int], mode: str, dtype: str) -> list[float]:
            return [rounded(Fraction(v), mode, dtype) for v in values]
        whole = [int(v) for v in a]
        unsigned = [v & ((1 << 64) - 1) for v in whole]
        out = [all_of(low, "rn", "f4"), all_of(low, "rz", "f4"), all_of(low, "rm", "f4"), all_of(low, "rp", "f4"),
               all_of([v & 0xffffffff for v in low], "rn", "f4"), all_of(whole, "rn", "f4"), all_of(unsigned, "rz", "f4")]
        wide = [all_of(whole, "rn", "f8"), all_of(unsigned, "rm", "f8"), low]
        with np.errstate(over="ignore"):
            f16 = np.array([v >> 14 for v in low], "f8").astype("f2").view("u2")
        bf16 = np.array(low, "f8").astype(ml_dtypes.bfloat16).view("u2")
        return {"out": np.concatenate(out).astype("f4"), "wide": np.concatenate(wide).astype("f8"),
                "halves": np.concatenate([f16, bf16])}
    return Case({"a": a, "out": np.zeros(224, "f4"), "wide": np.zeros(96, "f8"), "halves": np.zeros(64, "u2")}, expected)


@GROUP.probe("""(const double* a, float* out, double* wide, unsigned short* halves) {
  int i = threadIdx.x;
  out[i] = __double2float_rn(a[i]); out[32 + i] = __double2float_rz(a[i]); out[64 + i] = __double2float_rd(a[i]);
  out[96 + i] = __double2float_ru(a[i]); wide[i] = out[i];
  halves[i] = __half_as_ushort(__double2half(a[i])); halves[32 + i] = __bfloat16_as_ushort(__double2bfloat16(a[i]));
}""", options=("-ftz=false",))
def double_to_float(rng: RNG) -> Case:
    """cvt from f64 to f32 in rn, rz, rm, rp, and back; to f16 and bf16."""
    a = floats(rng, 32, "f8", wide=True)
    a[:8] = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e300, 1e-300, 1e-40]
    def expected() -> dict[str, np.ndarray]:
        import ml_dtypes
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            near = a.astype("f4")
            exact = near.astype("f8")
            down = np.where(exact > a, np.nextafter(near, np.float32(-np.inf)), near)
            up = np.where(exact < a, np.nextafter(near, np.float32(np.inf)), near)
            zero = np.where(a > 0, down, up)
            halves = [a.astype("f2").view("u2"), a.astype(ml_dtypes.bfloat16).view("u2")]
        return {"out": np.concatenate([near, zero, down, up]), "wide": near.astype("f8"),
                "halves": np.concatenate([nan_as_cuda(halves[0], 0x7c00), nan_as_cuda(halves[1], 0x7f80)])}
    return Case({"a": a, "out": np.zeros(128, "f4"), "wide": np.zeros(32, "f8"), "halves": np.zeros(64, "u2")}, expected)


def nan_as_cuda(raw: np.ndarray, infinity: int) -> np.ndarray:
    """16-bit floats as bits: PTX conversions give the NaN 0x7fff."""
    return np.where((raw & 0x7fff) > infinity, 0x7fff, raw).astype("u2")


@GROUP.probe("""(const float* a, unsigned short* out, float* back) {
  int i = threadIdx.x; float x = a[i];
  out[i] = __half_as_ushort(__float2half_rn(x)); out[64 + i] = __half_as_ushort(__float2half_rz(x));
  out[128 + i] = __half_as_ushort(__float2half_rd(x)); out[192 + i] = __half_as_ushort(__float2half_ru(x));
  out[256 + i] = __bfloat16_as_ushort(__float2bfloat16_rn(x)); out[320 + i] = __bfloat16_as_ushort(__float2bfloat16_rz(x));
  out[384 + i] = __bfloat16_as_ushort(__float2bfloat16_rd(x)); out[448 + i] = __bfloat16_as_ushort(__float2bfloat16_ru(x));
  back[i] = __half2float(__ushort_as_half(out[i])); back[64 + i] = __bfloat162float(__ushort_as_bfloat16(out[256 + i]));
}""", block=(64,), options=("-ftz=false",))
def float_to_half(rng: RNG) -> Case:
    """f32 to f16 in rn, rz, rd, ru, and to bf16 in rn, rz, rd, ru; back."""
    a = mixed(rng)
    def expected() -> dict[str, np.ndarray]:
        import ml_dtypes
        columns, back = [], []
        for kind, infinity in (("f2", 0x7c00), (ml_dtypes.bfloat16, 0x7f80)):
            with np.errstate(over="ignore", invalid="ignore"):
                near = a.astype(kind)
                wide, x = near.astype("f8"), a.astype("f8")
                down = np.where(wide > x, np.nextafter(near, np.dtype(kind).type(-np.inf)), near)
                up = np.where(wide < x, np.nextafter(near, np.dtype(kind).type(np.inf)), near)
                modes = [near, np.where(x > 0, down, up), down, up]
            columns += [nan_as_cuda(m.astype(kind).view("u2"), infinity) for m in modes]
            back.append(near.astype("f4"))
        return {"out": np.concatenate(columns), "back": np.concatenate(back)}
    return Case({"a": a, "out": np.zeros(512, "u2"), "back": np.zeros(128, "f4")}, expected)


@GROUP.probe("""(const unsigned short* a, int* out, unsigned short* halves) {
  int i = threadIdx.x; __half h = __ushort_as_half(a[i]);
  out[i] = __half2int_rn(h); out[32 + i] = __half2int_rz(h); out[64 + i] = __half2int_rd(h); out[96 + i] = __half2int_ru(h);
  out[128 + i] = __half2ushort_rn(h); out[160 + i] = __half2short_rz(h);
    out[192 + i] = __bfloat162int_rz(__ushort_as_bfloat16(a[i]));
  halves[i] = __half_as_ushort(hrint(h)); halves[32 + i] = __half_as_ushort(htrunc(h));
    halves[64 + i] = __half_as_ushort(hfloor(h));
  halves[96 + i] = __half_as_ushort(hceil(h)); halves[128 + i] = __half_as_ushort(__ushort2half_rn(a[i]));
}""")
def half_to_integer(rng: RNG) -> Case:
    """f16 to integers and back in their roundings; f16 <-> f64, bf16 <-> integers."""
    a = (rng.standard_normal(32) * 90).astype("f2")
    a[:5] = [0.5, -0.5, 1.5, 60000, -60000]
    raw = a.view("u2")
    def expected() -> dict[str, np.ndarray]:
        import ml_dtypes
        x = a.astype("f8")
        b = raw.view(ml_dtypes.bfloat16).astype("f8")
        out = [np.rint(x), np.trunc(x), np.floor(x), np.ceil(x), clamp(np.rint(x), "u2"), clamp(np.trunc(x), "i2"),
               clamp(np.trunc(b), "i4")]
        halves = [np.rint(x), np.trunc(x), np.floor(x), np.ceil(x), raw.astype("f8")]
        return {"out": np.concatenate(out).astype("i4"), "halves": np.concatenate([h.astype("f2") for h in halves]).view("u2")}
    return Case({"a": raw, "out": np.zeros(224, "i4"), "halves": np.zeros(160, "u2")}, expected)


@GROUP.probe("""(const float* a, unsigned char* out, unsigned short* back) {
  int i = threadIdx.x;
  out[i] = __nv_cvt_float_to_fp8(a[i], __NV_SATFINITE, __NV_E4M3);
    out[64 + i] = __nv_cvt_float_to_fp8(a[i], __NV_SATFINITE, __NV_E5M2);
  __half h = __float2half_rn(a[i]);
  out[128 + i] = __nv_cvt_halfraw_to_fp8(h, __NV_SATFINITE, __NV_E4M3);
    out[192 + i] = __nv_cvt_halfraw_to_fp8(h, __NV_SATFINITE, __NV_E5M2);
  back[i] = __half_as_ushort(__half(__nv_cvt_fp8_to_halfraw(out[i], __NV_E4M3)));
  back[64 + i] = __half_as_ushort(__half(__nv_cvt_fp8_to_halfraw(out[64 + i], __NV_E5M2)));
}""", block=(64,))
def fp8(rng: RNG) -> Case:
    """fp8 e4m3 and e5m2: from f32 and half2 (rn, satfinite), and back."""
    a = np.concatenate([[0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 480, 57344, 61440, 1e6, 2.0**-9, 2.0**-10,
                         3 * 2.0**-10, 2.0**-17],
                        np.ldexp(rng.uniform(1, 2, 48), rng.integers(-12, 9, 48)) * rng.choice([-1, 1], 48)]).astype("f4")
    def expected() -> dict[str, np.ndarray]:
        import ml_dtypes
        columns, back = [], []
        with np.errstate(over="ignore", invalid="ignore"):
            for source in (a.astype("f4"), a.astype("f2").astype("f4")):
                for kind, limit in ((ml_dtypes.float8_e4m3fn, 448), (ml_dtypes.float8_e5m2, 57344)):
                    code = np.clip(source, -limit, limit).astype(kind).view("u1")
                    columns.append(np.where(np.isnan(source), 0x7f, code).astype("u1"))
            for k, kind in enumerate((ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)):
                back.append(nan_as_cuda(columns[k].view(kind).astype("f2").view("u2"), 0x7c00))
        return {"out": np.concatenate(columns), "back": np.concatenate(back)}
    return Case({"a": a, "out": np.zeros(256, "u1"), "back": np.zeros(128, "u2")}, expected)


@GROUP.probe("""(const float* a, const int* b, unsigned* out) {
  int i = threadIdx.x; unsigned r; short h;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(a[i])); out[i] = r;
  asm("{.reg .u16 t; cvt.sat.u8.s32 t, %1; cvt.u32.u16 %0, t;}" : "=r"(r) : "r"(b[i])); out[32 + i] = r & 255;
  asm("cvt.sat.s16.s32 %0, %1;" : "=h"(h) : "r"(b[i])); out[64 + i] = (int)h;
  out[96 + i] = (int)(signed char)b[i]; out[128 + i] = (unsigned char)b[i]; out[160 + i] = (unsigned)((long long)b[i] >> 33);
}""", options=("-ftz=false",))
def narrow(rng: RNG) -> Case:
    """cvt.rna.tf32, cvt.sat between integers, narrow sign and zero extension."""
    a, b = floats(rng, 32, wide=True), words(rng, 32, "i4") >> rng.integers(0, 30, 32).astype("i4")
    def expected() -> dict[str, np.ndarray]:
        tf32 = (a.view("u4") + np.uint32(0x1000)) & np.uint32(0xffffe000)
        out = [np.clip(b, 0, 255), np.clip(b, -32768, 32767), b.astype("i1"), b.astype("u1"), b.astype("i8") >> 33]
        return {"out": np.concatenate([tf32, *(v.astype("i4").view("u4") for v in out)])}
    return Case({"a": a, "b": b, "out": np.zeros(192, "u4")}, expected)
