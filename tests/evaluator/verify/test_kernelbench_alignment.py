"""KernelBench tasks judged right: parameters, mode, random references, inputs changed in place, dtypes, several outputs."""

import numpy as np
import pytest

from evaluator.comparison import compare
from evaluator.failures import WrongForm
from evaluator.inputs import TASK, Case
from evaluator.oracle import TaskFault, load_oracle
from evaluator.trees import Leaf, leaves
from evaluator.types import Status

pytest.importorskip("torch")
SIZES = [{"n": 4}, {"n": 7}]
LINEAR = """
n = 8
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 5)
        self.norm = nn.BatchNorm1d(5)
        self.shift = torch.randn(5)
    def forward(self, x):
        return self.norm(self.linear(x)) + self.shift.to(x.device)
def get_inputs():
    return [torch.randn(n, 3)]
def get_init_inputs():
    return []
"""
COPY = LINEAR.split("def get_inputs")[0].replace("class Model(", "class ModelNew(")
HEAD = "import torch\nimport torch.nn as nn\n"


def problem(body: str, inputs: str = "torch.randn(n, 3)", init: str = "") -> str:
    return f"n = 8\nclass Model(nn.Module):\n{body}\ndef get_inputs():\n    return [{inputs}]\n" + (
        f"def get_init_inputs():\n    return [{init}]\n")


def judged(bench, module: str, solution: str):
    task = bench.kernelbench(module, SIZES, {"n": 8}, allow_library=("all",))
    return bench.evaluate(task, HEAD + solution)


def test_parameters_buffers_and_unregistered_tensors_agree(bench):
    evaluation = judged(bench, LINEAR, COPY)
    assert evaluation.status is Status.PASSED, evaluation.message


def constructed(bench, module: str, solution: str):
    """(the solution on the CPU with its model made, the notes)."""
    from evaluator.kernelbench_module import load_module
    from evaluator.solutions import KernelBenchSolution

    oracle = load_oracle(bench.kernelbench(module, SIZES, {"n": 8}))
    given = oracle.problem(Case({"n": 4}, TASK, 3))
    path = bench.folder / "solution.py"
    path.write_text(HEAD + solution)
    made = KernelBenchSolution(load_module(path))
    made.device = "cpu"
    return made, made.construct(given.init, given.state, given.training)


@pytest.mark.parametrize(("old", "new", "said"), [
    ("self.linear = nn.Linear(3, 5)", "self.linear = nn.Linear(3, 5, bias=False)\n        self.extra = nn.Linear(1, 1)",
     r"which Model lacks: extra.weight, extra.bias"),
    ("nn.Linear(3, 5)", "nn.Linear(3, 6)", r"in another shape: linear.weight \(6, 3\) instead of \(5, 3\)"),
])
def test_a_model_with_other_parameters_is_refused_by_name_and_shape(bench, old, new, said):
    with pytest.raises(WrongForm, match=said + r".*keep its names \(linear.weight, linear.bias"):
        constructed(bench, LINEAR, COPY.replace(old, new))


def test_parameters_kept_in_another_dtype_are_told(bench):
    solution = COPY.replace("self.shift = torch.randn(5)", "self.shift = torch.randn(5)\n        self.linear.double()")
    _, notes = constructed(bench, LINEAR, solution)
    assert notes[0] == "ModelNew holds linear.weight in float64, Model in float32"
    assert constructed(bench, LINEAR, COPY)[1] == []


def test_running_statistics_are_outputs(bench):
    forgets = "nn.functional.batch_norm(self.linear(x), None, None, self.norm.weight, self.norm.bias, training=True)"
    evaluation = judged(bench, LINEAR, COPY.replace("self.norm(self.linear(x))", forgets))
    assert evaluation.status is Status.INCORRECT_NUMERICAL
    assert "norm.running" in evaluation.message or "norm.num_batches" in evaluation.message


@pytest.mark.parametrize("training", [True, False])
def test_the_solution_gets_the_mode_that_the_model_chose(bench, training):
    made, _ = constructed(bench, LINEAR.replace("torch.randn(5)", f"torch.randn(5)\n        self.train({training})"), COPY)
    assert made.model.training is made.model.norm.training is training


DROPOUT = """    def __init__(self, p):
        super().__init__()
        self.drop = nn.Dropout(p)
    def forward(self, x):
        return self.drop(x) * 2"""


def test_a_reference_that_draws_random_numbers_is_the_fault_of_the_task(bench):
    task = bench.kernelbench(problem(DROPOUT, init="0.5"), SIZES)
    with pytest.raises(TaskFault, match=r"draws random numbers .*drop: Dropout\(p=0.5\) in training mode.*use p=0"):
        load_oracle(task)


@pytest.mark.parametrize("drop", ["nn.Dropout(0.0)", "nn.Dropout(p)\n        self.eval()"])
def test_dropout_that_does_nothing_is_judged(bench, drop):
    task = bench.kernelbench(problem(DROPOUT.replace("nn.Dropout(p)", drop), init="0.5"), SIZES)
    assert len(load_oracle(task).spec.check_sizes) == 2


IN_PLACE = """    def forward(self, x, cache):
        cache[:, 0] += x.sum(dim=1)
        return x * 2"""
IN_PLACE_NEW = "class ModelNew(nn.Module):\n" + IN_PLACE


