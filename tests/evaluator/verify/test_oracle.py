from __future__ import annotations

import numpy as np
import pytest

from evaluator.comparison import compare
from evaluator.inputs import DISTRIBUTIONS, TASK, Case
from evaluator.oracle import TaskFault, Unjudgeable, load_oracle
from evaluator.trees import Leaf, leaves
from evaluator.types import Status, TaskSpec, Tolerance

ROWS = """
def make_inputs(rng, rows, cols):
    return {"x": rng.standard_normal((rows, cols), dtype=np.float32)}
"""
SIZES = {"rows": 6, "cols": 2048}


@pytest.fixture
def native(tmp_path):
    def make(text: str, sizes=SIZES, **spec):
        path = tmp_path / "task.py"
        path.write_text("import numpy as np\n" + text)
        return load_oracle(TaskSpec(name="t", kind="native", path=str(path), sizes=sizes, check_sizes=(sizes,), **spec))
    return make


def expect(oracle, distribution=TASK, seed=1, sizes=SIZES):
    case = Case(sizes, distribution, seed)
    problem = oracle.problem(case)
    return problem, oracle.expected(problem, case), case


def test_expected_values_are_double_precision(native):
    oracle = native(ROWS + "def reference(x):\n    return x.sum(axis=1)\n")
    problem, expected, _ = expect(oracle)
    exact = problem.inputs["x"].values.astype(np.float64).sum(axis=1)
    assert expected.dtype == "float32" and expected.values.dtype == np.float64
    assert np.array_equal(expected.values, exact)


@pytest.mark.parametrize("distribution", [TASK, *DISTRIBUTIONS])
def test_a_serial_float32_sum_is_within_the_bound(native, distribution):
    oracle = native(ROWS + "def reference(x):\n    return x.sum(axis=1)\n", tolerance=Tolerance(rtol=1e-5, atol=1e-6))
    for seed in range(3):
        problem, expected, case = expect(oracle, distribution, seed)
        x = problem.inputs["x"].values
        serial = np.zeros(len(x), np.float32)
        for column in x.T:
            serial += column
        assert compare(expected, Leaf.of(serial), case) is None


@pytest.mark.parametrize("distribution", [TASK, "normal", "large"])
def test_a_sum_of_half_precision_terms_is_not(native, distribution):
    oracle = native(ROWS + "def reference(x):\n    return x.sum(axis=1)\n", tolerance=Tolerance(rtol=1e-5, atol=1e-6))
    problem, expected, case = expect(oracle, distribution)
    coarse = problem.inputs["x"].values.astype(np.float16).astype(np.float64).sum(axis=1).astype(np.float32)
    assert compare(expected, Leaf.of(coarse), case).status is Status.INCORRECT_NUMERICAL


def test_zeros_do_not_pass_where_outputs_are_smaller_than_atol(native):
    oracle = native(ROWS + "def reference(x):\n    return np.full_like(x, 1e-6) * (1 + x)\n")
    _, expected, case = expect(oracle)
    verdict = compare(expected, Leaf.of(np.zeros((6, 2048), np.float32)), case)
    assert verdict is not None and verdict.status is Status.INCORRECT_NUMERICAL


def test_distribution_outside_the_references_domain_is_left_out(native):
    positive = ROWS.replace("standard_normal((rows, cols), dtype=np.float32)", "random((rows, cols), dtype=np.float32) + 1")
    oracle = native(positive + "def reference(x):\n    return np.log(x)\n")
    expect(oracle)
    with pytest.raises(Unjudgeable, match="non-finite"):
        expect(oracle, "normal")


def test_trees_dtypes_and_scalars(native):
    oracle = native(ROWS + "def reference(x):\n    return {'a': (x.max(axis=1), x.argmax(axis=1)), 'b': x.mean()}\n")
    _, expected, _ = expect(oracle)
    assert [(path, want.dtype, want.values.shape) for path, want in leaves(expected, "out")] == [
        ("out['a'][0]", "float32", (6,)), ("out['a'][1]", "int64", (6,)), ("out['b']", "float32", ())]


def test_reference_may_not_change_what_the_solution_gets(native):
    oracle = native(ROWS + "def reference(x):\n    x *= 2\n    return x\n")
    problem, expected, _ = expect(oracle)
    assert np.allclose(expected.values, 2 * problem.inputs["x"].values)
    assert oracle.changes_inputs  # but the input is only where the output is: a solution need not write it


@pytest.mark.parametrize(("text", "words"), [
    ("def reference(x):\n    return x\n", "no function make_inputs"),
    (ROWS + "def reference(x):\n    return y\n", "NameError"),
    (ROWS + "def reference(x):\n    return 'text'\n", "no counterpart"),
    ("def make_inputs(rng, rows, cols):\n    return [1]\ndef reference(x):\n    return x\n", "not a dict"),
    ("def make_inputs(rng, rows, cols):\n    return {'x': object()}\ndef reference(x):\n    return x\n", "input x"),
    ("this is no Python", "cannot be loaded"),
])
def test_a_faulty_task_is_named(native, text, words):
    with pytest.raises(TaskFault, match=words):
        expect(native(text))


def test_kernelbench_state_inputs_and_doubles(tmp_path):
    path = tmp_path / "problem.py"
    path.write_text("""
import torch, torch.nn as nn
n = 4
class Model(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.widths = widths + [3]
        self.fc = nn.Linear(*self.widths)
    def forward(self, x, scale):
        return self.fc(x) * scale
def get_inputs():
    return [torch.rand(n, 8), 2.0]
def get_init_inputs():
    return [[8]]
""")
    sizes = {"n": 5}
    oracle = load_oracle(TaskSpec(name="t", kind="kernelbench", path=str(path), sizes={"n": 1 << 20}, check_sizes=(sizes,)))
    problem, expected, _ = expect(oracle, sizes=sizes)
    assert list(problem.inputs) == ["x", "scale"] and problem.inputs["x"].shape == (5, 8)
    weight, bias = (problem.state[f"fc.{name}"].as_float64() for name in ("weight", "bias"))
    exact = (problem.inputs["x"].as_float64() @ weight.T + bias) * 2
    assert expected.dtype == "float32" and np.abs(expected.values - exact).max() < 1e-14
    assert oracle.input_bytes({"n": 1 << 20}) == (1 << 20) * 8 * 4


def test_kernelbench_unknown_size_is_the_tasks_fault(tmp_path):
    path = tmp_path / "problem.py"
    path.write_text("n = 4\n")
    with pytest.raises(TaskFault, match="no size of that name"):
        load_oracle(TaskSpec(name="t", kind="kernelbench", path=str(path), sizes={"m": 1}, check_sizes=({"m": 1},)))
