"""Processor time of the simulator on four kernels, with counts alone and with the race checks.

`python -m benchmarks.simulator_speed [--repeat N] [--threads T]`: the least of N runs counts, for a busy machine's sake.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from evaluator.compile import compile_cuda
from evaluator.simulator.interpreter import Buffer, Module, run

SOURCE = r"""
extern "C" __global__ void elementwise(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] * 2.0f + b[i];
}
extern "C" __global__ void softmax(const float* a, float* out, int n) {
  __shared__ float part[8];
  const float* row = a + blockIdx.x * n;
  float largest = -3.4e38f, sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 256) largest = fmaxf(largest, row[i]);
  for (int o = 16; o; o >>= 1) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, o));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = largest;
  __syncthreads();
  for (int i = 0; i < 8; i++) largest = fmaxf(largest, part[i]);
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 256) sum += __expf(row[i] - largest);
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int i = 0; i < 8; i++) sum += part[i];
  for (int i = threadIdx.x; i < n; i += 256) out[blockIdx.x * n + i] = __expf(row[i] - largest) / sum;
}
extern "C" __global__ void tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float x[32][32], y[32][32];
  int r = blockIdx.y * 32 + threadIdx.y, q = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < n; k += 32) {
    x[threadIdx.y][threadIdx.x] = a[r * n + k + threadIdx.x];
    y[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + q];
    __syncthreads();
    for (int i = 0; i < 32; i++) sum += x[threadIdx.y][i] * y[i][threadIdx.x];
    __syncthreads();
  }
  c[r * n + q] = sum;
}
extern "C" __global__ void register_tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float x[16][64], y[16][64];
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16, row = blockIdx.y * 64, col = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int k = 0; k < n; k += 16) {
    for (int i = threadIdx.x; i < 1024; i += 256) {
      x[i % 16][i / 16] = a[(row + i / 16) * n + k + i % 16];
      y[i / 64][i % 64] = b[(k + i / 64) * n + col + i % 64];
    }
    __syncthreads();
    for (int i = 0; i < 16; i++)
      for (int p = 0; p < 4; p++)
        for (int q = 0; q < 4; q++) sum[p][q] += x[i][ty * 4 + p] * y[i][tx * 4 + q];
    __syncthreads();
  }
  for (int p = 0; p < 4; p++)
    for (int q = 0; q < 4; q++) c[(row + ty * 4 + p) * n + col + tx * 4 + q] = sum[p][q];
}
"""


class Subject(NamedTuple):
    """A kernel of SOURCE and its launch; array sizes in elements."""

    kernel: str
    title: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arrays: tuple[int, ...]
    n: int


SUBJECTS = (
    Subject("elementwise", "elementwise, 1 M", (4096,), (256,), (1 << 20,) * 3, 1 << 20),
    Subject("softmax", "softmax, 1024 x 1024", (1024,), (256,), (1 << 20,) * 2, 1024),
    Subject("tiled", "32 x 32 tiled product, 512^3", (16, 16), (32, 32), (512 * 512,) * 3, 512),
    Subject("register_tiled", "4 x 4 register-tiled product, 512^3", (8, 8), (256,), (512 * 512,) * 3, 512),
)


class Timing(NamedTuple):
    """One way of running a subject."""

    processor_s: float
    wall_s: float
    warp_instructions: int


def measure(module: Module, subject: Subject, repeat: int, **options: Any) -> Timing:
    """The least processor and wall time of `repeat` runs. Raises RuntimeError where the kernel has a finding."""
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(size, dtype=np.float32) for size in subject.arrays]
    packed = b"".join(a.ctypes.data.to_bytes(8, "little") for a in arrays) + subject.n.to_bytes(4, "little")
    buffers = [Buffer(a.ctypes.data, a.nbytes, f"array {i}", True) for i, a in enumerate(arrays)]
    best = Timing(float("inf"), float("inf"), 0)
    for _ in range(repeat):
        began, wall = time.process_time(), time.perf_counter()
        result = run(module, subject.kernel, subject.grid, subject.block, packed, buffers, **options)
        spent = Timing(time.process_time() - began, time.perf_counter() - wall, result.counts.warp_instructions)
        if result.findings:
            raise RuntimeError(f"{subject.kernel}: {result.findings[0].message}")
        best = Timing(min(best.processor_s, spent.processor_s), min(best.wall_s, spent.wall_s), spent.warp_instructions)
    return best


def main(argv: Sequence[str]) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulator_speed", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(argv)
    module = Module(compile_cuda(SOURCE).ptx)
    wall = f"wall s, 1 / {options.threads} threads"
    print(f"{'kernel':<38}{'counts s':>10}{'+ checks s':>12}{'ns a warp instruction':>24}{wall:>26}")
    for subject in SUBJECTS:
        counts = measure(module, subject, options.repeat, checks=False)
        checks = measure(module, subject, options.repeat, checks=True)
        threaded = measure(module, subject, options.repeat, checks=True, threads=options.threads)
        each = " / ".join(f"{1e9 * timing.processor_s / timing.warp_instructions:.1f}" for timing in (counts, checks))
        print(f"{subject.title:<38}{counts.processor_s:>10.3f}{checks.processor_s:>12.3f}{each:>24}"
              f"{checks.wall_s:>16.3f} / {threaded.wall_s:.3f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
