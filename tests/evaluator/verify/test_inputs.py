from __future__ import annotations

import numpy as np
import pytest

from evaluator.inputs import DISTRIBUTIONS, vary, vary_constants
from evaluator.trees import Leaf


def leaf(values, dtype=np.float32) -> Leaf:
    return Leaf.of(np.asarray(values, dtype))


def redrawn(value: Leaf, distribution: str = "normal", seed: int = 3) -> Leaf:
    return vary({"x": value}, distribution, seed)["x"]


OWN = np.random.default_rng(0).random((40, 50), dtype=np.float32)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_shape_and_dtype_stay_and_the_seed_decides(name):
    first, again, other = redrawn(leaf(OWN), name), redrawn(leaf(OWN), name), redrawn(leaf(OWN), name, seed=4)
    assert (first.shape, first.dtype) == ((40, 50), "float32")
    assert np.array_equal(first.values, again.values)
    assert name in ("zeros", "constant", "alternating") or not np.array_equal(first.values, other.values)
    assert not np.array_equal(first.values, OWN)


def test_distributions_are_what_they_are_called():
    drawn = {name: redrawn(leaf(OWN), name).values for name in DISTRIBUTIONS}
    assert abs(drawn["normal"].mean()) < 0.1 < 0.9 < drawn["normal"].std() < 1.1
    assert drawn["uniform"].min() < -0.9 and drawn["uniform"].max() > 0.9
    assert (drawn["negative"] < 0).all()
    assert len(np.unique(drawn["constant"])) == 1
    assert (drawn["alternating"].reshape(-1)[::2] > 0).all() and (drawn["alternating"].reshape(-1)[1::2] < 0).all()
    assert drawn["large"].std() > 50 and np.abs(drawn["tiny"]).max() < 1e-3
    assert not drawn["zeros"].any()


def test_equal_shapes_get_different_values():
    both = vary({"a": leaf(OWN), "b": leaf(OWN)}, "normal", 3)
    assert not np.array_equal(both["a"].values, both["b"].values)


def test_integers_bools_and_numbers_stay():
    own = {"index": leaf([3, 1, 2], np.int64), "mask": leaf([True, False], bool), "eps": 1e-5, "n": 4}
    assert vary(own, "normal", 3) == own


def test_labels_stay_but_constants_are_redrawn():
    labels = leaf(np.random.default_rng(0).integers(0, 2, 200) * 2 - 1)
    assert np.array_equal(redrawn(labels).values, labels.values)
    assert redrawn(leaf(np.ones(200))).values.std() > 0.5


def test_zero_pattern_and_symmetry_are_kept():
    lower = np.tril(OWN[:, :40])
    assert np.array_equal(redrawn(leaf(lower)).values == 0, lower == 0)
    symmetric = redrawn(leaf(OWN[:, :40] + OWN[:, :40].T)).values
    assert np.array_equal(symmetric, symmetric.T)


def test_bfloat16_stays_bfloat16():
    own = Leaf((OWN.view(np.uint32) >> 16).astype(np.uint16), "bfloat16", "torch")
    drawn = redrawn(own)
    assert (drawn.dtype, drawn.values.dtype) == ("bfloat16", np.uint16)
    assert 0.9 < drawn.as_float64().std() < 1.1


def test_constant_parameters_change_and_trained_ones_stay():
    state = {"weight": leaf(np.ones(8)), "bias": leaf(np.zeros(8)), "fc": leaf(OWN), "steps": leaf(0, np.int64)}
    varied = vary_constants(state, 5)
    assert varied["weight"].values.std() > 0 and varied["bias"].values.std() > 0
    assert (varied["weight"].values >= 1).all()
    assert varied["fc"] is state["fc"] and varied["steps"] is state["steps"]
