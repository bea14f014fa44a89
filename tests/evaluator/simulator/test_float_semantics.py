"""Floating point as the PTX says: subnormals, rounding, saturation, NaN, halves, conversions; bit for bit where possible."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from evaluator.compile import compile_cuda
from evaluator.simulator.interpreter import Buffer, Module, run

SOURCE = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" {
__global__ void flushing(const float* a, const float* b, float* out) {
  int i = threadIdx.x;
  out[i] = a[i] * b[i];
  out[32 + i] = a[i] + b[i];
  out[64 + i] = fmaf(a[i], b[i], a[i]);
  out[96 + i] = a[i] > 0.0f ? 1.0f : 0.0f;
}
__global__ void doubles_keep(const double* a, double* out) { out[threadIdx.x] = a[threadIdx.x] * 0.5; }
__global__ void rounding(const float* a, const float* b, float* out) {
  int i = threadIdx.x;
  out[i] = __fadd_rz(a[i], b[i]);
  out[32 + i] = __fadd_rd(a[i], b[i]);
  out[64 + i] = __fadd_ru(a[i], b[i]);
  out[96 + i] = __fadd_rn(a[i], b[i]);
}
__global__ void saturating(const float* a, float* out) { out[threadIdx.x] = __saturatef(a[threadIdx.x]); }
__global__ void minmax(const float* a, const float* b, float* out) {
  int i = threadIdx.x;
  out[i] = fminf(a[i], b[i]);
  out[32 + i] = fmaxf(a[i], b[i]);
}
__global__ void to_integers(const float* a, int* out) {
  int i = threadIdx.x;
  out[i] = (int)a[i];
  out[32 + i] = __float2int_rn(a[i]);
  out[64 + i] = __float2int_rd(a[i]);
  out[96 + i] = (int)(unsigned char)(unsigned)a[i];
}
__global__ void exponentials(const float* a, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = exp2f(a[i]);
  out[n + i] = __log2f(fabsf(a[i]));
  out[2 * n + i] = __expf(a[i]);
}
__global__ void halves(const __half2* a, const __half2* b, __half2* out) {
  int i = threadIdx.x;
  out[i] = __hfma2(a[i], b[i], a[i]);
  out[32 + i] = __hmul2(a[i], b[i]);
}
__global__ void bfloats(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* out) {
  int i = threadIdx.x;
  out[i] = __hadd(a[i], b[i]);
  out[32 + i] = __float2bfloat16(__bfloat162float(a[i]) * 1.00390625f);
}
__global__ void integer_division(const int* a, const int* b, int* out, long long* wide) {
  int i = threadIdx.x;
  out[i] = a[i] / b[i];
  out[32 + i] = a[i] % b[i];
  wide[i] = ((long long)a[i] * 1000003LL) / b[i];
  wide[32 + i] = __mul64hi((long long)a[i] << 32, (long long)b[i] << 31);
}
}
"""
FLT_MIN = np.float32(1.1754944e-38)


@pytest.fixture
def pairs(rng):
    return rng.standard_normal(32).astype("f4"), rng.standard_normal(32).astype("f4")


def test_ftz_flushes_operands_and_results_of_f32(device):
    a = device.array(np.full(32, FLT_MIN), "f4")
    b = device.array(np.where(np.arange(32) % 2, 0.5, 2.0), "f4")
    a[4], b[4] = FLT_MIN / 2, 1e30        # a subnormal operand counts as zero
    a[5], b[5] = -FLT_MIN / 4, 0.0
    out = device.zeros(128)
    device.clean(SOURCE, "flushing", 1, 32, [a, b, out])
    assert out[0] == 2 * FLT_MIN and out[1] == 0 and out[4] == 0
    assert out[32 + 4] == np.float32(1e30) and out[32 + 5] == 0
    assert out[64] == np.float32(3) * FLT_MIN and out[64 + 4] == 0
    assert out[96] == 1 and out[96 + 4] == 0  # a comparison sees zero too


def test_without_ftz_subnormals_survive():
    module = Module(compile_cuda(SOURCE.replace("flushing", "keeping"), options=("-ftz=false",)).ptx)
    a, b, out = np.full(32, FLT_MIN, "f4"), np.full(32, 0.5, "f4"), np.zeros(128, "f4")
    packed = b"".join(x.ctypes.data.to_bytes(8, "little") for x in (a, b, out))
    buffers = [Buffer(x.ctypes.data, x.nbytes, "x", True) for x in (a, b, out)]
    assert not run(module, "keeping", (1,), (32,), packed, buffers).findings
    assert out[0] == FLT_MIN / 2 and "mul.f32" in module_text(module)


def module_text(module: Module) -> str:
    return module.entries["keeping"].body


def test_double_subnormals_survive(device):
    a, out = device.array(np.full(32, 2.3e-308), "f8"), device.zeros(32, "f8")
    device.clean(SOURCE, "doubles_keep", 1, 32, [a, out])
    np.testing.assert_array_equal(out, a * 0.5)


