"""The precision class of real kernels, and the rule by itself."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.precision import Precision, Yardstick, allowed_classes, classify, formats_in, relative_error
from evaluator.types import KernelResources, Status

DOT = """
def make_inputs(rng, rows, k):
    return {"a": rng.standard_normal((rows, k), dtype=np.float32), "b": rng.standard_normal((rows, k), dtype=np.float32)}
def reference(a, b):
    return (a * b).sum(axis=1)
"""
SOLUTION = '''
import cupy as cp
import numpy as np

CODE = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__device__ float cut(float x) { CUT }
extern "C" __global__ void dot(const float* a, const float* b, float* out, int rows, int k) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0.f, lost = 0.f;
  for (int i = 0; i < k; ++i) { ADD }
  out[r] = sum;
}
"""
kernel = cp.RawKernel(CODE, "dot")


def run(a, b):
    rows, k = a.shape
    out = cp.empty(rows, dtype=cp.float32)
    kernel(((rows + 63) // 64,), (64,), (a, b, out, np.int32(rows), np.int32(k)))
    return out
'''
PLAIN = "sum += cut(a[r * k + i]) * cut(b[r * k + i]);"
COMPENSATED = """
  float x = a[r * k + i], y = b[r * k + i], p = x * y, e = __fmaf_rn(x, y, -p), t = sum + p, z = t - sum;
  lost += (sum - (t - z)) + (p - z) + e; sum = t; if (i == k - 1) sum += lost;
"""
KERNELS = {
    "fp32": ("return x;", PLAIN),
    "compensated": ("return x;", COMPENSATED),
    "tf32": ("return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);", PLAIN),
    "bf16": ("return __bfloat162float(__float2bfloat16(x));", PLAIN),
    "fp16": ("return __half2float(__float2half(x));", PLAIN),
}


@pytest.mark.parametrize("name", KERNELS)
def test_class_of_real_kernels(bench, name):
    cut, add = KERNELS[name]
    task = bench.native(DOT, [{"rows": 64, "k": 200}], tolerance={"rtol": 0.5, "atol": 2.0})
    evaluation = bench.evaluate(task, SOLUTION.replace("CUT", cut).replace("ADD", add))
    assert evaluation.status is Status.PASSED, evaluation.message
    assert evaluation.precision_class == {"compensated": "fp32"}.get(name, name)
    if name == "compensated":
        assert evaluation.precision_ratio < 1
    if name in ("tf32", "fp16", "bf16"):
        assert evaluation.precision_ratio > 32


def test_integer_outputs_have_no_class(bench):
    task = bench.native("""
        def make_inputs(rng, n):
            return {"x": rng.integers(0, 100, n, dtype=np.int32)}
        def reference(x):
            return x + x
        """, [{"n": 50}])
    evaluation = bench.evaluate(task, """
        import cupy as cp
        import numpy as np
        kernel = cp.RawKernel('extern "C" __global__ void d(const int* x, int* y, int n)'
                              '{ int i = threadIdx.x; if (i < n) y[i] = x[i] + x[i]; }', "d")
        def run(x):
            y = cp.empty_like(x)
            kernel((1,), (64,), (x, y, np.int32(x.size)))
            return y
        """)
    assert evaluation.status is Status.PASSED, evaluation.message
    assert evaluation.precision_class is None and evaluation.precision_ratio is None


U = 2.0**-24


@pytest.mark.parametrize("error,expected", [
    (0.0, "fp32"), (4 * U, "fp32"), (5 * U, "near_fp32"), (32 * U, "near_fp32"), (2.0**-13, "tf32"), (2.0**-12, "tf32"),
    (2.0**-10, "bf16"), (0.03, "bf16"),
])
def test_levels_of_a_float32_task_whose_reference_is_exact(error, expected):
    assert classify(error, Yardstick("float32", own=0.0, spread=U)) == expected


def test_the_reference_of_the_task_sets_the_scale():
    assert classify(30 * U, Yardstick("float32", own=10 * U, spread=U)) == "fp32"
    assert classify(300 * U, Yardstick("float32", own=10 * U, spread=U)) == "near_fp32"


def test_a_long_serial_sum_is_nearly_float32_and_rounded_inputs_are_not():
    long = Yardstick("float32", own=U, spread=1.4 * U, terms=1 << 14)
    assert classify(100 * U, long) == "near_fp32"
    assert classify(0.5 * 2.0**-11, long) == "tf32"


def test_an_ill_conditioned_output_excuses_a_larger_error_of_the_same_class():
    cancelling = Yardstick("float32", own=900 * U, spread=1000 * U)
    assert classify(0.4 * 1000 * 2.0**-11, cancelling) == "tf32"
    assert classify(0.4 * 1000 * 2.0**-8, cancelling) == "bf16"


def test_half_tasks_are_held_against_their_own_dtype():
    half = Yardstick("float16", own=2.0**-12, spread=2.0**-11, roundoff=2.0**-11)
    assert classify(2.0**-11, half) == "fp16"
    assert classify(0.2, half) == "bf16"
    assert classify(2.0**-8, Yardstick("bfloat16", own=2.0**-9, spread=2.0**-8, roundoff=2.0**-8)) == "bf16"


def kernel_with(*opcodes: str) -> KernelResources:
    return KernelResources(kernel="k", registers=1, static_shared_bytes=0, stack_bytes=0, spill_store_bytes=0,
                           spill_load_bytes=0, sass=dict.fromkeys(opcodes, 1))


def test_machine_code_names_the_format_where_it_holds_one():
    assert formats_in([kernel_with("HMMA.1688.F32.TF32", "FFMA", "HFMA2.MMA")]) == {"tf32"}
    assert formats_in([kernel_with("HMMA.16816.F32")]) == {"fp16"}
    assert formats_in([kernel_with("HMMA.16816.F32.BF16"), kernel_with("F2FP.F16.F32.PACK_AB")]) == {"bf16", "fp16"}
    assert formats_in([kernel_with("HFMA2", "HADD2.F32", "FADD")]) == frozenset()
    measured = Yardstick("float32", own=U, spread=U)
    assert classify(2.0**-12, measured, frozenset({"fp16"})) == "fp16"
    assert classify(2.0**-12, measured, frozenset({"fp16", "bf16"})) == "tf32"
    assert classify(U, measured, frozenset({"bf16"})) == "fp32"


def test_the_least_precise_case_counts():
    precision = Precision([(U, Yardstick("float32", U)), (2.0**-12, Yardstick("float32", U)), (2 * U, Yardstick("float32", U))])
    assert precision.classify() == "tf32"
    assert precision.ratio() == pytest.approx(2.0**12)
    assert Precision().classify() is None


def test_what_a_task_allows():
    assert allowed_classes([]) == {"fp64", "fp32", "near_fp32"}
    assert "tf32" in allowed_classes(["tf32"]) and "bf16" not in allowed_classes(["tf32"])
    assert allowed_classes(["bf16"]) >= {"tf32", "fp16", "bf16"}


def test_relative_error_leaves_out_what_is_not_finite():
    expected = np.array([3.0, 4.0, np.inf, np.nan])
    assert relative_error(np.array([3.0, 4.5, np.inf, 1.0]), expected) == pytest.approx(0.1)
    assert relative_error(np.ones(2), np.zeros(2)) is None
