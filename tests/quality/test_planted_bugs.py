"""Every bug that is planted here is found end to end, with the status, the place and the words that lead to it.

Those that are also ways to cheat (cached outputs, lower precision, ...) are among the cases of tests/guards.
"""

from __future__ import annotations

from kernels import (
    ROW_MAX,
    ROW_SIZES,
    ROW_SUM,
    SCALE,
    SOFTMAX,
    SUM_AND_MAX,
    TRANSPOSE,
    VECTOR_SIZES,
    elementwise,
    rowwise,
)

from benchmarks.check_quality.kernels import TREE
from evaluator.types import Evaluation, Status


def line_of_code(solution: str, part: str) -> int:
    """Line, within the CUDA source, of the first line that holds `part` (the source starts after its opening quotes)."""
    code = solution.split('"""')[1]
    return next(number for number, line in enumerate(code.split("\n"), 1) if part in line)


def finding(evaluation: Evaluation, kind: str):
    found = [f for f in evaluation.findings if f.kind == kind]
    assert found, f"no {kind} in {[f.kind for f in evaluation.findings]}: {evaluation.status} {evaluation.message}"
    return found[0]


def test_off_by_one_tail_leaves_the_last_element_unwritten(bench):
    solution = elementwise("if (i < n - 1) y[i] = 2.f * x[i] + 1.f;")
    evaluation = bench.evaluate(bench.native(SCALE, VECTOR_SIZES), solution)
    assert evaluation.status is Status.INCORRECT_NUMERICAL, evaluation.message
    assert evaluation.mismatch.index == (4,)
    assert evaluation.mismatch.wrong_elements == 1
    assert "never written" in evaluation.message


def test_a_nan_that_the_kernel_computed_is_not_called_unwritten(bench):
    body = """
  __shared__ float sum;
  if (t == 0) {
    sum = 0.f;
    for (int c = 0; c < cols; c++) sum += expf(row[c]);
  }
  __syncthreads();
  for (int c = t; c < cols; c += 128) y[(long long)blockIdx.x * cols + c] = expf(row[c]) / sum;
"""
    evaluation = bench.evaluate(bench.native(SOFTMAX, ROW_SIZES), rowwise(body, outputs="cp.empty_like(x)"))
    assert evaluation.status is Status.INCORRECT_NUMERICAL, evaluation.message
    assert evaluation.mismatch.case.startswith("large") and "never written" not in evaluation.message
    assert "computed by the kernel" in evaluation.message and "inputs of this case are large" in evaluation.message


def test_an_unwritten_integer_is_recognised(bench):
    next_number = SCALE.replace("standard_normal(n, dtype=np.float32)", "integers(1, 9, n, dtype=np.int32)")
    next_number = next_number.replace("2 * x", "x")
    solution = elementwise("if (i < n - 1) y[i] = x[i] + 1;").replace("const float* x, float* y", "const int* x, int* y")
    evaluation = bench.evaluate(bench.native(next_number, VECTOR_SIZES), solution)
    assert evaluation.mismatch.index == (4,) and "never written" in evaluation.message


def test_missing_bounds_check_names_line_thread_and_buffer(bench):
    solution = elementwise("y[i] = 2.f * x[i] + 1.f;")
    evaluation = bench.evaluate(bench.native(SCALE, VECTOR_SIZES), solution)
    assert evaluation.status is Status.RUNTIME_ERROR, evaluation.message
    found = finding(evaluation, "out_of_bounds")
    assert found.line == line_of_code(solution, "y[i] =")
    assert found.thread is not None and found.thread[0] >= 5
    assert found.sizes == {"n": 5}


def test_missing_barrier_is_a_shared_race(bench):
    solution = rowwise(TREE.replace("    __syncthreads();\n  }", "  }"))
    evaluation = bench.evaluate(bench.native(ROW_SUM, ROW_SIZES), solution)
    assert evaluation.status is Status.RUNTIME_ERROR, evaluation.message
    assert finding(evaluation, "shared_race").line == line_of_code(solution, "partial[t] += partial[t + step]")


def test_unsynchronised_accumulation_is_a_shared_race(bench):
    body = """
  __shared__ float total;
  if (t == 0) total = 0.f;
  __syncthreads();
  for (int c = t; c < cols; c += 128) total += row[c];
  __syncthreads();
  if (t == 0) y[blockIdx.x] = total;
"""
    solution = rowwise(body)
    evaluation = bench.evaluate(bench.native(ROW_SUM, [{"rows": 7, "cols": 300}]), solution)
    assert evaluation.status is Status.RUNTIME_ERROR, evaluation.message
    assert finding(evaluation, "shared_race").line == line_of_code(solution, "total += row[c]")


def test_uninitialised_shared_memory(bench):
    body = """
  __shared__ float warp_sum[32];
  float sum = 0.f;
  for (int c = t; c < cols; c += 128) sum += row[c];
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (t % 32 == 0) warp_sum[t / 32] = sum;
  __syncthreads();
  if (t < 32) {
    float v = warp_sum[t];
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    if (t == 0) y[blockIdx.x] = v;
  }
"""
    solution = rowwise(body)
    evaluation = bench.evaluate(bench.native(ROW_SUM, ROW_SIZES), solution)
    assert evaluation.status is Status.INCORRECT_NUMERICAL, evaluation.message
    assert finding(evaluation, "uninitialised_shared").line == line_of_code(solution, "float v = warp_sum[t]")
    assert "uninitialised_shared" in evaluation.message


