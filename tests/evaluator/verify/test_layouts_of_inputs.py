"""Inputs that the task makes in another order of their axes reach the solution in that order."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.solutions import KernelBenchSolution
from evaluator.timing import TimedCalls
from evaluator.trees import Leaf, WireError, axis_order, pack, unpack
from evaluator.types import Status

SIZES = [{"n": 3}, {"n": 40}]
REFERENCE = """
def make_inputs(rng, n):
    return {"x": rng.standard_normal((n, 7), dtype=np.float32).T}
def reference(x):
    return 2 * x
"""
SOLUTION = """
import cupy as cp

KERNEL = cp.RawKernel(r'''
extern "C" __global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}''', "twice")


def run(x):
    %s
    y = cp.empty(x.shape, cp.float32)
    KERNEL((-(-x.size // 64),), (64,), (x, y, cp.int32(x.size)))
    return y%s
"""


@pytest.mark.parametrize(("shape", "axes", "order"), [
    ((2, 3, 4), (0, 1, 2), None), ((2, 3, 4), (2, 1, 0), (2, 1, 0)), ((2, 3, 4), (1, 2, 0), (2, 0, 1)),
    ((1, 3, 4), (2, 0, 1), (1, 2, 0)), ((5, 1), (1, 0), None), ((), (), None), ((0, 3), (1, 0), None),
])
def test_the_order_of_the_axes_of_a_dense_array(shape, axes, order):
    array = np.zeros(shape).transpose(axes)
    assert axis_order(array.shape, array.strides, array.itemsize) == order
    if order is not None:
        assert array.transpose(order).flags.c_contiguous


@pytest.mark.parametrize("array", [np.zeros((4, 6))[:, ::2], np.zeros((4, 6)).T[::2], np.zeros((4, 6))[::-1]])
def test_what_has_gaps_or_runs_backwards_has_none(array):
    assert axis_order(array.shape, array.strides, array.itemsize) is None


def test_the_order_crosses_to_the_other_process_and_nonsense_does_not():
    leaf = Leaf.of(np.arange(6, dtype=np.float32).reshape(2, 3).T)
    description, arrays = pack({"x": leaf})
    back = unpack(description, b"".join(array.tobytes() for array in arrays))["x"]
    assert back.order == leaf.order == (1, 0) and (back.values == leaf.values).all()
    description["map"][0][1]["leaf"][4] = [0, 0]
    with pytest.raises(WireError, match="order"):
        unpack(description, b"".join(array.tobytes() for array in arrays))


def test_a_solution_must_be_right_for_the_order_that_the_task_gives(bench):
    task = bench.native(REFERENCE, SIZES)
    right = bench.evaluate(task, SOLUTION % ("x = x.T", ".T"))
    assert right.status is Status.PASSED, right.message
    wrong = bench.evaluate(task, SOLUTION % ("pass", ""))
    assert wrong.status is not Status.PASSED and "non_contiguous_argument" in wrong.message


def test_torch_tensors_keep_their_strides_in_checked_and_in_timed_calls(tmp_path):
    torch = pytest.importorskip("torch")
    from evaluator.kernelbench_module import load_module
    from evaluator.torch_leaves import as_leaf

    (tmp_path / "solution.py").write_text(
        "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x, y):\n        return x + y\n")
    solution = KernelBenchSolution(load_module(tmp_path / "solution.py"))
    solution.device = "cpu"
    solution.construct([], {})
    x, y = torch.randn(4, 5, dtype=torch.bfloat16).T, torch.randn(5, 4)
    given = {"x": as_leaf(x), "y": as_leaf(y)}
    solution.set_inputs(given, "fresh")
    assert solution.live["x"].stride() == (1, 5) and solution.live["y"].stride() == (4, 1)
    assert (solution.live["x"] == x).all()
    solution.set_inputs({"x": as_leaf((2 * x.T).T), "y": given["y"]}, "refill")
    assert (solution.live["x"] == 2 * x).all() and solution.live["x"].stride() == (1, 5)

    timed = TimedCalls(solution, clock=None)
    timed.handle({"step": "prepare", "data": given, "sets": 1, "scaled": ["['x']"]})
    written = timed._written(0, 512, 0.5)
    assert written["x"].stride() == (1, 5) and (written["x"] == x * 0.5).all() and (written["y"] == y).all()
