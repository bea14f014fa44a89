"""Solution skeletons of the quality proof of `kernelskill check`, and the right kernels that faults are planted into."""

from __future__ import annotations

from dataclasses import dataclass, field

FINITE = 'SUPPORTS = {"values": "finite"}\n'


@dataclass(frozen=True)
class Kernel:
    """A solution of the proof."""

    name: str
    task: str
    source: str
    properties: tuple[str, ...] = ()
    """Planted: the properties of which at least one must be violated."""
    minimal: dict[str, int] = field(default_factory=dict)
    """Planted: the smallest sizes that show the fault, worked out by hand."""


def elementwise(
    body: str, *, output: str = "cp.empty_like(x)", grid: str = "(n + 255) // 256", threads: int = 256, before: str = "",
    types: str = "const float* x, float* y", result: str = "y", more: str = "",
) -> str:
    """y[i] from x[i], one thread an element."""
    return f'''import cupy as cp
import numpy as np

CODE = r"""{before}
extern "C" __global__ void kernel({types}, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  {body}
}}
"""
kernel = cp.RawKernel(CODE, "kernel")
{more}

def run(x):
    n = x.size
    y = {output}
    kernel(({grid},), ({threads},), (x, y, np.int32(n)))
    return {result}
'''


def rowwise(
    body: str, *, output: str = "cp.empty(rows, dtype=x.dtype)", threads: int = 128, grid: str = "rows", before: str = "",
    types: str = "const float* x, float* y", arguments: str = "np.int32(cols)", parameters: str = "int cols",
    entry: str = "def run(x):", call: str = "x, y",
) -> str:
    """One block a row of x[rows, cols]."""
    return f'''import cupy as cp
import numpy as np

CODE = r"""{before}
extern "C" __global__ void kernel({types}, {parameters}) {{
  const float* row = x + (long long)blockIdx.x * cols;
  int t = threadIdx.x;
{body}
}}
"""
kernel = cp.RawKernel(CODE, "kernel")


{entry}
    rows, cols = x.shape
    y = {output}
    kernel(({grid},), ({threads},), ({call}, {arguments}))
    return y
'''


