"""Inputs too large to hold: one tile of drawn values, mapped over and over; kernels are timed on it as on the whole."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

from evaluator import tiles
from evaluator.oracle import load_oracle
from evaluator.tiles_torch import tiling_mode
from evaluator.torch_leaves import as_leaf, as_tensor
from evaluator.trees import Leaf
from evaluator.types import Status, TimeEstimate
from kernelskill.report.evaluation import origin_text

ROW_SUM = """
def make_inputs(rng, rows, cols):
    return {"x": rng.standard_normal((rows, cols), dtype=np.float32)}
def reference(x):
    return x.sum(axis=1)
"""
SOLUTION = '''
import cupy as cp
import numpy as np

CODE = r"""
extern "C" __global__ void row_sum(const float* x, float* y, int cols) {
  const float* row = x + (size_t)blockIdx.x * cols;
  float sum = 0.f;
  for (int i = threadIdx.x; i < cols; i += 32) sum += row[i];
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
"""
kernel = cp.RawKernel(CODE, "row_sum")


def run(x):
    y = cp.empty(x.shape[0], cp.float32)
    kernel((x.shape[0],), (32,), (x, y, np.int32(x.shape[1])))
    return y
'''
PERIOD = tiles.TILE_BYTES // 4


@pytest.fixture
def tiled_early(monkeypatch):
    monkeypatch.setattr(tiles, "TILED_FROM", 1 << 20)


def test_a_tile_stands_for_every_address_and_is_given_back():
    pattern = np.arange(PERIOD, dtype=np.float32)
    array = tiles.spread(pattern, (3, PERIOD))
    assert all((row == pattern).all() for row in array)
    array[0, 5] = -1
    assert (array[:, 5] == -1).all()  # the memory of a tile, not of three
    address, nbytes = array.ctypes.data, array.nbytes
    assert tiles.TILES.pattern(address, nbytes) is not None and tiles.TILES.pattern(address, nbytes - 4) is None
    del array
    gc.collect()
    assert tiles.TILES.pattern(address, nbytes) is None


def test_small_draws_are_those_of_the_generator():
    ours, theirs = tiles.TilingGenerator(np.random.PCG64(7)), np.random.default_rng(7)
    for draw in (lambda rng: rng.standard_normal(9, dtype=np.float32), lambda rng: rng.integers(0, 5, size=(2, 3)),
                 lambda rng: rng.normal(1.0, 2.0), lambda rng: rng.uniform(0, 1, 4), lambda rng: rng.permutation(6)):
        assert np.array_equal(draw(ours), draw(theirs))


def test_large_draws_of_numpy_repeat(tiled_early):
    rng = tiles.TilingGenerator(np.random.PCG64(7))
    normal = rng.standard_normal((3, PERIOD), dtype=np.float32)
    bins = rng.integers(2, 9, size=(2, PERIOD), dtype=np.int32)
    assert (normal[0] == normal[2]).all() and abs(normal.mean()) < 0.01 and normal.std() == pytest.approx(1, rel=0.01)
    assert (bins[0] == bins[1]).all() and set(np.unique(bins)) == {2, 3, 4, 5, 6, 7, 8}


@pytest.mark.parametrize(("draw", "dtype"), [
    (lambda: torch.rand(3, PERIOD), torch.float32),
    (lambda: torch.randn((2 * PERIOD, 2), dtype=torch.bfloat16), torch.bfloat16),
    (lambda: torch.randint(3, 8, (PERIOD, 2)), torch.int64), (lambda: torch.randint(8, size=(2, PERIOD)), torch.int64),
    (lambda: torch.full((2, PERIOD), 0.5), torch.float32),
])
def test_large_draws_of_torch_cross_as_one_tile(tiled_early, draw, dtype):
    with tiling_mode():
        drawn = draw()
    assert drawn.dtype is dtype
    leaf = as_leaf(drawn)
    folded, shapes = tiles.fold({"x": leaf, "n": 3})
    assert folded["x"].values.nbytes == tiles.TILE_BYTES and shapes == {"['x']": list(drawn.shape)}
    back = as_tensor(tiles.unfold(folded, shapes)["x"])
    assert back.dtype is dtype and torch.equal(back, drawn)


def test_small_draws_and_what_is_computed_cross_whole(tiled_early):
    with tiling_mode():
        small = torch.rand(10)
        large = torch.rand(PERIOD)
        with pytest.raises(MemoryError, match="softmax"):
            large.softmax(0)
    assert not isinstance(as_leaf(small), tiles.TiledLeaf)
    assert tiles.fold({"x": as_leaf(small)})[1] == {}


def test_a_leaf_that_is_part_of_a_tiled_array_is_none(tiled_early):
    whole = tiles.spread(np.zeros(PERIOD, np.float32), (2, PERIOD))
    assert isinstance(tiles.tiled_leaf(Leaf.of(whole)), tiles.TiledLeaf)
    assert not isinstance(tiles.tiled_leaf(Leaf.of(whole[0])), tiles.TiledLeaf)


def test_a_task_of_10_gib_has_a_time_and_says_that_its_inputs_are_sampled(bench):
    def timed(rows):
        task = bench.native(ROW_SUM, [{"rows": 3, "cols": 40}], {"rows": rows, "cols": 2560})
        evaluation = bench.evaluate(task, SOLUTION, stages=("verify", "profile"))
        assert evaluation.status is Status.PASSED, evaluation.message
        assert evaluation.time is not None, evaluation.time_unavailable
        return evaluation

    whole, sampled = timed(1 << 14), timed(1 << 20)
    assert not whole.time.sampled_inputs and sampled.time.sampled_inputs
    assert sampled.task_facts["task_bytes"] == (1 << 20) * 2561 * 4
    # The short run pays for others' dirty lines in L2 as much as the long one.
    assert 0.8 * 64 * whole.time.time_us < sampled.time.time_us < 64 * whole.time.time_us


def test_the_oracle_draws_the_same_values_when_they_are_small(bench):
    task = bench.native(ROW_SUM, [{"rows": 3, "cols": 40}], {"rows": 8, "cols": 16})
    oracle = load_oracle(task)
    whole, sampled = oracle.own_problem(task.sizes, 3), oracle.sampled_problem(task.sizes, 3)
    assert np.array_equal(whole.inputs["x"].values, sampled.inputs["x"].values)


def test_a_report_says_that_inputs_were_sampled():
    whole = TimeEstimate(provenance="modelled", time_us=5.0, limiter="dram")
    assert origin_text(whole) == "modelled, dram dominates"
    assert origin_text(whole.model_copy(update={"sampled_inputs": True})) == "modelled, of sampled inputs, dram dominates"
