"""The recorded other shapes of KernelBench problems: what the page says, and that they are other shapes."""

import json

from benchmarks import kernelbench_shapes

PROBLEMS = json.loads(kernelbench_shapes.RECORD.read_text())["problems"]


def test_the_page_is_the_record():
    page = kernelbench_shapes.PAGE.read_text()
    assert kernelbench_shapes.render({"problems": PROBLEMS}, page) == page and "at least three other shapes" in page


def test_nine_of_ten_problems_have_three_other_shapes():
    assert len(PROBLEMS) == 250
    assert sum(problem["others"] >= kernelbench_shapes.WANTED for problem in PROBLEMS.values()) >= 225


def test_every_variant_differs_from_the_file_and_from_each_other():
    for key, problem in PROBLEMS.items():
        assert problem["others"] == len(problem["variants"]) and (problem["others"] or problem["fault"]), key
        made = [json.dumps(variant) for variant in problem["variants"]]
        assert len(set(made)) == len(made), key
        assert all(variant["sizes"] for variant in problem["variants"]), key
        assert all(0 not in shape for variant in problem["variants"] for shape in variant["outputs"]), key
