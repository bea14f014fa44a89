"""Other sizes of a task: what is searched, what counts as an output, and what a solution for one size is told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.oracle import TaskFault, load_oracle
from evaluator.shapes import nonsense, searched
from evaluator.trees import Leaf
from evaluator.types import Status, TaskSpec

SCALE = """
    def make_inputs(rng, n):
        return {"x": rng.standard_normal(n, dtype=np.float32)}

    def reference(x):
        return 3 * x
"""
ONLY_1000 = """
    import cupy

    KERNEL = cupy.RawKernel(r'''
    extern "C" __global__ void scale(const float* x, float* y) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < 1000) y[i] = 3.0f * x[i];
    }''', "scale")

    def run(x):
        y = cupy.empty_like(x)
        KERNEL((4,), (256,), (x, y))
        return y
"""


def test_a_solution_for_one_size_is_refused_in_general_and_passes_where_that_size_alone_counts(bench):
    task = bench.native(SCALE, [{"n": 7}, {"n": 2048}], sizes={"n": 1000})
    general = bench.evaluate(task, ONLY_1000)
    assert general.status is Status.RUNTIME_ERROR and "n=7" in general.message
    assert "past the end of `x`" in general.findings[0].message
    exact = bench.evaluate(task.model_copy(update={"shapes": "exact"}), ONLY_1000)
    assert exact.status is Status.PASSED and "the task's own sizes" in exact.message
    assert exact.verified_sizes == ({"n": 1000},) and general.verified_sizes == task.check_sizes


def test_a_size_that_is_too_large_to_verify_alone_is_told_with_what_to_do(bench):
    task = bench.native(SCALE, [{"n": 7}], sizes={"n": 1 << 26}, shapes="exact")
    refused = bench.evaluate(task, ONLY_1000)
    assert refused.status is Status.UNSUPPORTED
    assert f"n={1 << 26} is too large to verify here; use --shapes general" in refused.message


def coupled(sizes) -> bool:
    """A problem with the constraints that real ones have: divisibility, order, a least image."""
    return sizes["channels"] % 8 == 0 and sizes["longest"] >= sizes["length"] and sizes["h"] == sizes["w"] >= 28


def test_the_search_shrinks_every_size_as_far_as_the_problem_allows():
    sizes = {"batch": 64, "channels": 768, "longest": 1024, "length": 512, "h": 224, "w": 224, "groups": 8}
    asked = []
    found = list(searched(sizes, lambda s: asked.append(s) or coupled(s)))
    assert found[0] == {"batch": 2, "channels": 24, "longest": 8, "length": 8, "h": 28, "w": 28, "groups": 8}
    assert len({tuple(f.values()) for f in found}) == 4 and all(map(coupled, found))
    assert {f["batch"] for f in found} == {1, 2, 3, 5}
    assert len(asked) < 40


def test_sizes_that_keep_a_ratio_shrink_together():
    found = list(searched({"batch": 32, "out": 64, "width": 32}, lambda s: s["out"] == 2 * s["width"]))
    assert found == [{"batch": rows, "out": 16, "width": 8} for rows in (2, 3, 1, 5)]


def test_the_search_finds_nothing_where_the_problem_does_not_run_with_a_small_batch():
    assert list(searched({"batch": 64, "n": 100}, lambda s: s["batch"] == 64)) == []


@pytest.mark.parametrize(("values", "flaw"), [
    ([1.0, 2.0], ""), ([], "is empty"), ([1.0, math.nan], "holds NaN or infinities"), ([math.inf], "holds NaN or infinities")])
def test_outputs_that_say_nothing(values, flaw):
    assert nonsense({"a": Leaf.of(np.array(values, np.float32)), "b": Leaf.of(np.zeros(2, np.int32))}).endswith(flaw)
    assert bool(nonsense(Leaf.of(np.array(values, np.float32)))) == bool(flaw)


def spec(tmp_path, text, **more) -> TaskSpec:
    from kernelskill.tasks import load_task

    path = tmp_path / "problem.py"
    path.write_text(text)
    return load_task(path).spec.model_copy(update=more)


FLATTENED = """
import torch
batch = 64
class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.linear = torch.nn.Linear(4 * 62 * 62, width)
    def forward(self, x):
        return self.linear(self.conv(x).flatten(1))
def get_inputs():
    return [torch.rand(batch, 3, 64, 64)]
def get_init_inputs():
    return [512]
"""


def test_sizes_that_stand_in_the_functions_vary_too_and_what_the_layers_fix_stays(tmp_path):
    pytest.importorskip("torch")
    oracle = load_oracle(spec(tmp_path, FLATTENED))
    kept = oracle.spec.check_sizes
    assert len(kept) >= 3 and len({s["get_init_inputs.512"] for s in kept}) > 1
    assert all(s["get_inputs.64"] == 64 for s in kept)
    inputs = oracle.own_problem(kept[0], 1).inputs["x"]
    assert inputs.shape == (kept[0]["batch"], 3, 64, 64)
    assert any("left out, the problem's own code fails" in note for note in oracle.notes)


def test_sizes_at_which_the_output_says_nothing_are_left_out(tmp_path):
    pytest.importorskip("torch")
    text = FLATTENED.replace("return self.linear(self.conv(x).flatten(1))", "return x * (float('nan') if len(x) == 1 else 1.0)")
    oracle = load_oracle(spec(tmp_path, text))
    assert oracle.spec.check_sizes and all(sizes["batch"] > 1 for sizes in oracle.spec.check_sizes)
    assert any("batch=1," in note and "out holds NaN or infinities" in note for note in oracle.notes)


def test_the_own_sizes_alone_of_a_kernelbench_task(tmp_path):
    pytest.importorskip("torch")
    oracle = load_oracle(spec(tmp_path, FLATTENED, shapes="exact"))
    assert oracle.spec.check_sizes == (oracle.spec.sizes,)
    large = load_oracle(spec(tmp_path, FLATTENED.replace("batch = 64", "batch = 64000"), shapes="exact"))
    with pytest.raises(TaskFault, match="its own sizes alone count, and a call at batch=64000"):
        large.refuse_without_sizes()
    oracle.refuse_without_sizes()


def test_a_reference_at_the_full_sizes_calls_nothing_when_it_is_loaded(tmp_path):
    pytest.importorskip("torch")
    failing = spec(tmp_path, FLATTENED.replace("return self.linear", "raise ValueError('called') or self.linear"))
    assert failing.last_sizes
    assert load_oracle(failing.model_copy(update={"check_sizes": ()})).spec.check_sizes == ()
    with pytest.raises(TaskFault, match="called"):
        load_oracle(failing)
