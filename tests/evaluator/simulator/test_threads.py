"""Host threads share a launch without changing what it does."""

from __future__ import annotations

import numpy as np
import pytest

SOURCE = r"""
extern "C" {
__global__ void softmax(const float* x, float* y, int n) {
  __shared__ float part[8];
  const float* row = x + blockIdx.x * n;
  float m = -1e30f, s = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) m = fmaxf(m, row[i]);
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = m;
  __syncthreads();
  for (int w = 0; w < blockDim.x / 32; w++) m = fmaxf(m, part[w]);
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) s += __expf(row[i] - m);
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = s;
  __syncthreads();
  s = 0.0f;
  for (int w = 0; w < blockDim.x / 32; w++) s += part[w];
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = __expf(row[i] - m) / s;
}
__global__ void float_sum(const float* x, float* total) { atomicAdd(total, x[blockIdx.x * blockDim.x + threadIdx.x]); }
__global__ void late_fault(const float* x, float* y, int first) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  if (blockIdx.x >= first) y[100000 + blockIdx.x] = 1.0f;
  y[threadIdx.x] = s[63 - threadIdx.x];
}
}
"""


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_and_counts(device, rng, threads):
    x, y = device.array(rng.standard_normal((64, 300)), "f4"), device.zeros((64, 300))
    result = device.clean(SOURCE, "softmax", 64, 256, [x, y, 300], threads=threads)
    e = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=2e-5)
    single = device.clean(SOURCE, "softmax", 64, 256, [x, y, 300], threads=1)
    np.testing.assert_array_equal(result.counts.per_instruction, single.counts.per_instruction)


def test_order_dependent_atomics_give_the_same_bits(device, rng):
    x = device.array(rng.standard_normal(4096) * 10.0 ** rng.integers(-4, 5, 4096), "f4")
    sums = []
    for threads in (1, 2, 4):
        total = device.zeros(1)
        device.clean(SOURCE, "float_sum", 32, 128, [x, total], threads=threads)
        sums.append(total[0])
    assert len(set(sums)) == 1 and np.isclose(sums[0], x.sum(dtype="f8"), rtol=1e-4)


def test_the_first_fault_in_block_order_is_reported(device):
    x, y = device.array(np.ones(64), "f4"), device.zeros(64)
    seen = []
    for threads in (1, 4, 4, 4):
        result = device.launch(SOURCE, "late_fault", 200, 64, [x, y, 37], threads=threads)
        assert result.fatal
        seen.append([(f.kind, f.line, f.block, f.message.split(",")[-1]) for f in result.findings])
    assert seen[0][0][0] == "out_of_bounds" and seen[0][0][2] == (37, 0, 0)
    assert all(s == seen[0] for s in seen)
