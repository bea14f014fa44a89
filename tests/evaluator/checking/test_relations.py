"""Relations and special values are what the reference says they are."""

from __future__ import annotations

import time

import numpy as np
import pytest

from benchmarks.check_quality.kernels import elementwise
from evaluator.checking.lab import Excluded, Lab
from evaluator.checking.relations import relations_of
from evaluator.checking.special import special_expected
from evaluator.checking.types import Example
from evaluator.trees import leaves

SIZES = {"rows": 5, "cols": 7}
FOUND = {
    "softmax": {"0.75 is added to x: the result stays", "every row of the result sums to 1",
                "the columns of x are permuted: the columns of the result are permuted"},
    "transpose": {"the rows of x are permuted: the columns of the result are permuted", "applied twice it gives x back",
                  "linear in x: the results of two inputs add up to the result of their sum"},
    "row_max": {"the columns of x are permuted: the result stays", "0.75 is added to x: 0.75 is added to the result"},
    "relu": {"x is multiplied by 4: the result is multiplied by 4", "applied twice it gives the same as once"},
}
ABSENT = {"softmax": "linear", "transpose": "sums", "row_max": "linear", "relu": "negated"}


@pytest.fixture
def lab(checks):
    made = []

    def make(name: str) -> Lab:
        made.append(Lab(checks.request(name, elementwise("")), time.monotonic() + 60))
        return made[-1]

    yield make
    for opened in made:
        opened.close()


@pytest.mark.parametrize("name", FOUND)
def test_the_relations_of_a_task_are_found_on_its_reference(lab, name):
    sizes = SIZES if name != "relu" else {"n": 11}
    titles = [relation.title for relation in relations_of(lab(name), [Example(sizes=sizes, seed=s) for s in range(3)], True)]
    assert FOUND[name] <= set(titles)
    assert not any(ABSENT[name] in title for title in titles)


def test_special_values_are_judged_where_the_reference_is_sure(lab):
    opened = lab("softmax")
    example = Example(sizes=SIZES, values="nan", seed=3)
    problem = opened.problem(example)
    (_, want), = leaves(special_expected(opened.oracle, problem, 3), "out")
    rows = np.isnan(problem.inputs["x"].values).any(axis=1)
    assert rows.any() and (np.isnan(want.values).all(axis=1) == rows).all() and not want.free.any()
    huge = opened.problem(Example(sizes=SIZES, values="huge", seed=3))
    (_, judged), = leaves(special_expected(lab("row_sum").oracle, huge, 3), "out")
    assert not judged.free.any() and np.isfinite(judged.values).all()
    (_, squared), = leaves(special_expected(lab("normalise").oracle, huge, 3), "out")
    assert squared.free.all(), "in float32 the squares overflow: rounding decides"


def test_sizes_that_the_task_refuses_are_excluded_once_and_for_all(lab):
    opened = lab("row_max")
    for _ in range(2):
        with pytest.raises(Excluded, match="zero-size"):
            opened.pose(Example(sizes={"rows": 2, "cols": 0}))
    assert len(opened.refused) == 1
