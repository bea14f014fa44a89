"""Launches end to end: right results, faults found at their CUDA line, and modelled launches when profiling."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator.simulator import standin
from evaluator.simulator.standin import SimulatedError

SOURCE = r"""
extern "C" __global__ void row_sum(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int c = 0; c < cols; c++) sum += x[row * cols + c];
  y[row] = sum;
}
extern "C" __global__ void no_guard(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] * 2;
}
extern "C" __global__ void misaligned(const float* x, float4* y) {
  y[0] = *reinterpret_cast<const float4*>(x + 1);
}
extern "C" __global__ void race(float* x) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = s[63 - threadIdx.x];
}
"""


@pytest.fixture
def module(cupy):
    return cupy.RawModule(code=SOURCE)


def test_right_result_and_no_finding(session, cupy, module):
    x = cupy.asarray(np.random.default_rng(1).standard_normal((100, 33), dtype=np.float32))
    y = cupy.empty(100, cupy.float32)
    module.get_function("row_sum")((4,), (32,), (x, y, np.int32(100), np.int32(33)))
    np.testing.assert_allclose(y.get(), x.get().sum(1), rtol=1e-5, atol=1e-5)
    assert session.findings == []
    assert session.kernel_launches == 1


def test_overrun_lands_in_the_gap_although_other_arrays_are_near(session, cupy, module):
    x, y, other = (cupy.zeros(100, cupy.float32) for _ in range(3))
    with pytest.raises(SimulatedError) as caught:
        module.get_function("no_guard")((4,), (32,), (x, y))
    found = caught.value.finding
    assert (found.kind, found.kernel, found.line) == ("out_of_bounds", "no_guard", 11)
    assert found.block == (3, 0, 0)
    assert found.thread[0] >= 4
    assert Path(__file__).name in found.message, "the launch's Python line"
    assert found in session.findings
    assert (other.get() == 0).all()


def test_messages_name_the_parameter(cupy, module):
    x, y = cupy.zeros(128, cupy.float32), cupy.zeros(100, cupy.float32)
    with pytest.raises(SimulatedError, match="`y`"):
        module.get_function("no_guard")((4,), (32,), (x, y))


def test_misaligned_vector_access(cupy, module):
    with pytest.raises(SimulatedError) as caught:
        module.get_function("misaligned")((1,), (1,), (cupy.zeros(8, cupy.float32), cupy.zeros(4, cupy.float32)))
    assert (caught.value.finding.kind, caught.value.finding.line) == ("misaligned", 14)


def test_view_whose_offset_breaks_alignment(cupy, session):
    kernel = cupy.RawKernel('extern "C" __global__ void f(const float4* x, float4* y) { *y = *x; }', "f")
    x, y = cupy.arange(8, dtype=cupy.float32), cupy.empty(4, cupy.float32)
    kernel((1,), (1,), (x[4:], y))
    assert y.tolist() == [4, 5, 6, 7]
    with pytest.raises(SimulatedError, match="misaligned"):
        kernel((1,), (1,), (x[1:], y))


def test_shared_race_is_found(session, cupy, module):
    try:
        module.get_function("race")((1,), (64,), (cupy.zeros(64, cupy.float32),))
    except SimulatedError as error:
        assert error.finding in session.findings
    assert any(f.kind in ("shared_race", "uninitialised_shared") and f.line in (18, 19) for f in session.findings)


def test_write_into_a_protected_input_is_an_error(cupy, module):
    x, y = cupy.zeros(128, cupy.float32), cupy.zeros(128, cupy.float32)
    standin.protect(y)
    with pytest.raises(SimulatedError):
        module.get_function("no_guard")((4,), (32,), (x, y))
    assert (y.get() == 0).all()


def test_unsupported_instruction_is_never_a_pass(session, cupy):
    kernel = cupy.RawKernel(r"""
        __device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
        extern "C" __global__ void recursive(int* x) { x[0] = fibonacci(x[0]); }""", "recursive")
    with pytest.raises(SimulatedError, match="recurs") as caught:
        kernel((1,), (1,), (cupy.full(1, 9, cupy.int32),))
    assert caught.value.finding.kind == "unsupported"
    assert caught.value.finding in session.findings


def test_profile_models_each_launch(session, cupy, module):
    session.mode = "profile"
    x, y = cupy.empty((8192, 1024), cupy.float32), cupy.empty(8192, cupy.float32)
    module.get_function("row_sum")((64,), (128,), (x, y, np.int32(8192), np.int32(1024)))
    (launch,) = session.launches
    assert (launch.kernel, launch.grid, launch.block) == ("row_sum", (64, 1, 1), (128, 1, 1))
    assert launch.time_us > 1
    assert launch.terms_us
    assert launch.sampled_blocks <= 64
    assert launch.counts["global_load_sectors_per_request"] > 16, "column-strided reads"