TREE = """
  __shared__ float partial[128];
  float sum = 0.f;
  for (int c = t; c < cols; c += 128) sum += row[c];
  partial[t] = sum;
  __syncthreads();
  for (int step = 64; step > 0; step >>= 1) {
    if (t < step) partial[t] += partial[t + step];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = partial[0];
"""
"""A right block reduction: the sum of a row."""
WARPS = """
  __shared__ float warps[4];
  float best = -__int_as_float(0x7f800000);
  for (int c = t; c < cols; c += 128) best = row[c] > best || row[c] != row[c] ? row[c] : best;
  for (int o = 16; o > 0; o >>= 1) {
    float other = __shfl_xor_sync(0xffffffffu, best, o);
    best = other > best || other != other ? other : best;
  }
  if (t % 32 == 0) warps[t / 32] = best;
  __syncthreads();
  if (t == 0) {
    for (int w = 1; w < 4; ++w) best = warps[w] > best || warps[w] != warps[w] ? warps[w] : best;
    y[blockIdx.x] = best;
  }
"""
"""A right maximum of a row, NaN included (once a NaN is met it stays: no comparison with it is true)."""
GEMM = '''import cupy as cp
import numpy as np

CODE = r"""
#define T 16
extern "C" __global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float as[T][T], bs[T][T];
  int col = blockIdx.x * T + threadIdx.x, row = blockIdx.y * T + threadIdx.y;
  float sum = 0.f;
  for (int k0 = 0; k0 < k; k0 += T) {
    as[threadIdx.y][threadIdx.x] = row < m && k0 + threadIdx.x < k ? a[(long long)row * k + k0 + threadIdx.x] : 0.f;
    bs[threadIdx.y][threadIdx.x] = k0 + threadIdx.y < k && col < n ? b[(long long)(k0 + threadIdx.y) * n + col] : 0.f;
    __syncthreads();
    for (int i = 0; i < T; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) c[(long long)row * n + col] = sum;
}
"""
gemm = cp.RawKernel(CODE, "gemm")


def run(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = cp.empty((m, n), dtype=a.dtype)
    gemm(((n + 15) // 16, (m + 15) // 16), (16, 16), (a, b, c, np.int32(m), np.int32(n), np.int32(k)))
    return c
'''
TRANSPOSE = '''import cupy as cp
import numpy as np

CODE = r"""
extern "C" __global__ void transpose(const float* x, float* y, int rows, int cols) {
  __shared__ float tile[16][17];
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = x[(long long)r * cols + c];
  __syncthreads();
  r = blockIdx.y * 16 + threadIdx.x;
  c = blockIdx.x * 16 + threadIdx.y;
  if (r < rows && c < cols) y[(long long)c * rows + r] = tile[threadIdx.x][threadIdx.y];
}
"""
transpose = cp.RawKernel(CODE, "transpose")


def run(x):
    rows, cols = x.shape
    y = cp.empty((cols, rows), dtype=x.dtype)
    transpose(((cols + 15) // 16, (rows + 15) // 16), (16, 16), (x, y, np.int32(rows), np.int32(cols)))
    return y
'''
SCAN = """
  __shared__ float part[256];
  __shared__ float carry;
  int t = threadIdx.x;
  if (t == 0) carry = 0.f;
  for (int base = 0; base < n; base += 256) {
    part[t] = base + t < n ? x[base + t] : 0.f;
    __syncthreads();
    for (int d = 1; d < 256; d <<= 1) {
      float add = t >= d ? part[t - d] : 0.f;
      __syncthreads();
      part[t] += add;
      __syncthreads();
    }
    if (base + t < n) y[base + t] = part[t] + carry;
    __syncthreads();
    if (t == 0) carry += part[255];
    __syncthreads();
  }
"""
SOFTMAX = """
  __shared__ float partial[128];
  float best = -__int_as_float(0x7f800000);
  for (int c = t; c < cols; c += 128) best = fmaxf(best, row[c]);
  partial[t] = best;
  __syncthreads();
  for (int step = 64; step > 0; step >>= 1) {
    if (t < step) partial[t] = fmaxf(partial[t], partial[t + step]);
    __syncthreads();
  }
  best = partial[0];
  __syncthreads();
  float sum = 0.f;
  for (int c = t; c < cols; c += 128) sum += expf(row[c] - best);
  partial[t] = sum;
  __syncthreads();
  for (int step = 64; step > 0; step >>= 1) {
    if (t < step) partial[t] += partial[t + step];
    __syncthreads();
  }
  sum = partial[0];
  for (int c = t; c < cols; c += 128) y[(long long)blockIdx.x * cols + c] = expf(row[c] - best) / sum;
"""
NORMALISE = """
  __shared__ float partial[128];
  float sum = 0.f;
  for (int c = t; c < cols; c += 128) sum += row[c];
  partial[t] = sum;
  __syncthreads();
  for (int step = 64; step > 0; step >>= 1) {
    if (t < step) partial[t] += partial[t + step];
    __syncthreads();
  }
  float mean = partial[0] / cols;
  __syncthreads();
  sum = 0.f;
  for (int c = t; c < cols; c += 128) sum += (row[c] - mean) * (row[c] - mean);
  partial[t] = sum;
  __syncthreads();
  for (int step = 64; step > 0; step >>= 1) {
    if (t < step) partial[t] += partial[t + step];
    __syncthreads();
  }
  float scale = rsqrtf(partial[0] / cols + 1e-5f);
  for (int c = t; c < cols; c += 128) y[(long long)blockIdx.x * cols + c] = (row[c] - mean) * scale;
"""


def module(code: str, host: str, *, kernels: tuple[str, ...] = ("kernel",), declared: str = "") -> str:
    """A solution of its own form: CUDA text, the kernels in it, and the Python that calls them."""
    names = "\n".join(f'{name} = cp.RawKernel(CODE, "{name}")' for name in kernels)
    return f'''{declared}import cupy as cp
import numpy as np

CODE = r"""{code}"""
{names}


{host.strip()}
'''
