"""Registers wider than an instruction's type are cut or extended lane by lane (PTX ISA, Operand Size Exceeding Instruction-Type
Size): reading them as they lie would give a lane part of another lane's value."""

from __future__ import annotations

import numpy as np

WIDE = r"""
extern "C" __global__ void wide(const float* a, const float* b, float* out, int m, int n, int k) {
  const int row = threadIdx.x % 16, column = threadIdx.x / 16;
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; i++) sum += a[(long long)row * k + i] * b[(long long)i * n + column];
  out[(long long)row * n + column] = sum;
}
extern "C" __global__ void extended(long long* out) {
  long long signed_wide, unsigned_wide;
  const long long lane = -3 - (long long)threadIdx.x;
  asm("cvt.s32.s64 %0, %1;" : "=l"(signed_wide) : "l"(lane));
  asm("cvt.u32.u64 %0, %1;" : "=l"(unsigned_wide) : "l"(lane));
  out[threadIdx.x] = signed_wide; out[32 + threadIdx.x] = unsigned_wide;
}
"""


def test_a_wide_loop_counter_is_cut_lane_by_lane(device, rng):
    for k in (16, 17, 18, 19):
        a, b = rng.standard_normal((3, k), np.float32), rng.standard_normal((k, 16), np.float32)
        out = device.array(np.zeros((3, 16), np.float32))
        device.clean(WIDE, "wide", 1, 256, (device.array(a), device.array(b), out, 3, 16, k))
        np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)


def test_a_wide_destination_is_extended_by_its_type(device):
    out = device.array(np.zeros(64, np.int64))
    device.clean(WIDE, "extended", 1, 32, (out,))
    lanes = -3 - np.arange(32)
    np.testing.assert_array_equal(out[:32], lanes)
    np.testing.assert_array_equal(out[32:], lanes.astype(np.uint32))
