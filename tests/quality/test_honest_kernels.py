"""Right solutions in the styles that people write pass without a finding, whatever the guard and the verifier look for."""

from __future__ import annotations

import pytest
from kernels import ROW_MAX, ROW_SIZES, ROW_SUM, SCALE, SOFTMAX, TRANSPOSE, VECTOR_SIZES, elementwise, rowwise

from benchmarks.check_quality.honest import ONLINE
from benchmarks.check_quality.kernels import TREE
from evaluator.types import Status

LARGER_ROWS = [{"rows": 3, "cols": 5}, {"rows": 4, "cols": 4096}]
SERIAL_SUM = """
  if (t == 0) {
    float sum = 0.f;
    for (int c = 0; c < cols; ++c) sum += row[c];
    y[blockIdx.x] = sum;
  }
"""
ATOMIC_SUM = """
  for (int c = t; c < cols; c += 128) atomicAdd(&y[blockIdx.x], row[c]);
"""
WARP_MAX = """
  __shared__ float best_of[4];
  float best = -3.402823466e38f;
  for (int c = t; c < cols; c += 128) best = fmaxf(best, row[c]);
  for (int o = 16; o > 0; o >>= 1) best = fmaxf(best, __shfl_down_sync(0xffffffffu, best, o));
  if (t % 32 == 0) best_of[t / 32] = best;
  __syncthreads();
  if (t == 0) y[blockIdx.x] = fmaxf(fmaxf(best_of[0], best_of[1]), fmaxf(best_of[2], best_of[3]));
"""
VECTORISED = """
  int i4 = i * 4;
  if (i4 + 3 < n) {
    float4 v = reinterpret_cast<const float4*>(x)[i];
    v.x = fmaf(2.f, v.x, 1.f); v.y = fmaf(2.f, v.y, 1.f); v.z = fmaf(2.f, v.z, 1.f); v.w = fmaf(2.f, v.w, 1.f);
    reinterpret_cast<float4*>(y)[i] = v;
  } else {
    for (int j = i4; j < n; ++j) y[j] = 2.f * x[j] + 1.f;
  }
"""
GRID_STRIDE = "for (; i < n; i += gridDim.x * blockDim.x) y[i] = 2.f * x[i] + 1.f;"

CASES = {
    "grid stride": (SCALE, VECTOR_SIZES, elementwise(GRID_STRIDE, grid="2")),
    "vectorised with a tail": (SCALE, [{"n": 5}, {"n": 1002}], elementwise(VECTORISED)),
    "serial sum, long rows": (ROW_SUM, LARGER_ROWS, rowwise(SERIAL_SUM)),
    "shared-memory tree": (ROW_SUM, LARGER_ROWS, rowwise(TREE)),
    "float atomics": (ROW_SUM, ROW_SIZES, rowwise(ATOMIC_SUM, outputs="cp.zeros(rows, dtype=x.dtype)")),
    "warp shuffle maximum": (ROW_MAX, ROW_SIZES, rowwise(WARP_MAX)),
    "online softmax, fast intrinsics": (SOFTMAX, LARGER_ROWS, rowwise(ONLINE, outputs="cp.empty_like(x)", threads=32)),
}


@pytest.mark.parametrize("name", CASES)
def test_native(bench, name):
    reference, check_sizes, solution = CASES[name]
    evaluation = bench.evaluate(bench.native(reference, check_sizes), solution)
    assert evaluation.status is Status.PASSED, evaluation.message
    assert evaluation.findings == ()
    assert evaluation.checks["cases"] >= 2 * len(check_sizes) + 6
    assert evaluation.resources[0].registers > 0
    assert evaluation.resources[0].sass