def test_directed_rounding(device, pairs):
    a, b = (device.array(x) for x in pairs)
    out = device.zeros((4, 32))
    device.clean(SOURCE, "rounding", 1, 32, [a, b, out])
    exact, nearest = a.astype("f8") + b, a + b
    down = np.where(nearest.astype("f8") > exact, np.nextafter(nearest, np.float32(-np.inf)), nearest)
    up = np.where(nearest.astype("f8") < exact, np.nextafter(nearest, np.float32(np.inf)), nearest)
    np.testing.assert_array_equal(out[3], nearest)
    np.testing.assert_array_equal(out[1], down)
    np.testing.assert_array_equal(out[2], up)
    np.testing.assert_array_equal(out[0], np.where(exact > 0, down, up))
    assert (down != up).any()


def test_saturation_and_nan(device):
    a = device.array(np.linspace(-1, 2, 32), "f4")
    a[7] = np.nan
    out = device.zeros(32)
    device.clean(SOURCE, "saturating", 1, 32, [a, out])
    expected = np.clip(a, 0, 1)
    expected[7] = 0
    np.testing.assert_array_equal(out, expected)


def test_min_and_max_prefer_numbers_and_order_zeros(device, pairs):
    a, b = (device.array(x) for x in pairs)
    a[0], b[1] = np.nan, np.nan
    a[2], b[2] = -0.0, 0.0
    out = device.zeros((2, 32))
    device.clean(SOURCE, "minmax", 1, 32, [a, b, out])
    np.testing.assert_array_equal(out[0], np.fmin(a, b))
    np.testing.assert_array_equal(out[1], np.fmax(a, b))
    assert np.signbit(out[0, 2]) and not np.signbit(out[1, 2])


def test_float_to_integer_clamps(device):
    a = device.array(np.linspace(-3.5, 4.25, 32), "f4")
    a[0], a[1], a[2] = 3e9, -3e9, np.nan
    out = device.zeros((4, 32), "i4")
    device.clean(SOURCE, "to_integers", 1, 32, [a, out])
    assert out[:3, :3].tolist() == [[2**31 - 1, -(2**31), 0]] * 3
    np.testing.assert_array_equal(out[0, 3:], np.trunc(a[3:]))
    np.testing.assert_array_equal(out[1, 3:], np.rint(a[3:]))
    np.testing.assert_array_equal(out[2, 3:], np.floor(a[3:]))


def test_exponentials_are_as_close_as_the_hardware(device):
    n = 4000
    a = device.array(np.concatenate([np.linspace(-125, 127, n - 200), np.linspace(0.9, 1.1, 200)]), "f4")
    out = device.zeros((3, n))
    device.clean(SOURCE, "exponentials", 32, 128, [a, out, n])
    x = a.astype("f8")
    np.testing.assert_allclose(out[0], np.exp2(x), rtol=2.4e-7)
    np.testing.assert_allclose(out[1], np.log2(np.abs(x)), rtol=2e-7, atol=3e-7)
    keep = np.abs(x) < 80
    np.testing.assert_allclose(out[2][keep], np.exp(x[keep]), rtol=1e-5)


def test_half_fma_rounds_once(device, rng):
    a, b = (device.array(rng.standard_normal(64), "f2") for _ in range(2))
    a[:2] = np.float16(6e-8), np.float16(-5.96e-8)  # subnormal halves are not flushed
    out = device.zeros((2, 64), "f2")
    device.clean(SOURCE, "halves", 1, 32, [a, b, out])
    exact = a.astype("f8") * b.astype("f8")
    np.testing.assert_array_equal(out[0], (exact + a.astype("f8")).astype("f2"))
    np.testing.assert_array_equal(out[1], exact.astype("f2"))


def test_bfloat16(device, rng):
    bf16 = np.dtype(ml_dtypes.bfloat16)
    a, b = (device.array(rng.standard_normal(32).astype(bf16).view("u2")) for _ in range(2))
    out = device.zeros((2, 32), "u2")
    device.clean(SOURCE, "bfloats", 1, 32, [a, b, out])
    x, y = a.view(bf16).astype("f4"), b.view(bf16).astype("f4")
    np.testing.assert_array_equal(out[0].view(bf16), (x + y).astype(bf16))
    np.testing.assert_array_equal(out[1].view(bf16), (x * np.float32(1.00390625)).astype(bf16))


def test_integer_division_and_wide_products(device, rng):
    a, b = device.array(rng.integers(-2**31, 2**31, 32), "i4"), device.array(rng.integers(1, 1000, 32), "i4")
    b[::2] *= -1
    out, wide = device.zeros((2, 32), "i4"), device.zeros((2, 32), "i8")
    device.clean(SOURCE, "integer_division", 1, 32, [a, b, out, wide])
    pairs_of = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    quotient = [int(abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs_of]
    assert out[0].tolist() == quotient
    assert out[1].tolist() == [x - q * y for (x, y), q in zip(pairs_of, quotient, strict=True)]
    assert wide[0].tolist() == [abs(x * 1000003) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs_of]
    assert wide[1].tolist() == [((x << 32) * (y << 31)) >> 64 for x, y in pairs_of]


