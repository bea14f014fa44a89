"""What is drawn: boundaries first, never what the task or the declaration excludes, and shrinking ends at small shapes."""

from __future__ import annotations

import math

import hypothesis
import pytest

from evaluator.checking.search import PHASES
from evaluator.checking.strategies import FailedBefore, examples_of, prepared_of, space_of, sweep
from evaluator.checking.types import Declaration, Example
from evaluator.types import TaskSpec

TASK = TaskSpec(name="t", kind="native", path="t.py", sizes={"rows": 500, "cols": 2000}, check_sizes=({"rows": 8, "cols": 64},))
BENCH = TaskSpec(name="k", kind="kernelbench", path="k.py", sizes={"batch": 128, "dim": 256, "groups": 4},
                 check_sizes=({"batch": 7, "dim": 44, "groups": 4}, {"batch": 1, "dim": 8, "groups": 4}))


def space(task=TASK, declaration=None, numbers=(32, 96), **more):
    return space_of(task, declaration or Declaration(), numbers, ("task", "normal"), 1 << 14, **more)


@pytest.mark.parametrize("task", [TASK, BENCH], ids=["native", "kernelbench"])
def test_every_prepared_example_is_written_as_choices_that_give_it_back(task):
    drawn = space(task)
    examples = list(sweep(drawn, (32, 96), task.check_sizes))
    assert len(examples) > 20
    kept = [example for example in examples if drawn.choices(example) is not None]
    assert len(kept) > 0.9 * len(examples)
    assert all(drawn.example(drawn.choices(example)) == example for example in kept)
    assert set(prepared_of(drawn, examples)) == set(kept)


def test_the_sweep_has_every_number_of_the_launch_and_its_neighbours_alone():
    cols = {example.sizes["cols"] for example in sweep(space(), (32, 96), TASK.check_sizes) if example.sizes["rows"] == 3}
    assert {31, 32, 33, 95, 96, 97, 1, 2, 3, 13} <= cols


def test_nothing_larger_than_the_task_or_the_work_limit_is_drawn():
    drawn = space()
    limits = drawn.limits()
    for choices in ([0] * len(limits), [n - 1 for n in limits], [n // 2 for n in limits], [0, limits[1] - 1, 9, 1, 0, 0, 5]):
        sizes = drawn.example(choices).sizes
        assert 1 <= sizes["rows"] <= 500 and 1 <= sizes["cols"] <= 2000 and math.prod(sizes.values()) <= 1 << 14


def test_declared_bounds_are_kept_and_a_minimum_of_zero_asks_for_empty_inputs():
    bounds = {"cols": {"multiple_of": 8, "max": 100}, "rows": {"min": 0}}
    rows, cols = space(declaration=Declaration(sizes=bounds, stated=True)).sizes
    assert all(value % 8 == 0 and 0 < value <= 100 for value in cols) and 8 in cols and 96 in cols
    assert rows[0] == 0 and space().sizes[0][0] == 1
    drawn = space(declaration=Declaration(sizes=bounds, stated=True))
    assert drawn.example([0, 0, 1, 0, 0, 0, 0]).sizes == {"rows": 0, "cols": 16}


def test_kernelbench_keeps_small_constants_and_draws_around_its_variants():
    drawn = space(BENCH)
    assert drawn.names == ("batch", "dim") and drawn.variants[0] == {"batch": 1, "dim": 8, "groups": 4}
    own = len(drawn.sizes[0]) - 1
    assert drawn.example([1, own, len(drawn.sizes[1]) - 1, 0, 0, 0, 3]).sizes == {"batch": 7, "dim": 44, "groups": 4}


@pytest.mark.parametrize(("fails", "smallest"), [
    (lambda s: s["cols"] % 4, {"rows": 1, "cols": 1}),
    (lambda s: s["cols"] > 96, {"rows": 1, "cols": 97}),
    (lambda s: s["rows"] > 64, {"rows": 65, "cols": 1}),
])
def test_hypothesis_shrinks_to_the_smallest_shape(fails, smallest):
    drawn, seen = space(), []
    first = next(example for example in prepared_of(drawn, sweep(drawn, (32, 96), TASK.check_sizes)) if fails(example.sizes))

    @hypothesis.settings(max_examples=2, deadline=None, database=FailedBefore(drawn, first), phases=PHASES)
    @hypothesis.seed(1)
    @hypothesis.given(examples_of(drawn))
    def test(example):
        if fails(example.sizes):
            seen.append(example)
            raise AssertionError

    with pytest.raises(AssertionError):
        test()
    assert seen[0] == first, "what failed is tried first"
    assert seen[-1] == Example(sizes=smallest, values="task", seed=0)


def test_every_smaller_size_of_an_example_is_offered_the_smallest_first():
    drawn = space()
    offered = [example.sizes for example in drawn.smaller(Example(sizes={"rows": 131, "cols": 2}, seed=3))]
    assert offered[0] == {"rows": 1, "cols": 2} and {"rows": 131, "cols": 1} in offered
    assert {"rows": 67, "cols": 2} in offered and all(math.prod(sizes.values()) < 262 for sizes in offered)
    products = [math.prod(sizes.values()) for sizes in offered]
    assert products == sorted(products)


def test_one_size_alone_may_be_longer_than_the_work_limit():
    long = TASK.model_copy(update={"sizes": {"rows": 200_000, "cols": 2000}})
    drawn = space(long)
    longest = len(drawn.sizes[0]) - 1
    assert drawn.example([0, longest, 0, 0, 0, 0, 0]).sizes == {"rows": 8 << 14, "cols": 1} or (
        65537 <= drawn.example([0, longest, 0, 0, 0, 0, 0]).sizes["rows"] <= 8 << 14)
    assert math.prod(drawn.example([0, longest, 9, 0, 0, 0, 0]).sizes.values()) <= 1 << 14
    assert any(example.sizes["rows"] >= 65537 and example.sizes["cols"] == 1 for example in sweep(drawn, (32,), ()))