def test_tiled_transpose_through_raw_module_with_templates(bench):
    solution = '''
import os.path
from functools import lru_cache

import cupy as cp
import numpy as np

CODE = r"""
template <typename T, int TILE>
__global__ void transpose(const T* __restrict__ x, T* __restrict__ y, int rows, int cols) {
  __shared__ T tile[TILE][TILE + 1];
  int c = blockIdx.x * TILE + threadIdx.x, r = blockIdx.y * TILE + threadIdx.y;
  if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = x[(long long)r * cols + c];
  __syncthreads();
  r = blockIdx.y * TILE + threadIdx.x;
  c = blockIdx.x * TILE + threadIdx.y;
  if (r < rows && c < cols) y[(long long)c * rows + r] = tile[threadIdx.x][threadIdx.y];
}
"""


@lru_cache(maxsize=1)
def module():
    return cp.RawModule(code=CODE, options=("--std=c++17",), name_expressions=("transpose<float, 16>",))


def run(x):
    rows, cols = x.shape
    y = cp.empty((cols, rows), dtype=x.dtype)
    grid = ((cols + 15) // 16, (rows + 15) // 16)
    module().get_function("transpose<float, 16>")(grid, (16, 16), (x, y, np.int32(rows), np.int32(cols)))
    return y
'''
    evaluation = bench.evaluate(bench.native(TRANSPOSE, [{"rows": 7, "cols": 33}, {"rows": 20, "cols": 20}]), solution)
    assert evaluation.status is Status.PASSED, evaluation.message
    assert evaluation.findings == ()


PROBLEM = """
rows = 8
cols = 64
class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight
def get_inputs():
    return [torch.rand(rows, cols)]
def get_init_inputs():
    return [cols]
"""
RMS_NORM = '''
import cupy
import torch
from functools import lru_cache
import numpy as np

CODE = r"""
extern "C" __global__ void rms_norm(const float* x, const float* w, float* y, int cols) {
  const float* row = x + (long long)blockIdx.x * cols;
  float sum = 0.f;
  for (int c = threadIdx.x; c < cols; c += 32) sum += row[c] * row[c];
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  float scale = rsqrtf(sum / cols + 1e-5f);
  for (int c = threadIdx.x; c < cols; c += 32) y[(long long)blockIdx.x * cols + c] = row[c] * scale * w[c];
}
"""


@lru_cache(maxsize=None)
def kernel():
    return cupy.RawKernel(CODE, "rms_norm")


class ModelNew(torch.nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(cols))

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows, cols = x.shape
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            kernel()((rows,), (32,), (x.data_ptr(), self.weight.data_ptr(), y.data_ptr(), np.int32(cols)))
        return y
'''


def test_kernelbench_model_with_a_parameter(bench):
    task = bench.kernelbench(PROBLEM, [{"rows": 3, "cols": 5}, {"rows": 4, "cols": 100}])
    evaluation = bench.evaluate(task, RMS_NORM)
    assert evaluation.status is Status.PASSED, evaluation.message
    assert [f for f in evaluation.findings if f.severity == "error"] == []


def test_kernelbench_model_that_stays_in_torch_is_told_so(bench):
    solution = """
    import torch

    class ModelNew(torch.nn.Module):
        def __init__(self, cols):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(cols))

        def forward(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight
    """
    task = bench.kernelbench(PROBLEM, [{"rows": 3, "cols": 5}])
    evaluation = bench.evaluate(task, solution)
    assert evaluation.status is Status.REJECTED, evaluation.message
    assert {f.kind for f in evaluation.findings} == {"library_call"}
    allowed = task.model_copy(update={"allow_library": ("pow", "reduction", "add", "rsqrt", "mul")})
    evaluation = bench.evaluate(allowed, solution)
    assert evaluation.status is Status.PASSED, evaluation.message
    assert {f.severity for f in evaluation.findings} == {"warning"}
    assert all(f.line in (10, 11) for f in evaluation.findings)


def test_batch_norms_running_statistics_are_compared(bench):
    problem = """
    n = 6
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.bn = nn.BatchNorm1d(4)
        def forward(self, x):
            return self.bn(x)
    def get_inputs():
        return [torch.rand(n, 4)]
    def get_init_inputs():
        return []
    """
    honest = """
    import torch

    class ModelNew(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bn = torch.nn.BatchNorm1d(4)

        def forward(self, x):
            return self.bn(x)
    """
    call = "return torch.nn.functional.batch_norm(x, None, None, self.bn.weight, self.bn.bias, True)"
    forgetful = honest.replace("return self.bn(x)", call)
    task = bench.kernelbench(problem, [{"n": 6}, {"n": 9}], allow_library=("all",))
    assert bench.evaluate(task, honest).status is Status.PASSED
    evaluation = bench.evaluate(task, forgetful)
    assert evaluation.status is Status.INCORRECT_NUMERICAL, evaluation.message
    assert "running_mean" in evaluation.mismatch.output
