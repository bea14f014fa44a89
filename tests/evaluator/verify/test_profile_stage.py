"""The profile stage of a passed solution: launches with counts, a modelled time, the task's sizes, or why there is no time."""

from __future__ import annotations

import pytest

from evaluator.types import Status

SCALE = """
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32)}
def reference(x):
    return 2 * x + 1
"""
SOLUTION = '''
import cupy as cp
import numpy as np

CODE = r"""
extern "C" __global__ void scale(const float* x, float* y, int n, float factor, float offset) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i] + offset;
}
"""
kernel = cp.RawKernel(CODE, "scale")


def run(x):
    n = x.size
    y, z = cp.empty_like(x), cp.empty_like(x)
    kernel(((n + 255) // 256,), (256,), (x, y, np.int32(n), np.float32(2), np.float32(0)))
    kernel(((n + 255) // 256,), (256,), (y, z, np.int32(n), np.float32(1), np.float32(1)))
    return z
'''
FULL = {"n": 1 << 20}
BOTH = ("verify", "profile")


def test_two_launches_are_counted_and_timed(bench):
    evaluation = bench.evaluate(bench.native(SCALE, [{"n": 100}], FULL), SOLUTION, stages=BOTH)
    assert evaluation.status is Status.PASSED, evaluation.message
    first, second = evaluation.launches
    assert (first.kernel, first.grid, first.block) == ("scale", (4096, 1, 1), (256, 1, 1))
    assert first.counts["global_load_sectors_per_request"] == pytest.approx(4)
    assert first.text["occupancy_limiter"]
    assert evaluation.time.provenance == "modelled" and evaluation.time.limiter
    assert max(first.time_us, second.time_us) < evaluation.time.time_us < first.time_us + second.time_us
    assert evaluation.task_facts == {"task_bytes": 2 * 4 * 2**20, "task_output_elements": 2**20}
    resources, = evaluation.resources
    assert resources.kernel == "scale" and any(name.startswith("LDG") for name in resources.sass)
    assert set(evaluation.stage_seconds) == {"guard", "import", "verify", "profile", "close", "other"}


def test_failure_at_the_full_sizes_is_a_failure(bench):
    solution = SOLUTION.replace("    n = x.size\n", "    n = x.size\n    assert n < 1000, 'too long for me'\n")
    evaluation = bench.evaluate(bench.native(SCALE, [{"n": 100}], FULL), solution, stages=BOTH)
    assert evaluation.status is Status.RUNTIME_ERROR
    assert "too long for me" in evaluation.message and "at the full sizes" in evaluation.message


def test_an_operator_on_inputs_that_are_too_large_leaves_the_time_open(bench):
    problem = """
    n = 1 << 33
    class Model(nn.Module):
        def forward(self, x):
            return x * 2
    def get_inputs():
        return [torch.rand(n)]
    def get_init_inputs():
        return []
    """
    solution = """
    import torch

    class ModelNew(torch.nn.Module):
        def forward(self, x):
            return x * 2
    """
    task = bench.kernelbench(problem, [{"n": 10}], {"n": 1 << 33}, allow_library=("all",))
    evaluation = bench.evaluate(task, solution, stages=BOTH)
    assert evaluation.status is Status.PASSED, evaluation.message
    assert evaluation.time is None
    assert "does not fit into memory at n=8589934592" in evaluation.time_unavailable
    assert "solution.py:6" in evaluation.time_unavailable


@pytest.mark.parametrize("line", ["x = x * cp.float32(1)", "x = cp.abs(x) * cp.sign(x)", "x = x.clip(-1e9, 1e9)"])
def test_operators_beside_the_kernels_leave_the_time_open(bench, line):
    solution = SOLUTION.replace("    n = x.size\n", f"    n = x.size\n    {line}\n")
    evaluation = bench.evaluate(bench.native(SCALE, [{"n": 100}], FULL, allow_library=("all",)), solution, stages=BOTH)
    assert evaluation.status is Status.PASSED, evaluation.message
    assert evaluation.time is None
    number = 1 + solution[:solution.index(line)].count("\n")
    place = f"solution.py:{number}, "
    assert place in evaluation.time_unavailable and "cupy." in evaluation.time_unavailable


def test_operators_at_import_do_not_count(bench):
    solution = SOLUTION.replace("def run(x):", "TABLE = cp.arange(8) * 2\n\n\ndef run(x):")
    evaluation = bench.evaluate(bench.native(SCALE, [{"n": 100}], FULL), solution, stages=BOTH)
    assert evaluation.time is not None, evaluation.time_unavailable


def test_no_kernel_no_time(bench):
    task = bench.native(SCALE, [{"n": 100}], FULL, allow_library=("add", "multiply"))
    evaluation = bench.evaluate(task, "def run(x):\n    return 2 * x + 1\n", stages=BOTH)
    assert evaluation.status is Status.PASSED, evaluation.message
    assert "launches no kernel" in evaluation.time_unavailable
    assert {finding.kind for finding in evaluation.findings} == {"library_call"}


def test_unsupported_instruction_is_named_and_resources_stay(bench):
    solution = SOLUTION.replace("  if (i < n)", '  asm volatile("{ .reg .s32 r; vadd.s32.s32.s32 r, 1, 2; }");\n  if (i < n)')
    evaluation = bench.evaluate(bench.native(SCALE, [{"n": 100}], FULL), solution, stages=BOTH)
    assert evaluation.status is Status.UNSUPPORTED, evaluation.message
    assert "vadd" in evaluation.message
    assert evaluation.resources[0].sass
    assert evaluation.time is None


def test_host_files_are_not_included(bench):
    solution = SOLUTION.replace('CODE = r"""', 'CODE = r"""\n#include "/etc/passwd"')
    evaluation = bench.evaluate(bench.native(SCALE, [{"n": 100}]), solution)
    assert evaluation.status is Status.REJECTED, evaluation.message
    assert "root:" not in evaluation.to_json()


def test_compile_error_carries_the_log_and_the_line(bench):
    solution = SOLUTION.replace("y[i] = factor", "y[j] = factor")
    evaluation = bench.evaluate(bench.native(SCALE, [{"n": 100}]), solution)
    assert evaluation.status is Status.COMPILE_ERROR
    assert 'identifier "j" is undefined' in evaluation.compile_log
    assert "(4)" in evaluation.message
