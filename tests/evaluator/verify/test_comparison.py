from __future__ import annotations

import numpy as np
import pytest

from evaluator.comparison import Expected, compare
from evaluator.inputs import Case
from evaluator.trees import Leaf
from evaluator.types import Status

CASE = Case({"n": 4}, "normal", 7)


def expected(values, dtype="float32", allowed=1e-6) -> Expected:
    values = np.asarray(values, np.float64)
    return Expected(values, dtype, np.full(values.shape, allowed))


def got(values, dtype=np.float32) -> Leaf:
    return Leaf.of(np.asarray(values, dtype), "cupy")


def test_equal_within_the_allowed_error():
    assert compare(expected([1, 2, 3]), got([1, 2, 3 + 5e-7]), CASE) is None


def test_first_wrong_index_and_counts():
    verdict = compare(expected(np.zeros((2, 3))), got([[0, 0, 0], [0, 5, 7]]), CASE)
    assert verdict.status is Status.INCORRECT_NUMERICAL
    found = verdict.mismatch
    assert (found.index, found.got, found.expected, found.wrong_elements, found.total_elements) == ((1, 1), 5, 0, 2, 6)
    assert found.max_abs_error == 7 and found.sizes == {"n": 4}
    assert "out[1, 1] is 5" in verdict.message and "normal seed 7" in verdict.message


@pytest.mark.parametrize(("want", "have"), [
    ([1, np.nan], [1, 2]), ([1, 2], [1, np.nan]), ([1, np.inf], [1, -np.inf]), ([1, np.inf], [1, np.nan]),
    ([1, 2], [1, np.inf]),
])
def test_non_finite_elements_must_agree(want, have):
    assert compare(expected(want, allowed=10), got(have), CASE).mismatch.index == (1,)


def test_equal_non_finite_elements_pass():
    special = [np.nan, np.inf, -np.inf]
    assert compare(expected(special), got(special), CASE) is None


def test_overflow_of_the_output_dtype_is_right():
    assert compare(expected([1e300]), got([np.inf]), CASE) is None
    assert compare(expected([1e300]), got([3e38]), CASE) is not None


def test_integers_are_exact():
    want = Expected(np.array([1, 2]), "int64", np.zeros(2))
    assert compare(want, got([1, 2], np.int64), CASE) is None
    assert compare(want, got([1, 3], np.int64), CASE).mismatch.index == (1,)


@pytest.mark.parametrize(("want", "have", "status"), [
    (expected([1, 2]), got([[1, 2]]), Status.INCORRECT_SHAPE),
    (expected([1, 1]), got([1]), Status.INCORRECT_SHAPE),
    (expected(1), got([1]), Status.INCORRECT_SHAPE),
    (expected([1, 2]), got([1, 2], np.float64), Status.INCORRECT_DTYPE),
    (expected([1, 2]), got([1, 2], np.float16), Status.INCORRECT_DTYPE),
    ((expected([1]),), got([1]), Status.INCORRECT_SHAPE),
    (expected([1]), (got([1]),), Status.INCORRECT_SHAPE),
    ((expected([1]), expected([2])), (got([1]),), Status.INCORRECT_SHAPE),
    ({"a": expected([1])}, {"b": got([1])}, Status.INCORRECT_SHAPE),
    (expected([1]), None, Status.INCORRECT_SHAPE),
])
def test_structure_shape_and_dtype_are_strict(want, have, status):
    assert compare(want, have, CASE).status is status


def test_every_leaf_of_the_tree_is_compared_whatever_the_order_of_keys():
    want = {"a": expected([1]), "b": (expected([2]), expected([3]))}
    assert compare(want, {"b": (got([2]), got([3])), "a": got([1])}, CASE) is None
    assert compare(want, {"b": (got([2]), got([4])), "a": got([1])}, CASE).mismatch.output == "out['b'][1]"


def test_empty_outputs_are_equal():
    assert compare(expected(np.zeros((0, 3))), got(np.zeros((0, 3))), CASE) is None