def test_what_the_reference_writes_into_its_inputs_must_be_written(bench):
    module = problem(IN_PLACE, "torch.randn(n, 3), torch.zeros(n, 2)")
    assert judged(bench, module, IN_PLACE_NEW).status is Status.PASSED
    forgotten = judged(bench, module, "class ModelNew(nn.Module):\n    def forward(self, x, cache):\n        return x * 2\n")
    assert forgotten.status is Status.INCORRECT_NUMERICAL and "input cache" in forgotten.message


def test_an_input_that_is_returned_is_only_a_place_of_the_output(bench):
    oracle = load_oracle(bench.kernelbench(problem("    def forward(self, x):\n        return x.mul_(2)[1:]"), SIZES))
    given = oracle.problem(Case({"n": 4}, TASK, 3))
    assert isinstance(oracle.outputs(given), Leaf) and oracle.changes_inputs


def test_the_same_for_a_native_task(bench):
    reference = """
    def make_inputs(rng, n):
        return {"x": rng.standard_normal(n, dtype=np.float32), "total": np.zeros(1, np.float32)}
    def reference(x, total):
        total += x.sum()
        return 2 * x
    """
    task = bench.native(reference, SIZES, allow_library=("all",))
    right = "import cupy as cp\ndef run(x, total):\n    total += x.sum()\n    return x * cp.float32(2)\n"
    evaluation = bench.evaluate(task, right)
    assert evaluation.status is Status.PASSED, evaluation.message
    evaluation = bench.evaluate(task, right.replace("    total += x.sum()\n", ""))
    assert evaluation.status is Status.INCORRECT_NUMERICAL and "input total" in evaluation.message


MIXED = """    def forward(self, x, index, mask, scale, pair):
        picked = x[index] * scale
        return picked.half(), (index + 1, mask & (pair[0] > 0)), x.argmax(dim=1), torch.where(mask, x[:, 0] / 0, x[:, 0])"""
MIXED_INPUTS = ("torch.randn(n, 3), torch.randint(0, n, (n,)), torch.rand(n) > 0.5, 1.5, "
                "(torch.randn(n), torch.randn(n, dtype=torch.float64))")


def test_integers_bools_halves_scalars_tuples_and_infinities(bench):
    module = problem(MIXED, MIXED_INPUTS)
    evaluation = judged(bench, module, "class ModelNew(nn.Module):\n" + MIXED)
    assert evaluation.status is Status.PASSED, evaluation.message


@pytest.mark.parametrize(("old", "new", "status"), [
    ("index + 1", "(index + 1).int()", Status.INCORRECT_DTYPE), ("picked.half()", "picked", Status.INCORRECT_DTYPE),
    ("mask & (", "mask | (", Status.INCORRECT_NUMERICAL), ("x[:, 0] / 0", "-x[:, 0] / 0", Status.INCORRECT_NUMERICAL),
    ("x.argmax(dim=1),", "x.argmax(dim=1), x,", Status.INCORRECT_SHAPE),
])
def test_what_differs_in_one_of_several_outputs_is_found(bench, old, new, status):
    case = Case({"n": 7}, TASK, 3)
    oracle = load_oracle(bench.kernelbench(problem(MIXED, MIXED_INPUTS), SIZES))
    given = oracle.problem(case)
    expected = oracle.expected(given, case)
    dtypes = {path: want.dtype for path, want in leaves(expected, "out")}
    assert (dtypes["out[0]"], dtypes["out[1][0]"], dtypes["out[1][1]"]) == ("float16", "int64", "bool")
    assert np.isinf(dict(leaves(expected, "out"))["out[3]"].values).any()
    assert compare(expected, oracle.outputs(given), case) is None
    other = load_oracle(bench.kernelbench(problem(MIXED.replace(old, new), MIXED_INPUTS), SIZES))
    assert compare(expected, other.outputs(given), case).status is status


def test_one_infinity_of_the_other_sign_is_wrong(bench):
    oracle = load_oracle(bench.kernelbench(problem("    def forward(self, x):\n        return x / 0"), SIZES))
    case = Case({"n": 4}, TASK, 3)
    given = oracle.problem(case)
    expected, own = oracle.expected(given, case), oracle.outputs(given)
    assert compare(expected, own, case) is None
    flipped = own.values.copy()
    flipped[2, 1] *= -1
    verdict = compare(expected, Leaf(flipped, own.dtype), case)
    assert verdict.status is Status.INCORRECT_NUMERICAL and verdict.mismatch.index == (2, 1)
    assert verdict.mismatch.wrong_elements == 1


def test_a_model_that_is_no_module_is_refused(bench):
    from evaluator.kernelbench_module import load_module
    from evaluator.solutions import KernelBenchSolution

    task = bench.kernelbench(LINEAR, SIZES, {"n": 8})
    module = load_module(task.path)
    module.ModelNew = type("ModelNew", (), {})
    with pytest.raises(WrongForm, match=r"no torch\.nn\.Module"):
        KernelBenchSolution(module).construct([], {})


@pytest.mark.parametrize("allowed", [False, True])
def test_torchs_tf32_switches_follow_the_task_not_torchs_defaults(tmp_path, allowed):
    import torch

    from evaluator.solutions import load_solution
    from evaluator.types import TaskSpec

    path = tmp_path / "solution.py"
    path.write_text(HEAD + COPY)
    task = TaskSpec(name="t", kind="kernelbench", path=str(path), sizes={}, check_sizes=(), allow_tf32=allowed)
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    try:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = not allowed, not allowed
        load_solution(str(path), task)
        assert (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32) == (allowed, allowed)
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