def test_wrong_stride_of_a_transpose(bench):
    solution = '''
import cupy as cp
import numpy as np

CODE = r"""
extern "C" __global__ void kernel(const float* x, float* y, int rows, int cols) {
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (r < rows && c < cols) y[(long long)c * cols + r] = x[(long long)r * cols + c];
}
"""
kernel = cp.RawKernel(CODE, "kernel")


def run(x):
    rows, cols = x.shape
    y = cp.empty((cols, rows), dtype=x.dtype)
    kernel(((cols + 15) // 16, (rows + 15) // 16), (16, 16), (x, y, np.int32(rows), np.int32(cols)))
    return y
'''
    evaluation = bench.evaluate(bench.native(TRANSPOSE, [{"rows": 20, "cols": 20}, {"rows": 7, "cols": 33}]), solution)
    assert evaluation.status is Status.RUNTIME_ERROR, evaluation.message
    found = finding(evaluation, "out_of_bounds")
    assert found.line == line_of_code(solution, "y[(long long)c * cols + r]")
    assert found.sizes == {"rows": 7, "cols": 33}


def test_maximum_that_starts_from_zero(bench):
    body = TREE.replace("sum += row[c]", "sum = fmaxf(sum, row[c])")
    body = body.replace("partial[t] += partial[t + step]", "partial[t] = fmaxf(partial[t], partial[t + step])")
    evaluation = bench.evaluate(bench.native(ROW_MAX, [{"rows": 7, "cols": 300}]), rowwise(body))
    assert evaluation.status is Status.INCORRECT_NUMERICAL, evaluation.message
    assert evaluation.mismatch.got == 0
    assert evaluation.mismatch.expected < 0


def test_input_changed_in_place(bench):
    solution = elementwise("if (i < n) { y[i] = 2.f * x[i] + 1.f; ((float*)x)[i] = 0.f; }")
    evaluation = bench.evaluate(bench.native(SCALE, VECTOR_SIZES), solution)
    assert evaluation.status is Status.RUNTIME_ERROR, evaluation.message
    assert finding(evaluation, "input_modified").line == line_of_code(solution, "((float*)x)[i] = 0.f")


def test_input_changed_by_an_array_operation(bench):
    solution = elementwise("if (i < n) y[i] = 2.f * x[i] + 1.f;", result="y if x.fill(0) is None else y")
    evaluation = bench.evaluate(bench.native(SCALE, VECTOR_SIZES, allow_library=("all",)), solution)
    assert evaluation.status is Status.RUNTIME_ERROR, evaluation.message
    assert "x[0]" in finding(evaluation, "input_modified").message


def test_grid_that_forgets_the_last_block(bench):
    solution = elementwise("if (i < n) y[i] = 2.f * x[i] + 1.f;", grid="max(n // 256, 1)")
    evaluation = bench.evaluate(bench.native(SCALE, VECTOR_SIZES), solution)
    assert evaluation.status is Status.INCORRECT_NUMERICAL, evaluation.message
    assert evaluation.mismatch.index == (768,)
    assert evaluation.mismatch.wrong_elements == 1000 - 768
    assert evaluation.mismatch.sizes == {"n": 1000}


def test_wrong_second_output_of_a_tuple(bench):
    two = TREE + """
  __syncthreads();
  float best = -3.4e38f;
  for (int c = t; c < cols - 1; c += 128) best = fmaxf(best, row[c]);
  partial[t] = best;
  __syncthreads();
  if (t == 0) {
    for (int i = 1; i < 128; ++i) best = fmaxf(best, partial[i]);
    z[blockIdx.x] = best;
  }
"""
    solution = rowwise(two, parameters="float* y, float* z", arguments="*y", result="y",
                       outputs="(cp.empty(rows, dtype=x.dtype), cp.empty(rows, dtype=x.dtype))")
    evaluation = bench.evaluate(bench.native(SUM_AND_MAX, ROW_SIZES), solution)
    assert evaluation.status is Status.INCORRECT_NUMERICAL, evaluation.message
    assert evaluation.mismatch.output == "out[1]"


def test_only_the_first_output_of_two(bench):
    evaluation = bench.evaluate(bench.native(SUM_AND_MAX, ROW_SIZES), rowwise(TREE))
    assert evaluation.status is Status.INCORRECT_SHAPE
    assert "a tuple of 2" in evaluation.message


def test_float64_output_where_the_task_is_float32(bench):
    solution = elementwise("if (i < n) y[i] = 2.f * x[i] + 1.f;", result="y.astype(cp.float64)")
    evaluation = bench.evaluate(bench.native(SCALE, VECTOR_SIZES), solution)
    assert evaluation.status is Status.INCORRECT_DTYPE, evaluation.message
    assert (evaluation.mismatch.expected_dtype, evaluation.mismatch.got_dtype) == ("float32", "float64")


def test_python_float_for_a_float_parameter(bench):
    solution = elementwise("if (i < n) y[i] = 2.f * x[i] + offset;").replace("int n)", "int n, float offset)")
    solution = solution.replace("np.int32(n))", "np.int32(n), 1.0)")
    evaluation = bench.evaluate(bench.native(SCALE, VECTOR_SIZES), solution)
    assert evaluation.status is Status.RUNTIME_ERROR, evaluation.message
    found = finding(evaluation, "argument_mismatch")
    assert found.line == next(n for n, line in enumerate(solution.split("\n"), 1) if "kernel((" in line)
