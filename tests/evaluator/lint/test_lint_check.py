"""The whole lint of one KernelBench problem: verdicts, needless work, speed of light, notes."""

import pytest

pytest.importorskip("torch")

from evaluator.kernelbench_module import load_module
from evaluator.lint.check import check
from evaluator.lint.cost import Cost, counted
from evaluator.lint.needless import needless
from evaluator.lint.reference import TorchReference
from evaluator.lint.report import LintReport, LintRequest
from evaluator.lint.sizes import reduced
from evaluator.types import TaskSpec

HEAD = "import torch\nimport torch.nn as nn\n"
FOOT = "def get_inputs():\n    return [{inputs}]\ndef get_init_inputs():\n    return []\n"


@pytest.fixture
def written(tmp_path):
    def write(forward: str, inputs="torch.rand(batch, features)", init="", sizes=None) -> TaskSpec:
        sizes = sizes or {"batch": 32, "features": 24}
        constants = "".join(f"{name} = {value}\n" for name, value in sizes.items())
        body = f"class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {init or 'pass'}\n"
        path = tmp_path / "problem.py"
        path.write_text(f"{HEAD}{constants}{body}    def forward(self, x):\n        {forward}\n{FOOT.format(inputs=inputs)}")
        checks = ({name: max(5, value // 8) for name, value in sizes.items()},)
        return TaskSpec(name="t", kind="kernelbench", path=str(path), sizes=sizes, check_sizes=checks)
    return write


@pytest.fixture
def lint(written, h200):
    def run(*problem, **more) -> LintReport:
        *_, last = check(LintRequest(task=written(*problem, **more), device=h200, budget_s=60))
        return last
    return run


@pytest.fixture
def work(written):
    def run(*problem):
        return needless(TorchReference(load_module(written(*problem).path)), 60)
    return run


def codes(report) -> set[str]:
    return {finding.code for finding in report.findings}


def test_a_sound_task_has_no_finding(lint):
    report = lint("return self.l(x).relu()", "torch.randn(batch, features)", "self.l = nn.Linear(features, 64)")
    assert report.verdict == "judgeable" and codes(report) <= {"too_small"}
    assert set(report.ours) == {"zeros", "ones", "constant", "other_seed"}  # no input has the output's shape
    assert report.cost.flops == 2 * 32 * 24 * 64 and report.cost.parameter_bytes == 4 * (24 * 64 + 64)


def test_an_identity_on_its_own_inputs_is_told_apart_by_ours(lint):
    report = lint("return torch.relu(x)")
    assert report.verdict == "unjudgeable_as_shipped" and report.set_aside
    assert report.ours["input"].refused and "null_passes" in codes(report)
    assert report.needless.no_effect_on_own_inputs == ("relu #1",) and report.needless.no_effect == ()


def test_a_constant_is_unjudgeable_by_ours_too(lint):
    report = lint("return (x - x.mean(dim=1, keepdim=True)).mean(dim=1).clamp(max=-1)")
    assert report.verdict == "unjudgeable" and not report.ours["constant"].refused
    assert any("accepts it on all" in finding.message for finding in report.findings)


def test_a_task_that_is_a_copy_is_no_fault(lint):
    report = lint("return 3 * x", "torch.randn(batch, features)")
    assert report.verdict == "judgeable" and not report.ours["scaled_input"].refused


def test_dropout_in_training_mode_is_random(lint):
    report = lint("return self.d(x)", init="self.d = nn.Dropout(0.4)")
    assert report.verdict == "unjudgeable" and "random" in codes(report)
    assert any("draws random numbers" in note for note in report.notes)


@pytest.mark.parametrize(("forward", "field", "expected"), [
    ("return nn.functional.leaky_relu(torch.relu(x))", "no_effect", ("leaky_relu",)),
    ("return torch.tanh(x).clamp(-1, 1)", "no_effect", ("clamp",)),
    ("return x.sum(dim=1, keepdim=True).logsumexp(dim=1, keepdim=True)", "no_effect", ("logsumexp",)),
    ("y = self.l(x)\n        return x * 2", "dead", ("addmm",)),
    ("return (self.l(x) / 2).sum(dim=1)", "reduced_products", ("addmm -> sum",)),
    ("return self.l(x).relu().sum(dim=1)", "reduced_products", ()),
    ("return (self.l(x) * self.l(x)).sum(dim=1)", "reduced_products", ()),
])
def test_needless_work(work, forward, field, expected):
    found = getattr(work(forward, "torch.randn(batch, features)", "self.l = nn.Linear(features, 8)"), field)
    assert tuple(name.split(" #")[0] for name in found) == expected


def test_batch_norm_counts_as_work(work):
    found = work("return self.n(x)", "torch.randn(batch, features)", "self.n = nn.BatchNorm1d(features)")
    assert found.operators and found.no_effect == () and found.dead == ()


def test_sizes_are_reduced_and_it_is_said(written, h200, monkeypatch):
    monkeypatch.setattr("evaluator.lint.check.CPU_BYTES", 1e6)
    task = written("return torch.sin(x)", "torch.randn(batch, features)", sizes={"batch": 1 << 16, "features": 1 << 13})
    stages = check(LintRequest(task=task, device=h200))
    assert next(stages).cost.bytes == 2 * 4 << 29
    report = next(stages)
    assert report.shipped.sizes["features"] == 1 << 13 and report.shipped.sizes["batch"] < 1 << 16
    assert not report.shipped.full_size and any("reduced sizes (batch=" in note for note in report.notes)


def test_a_task_whose_code_fails_is_not_checked(lint):
    report = lint("raise ValueError('no')")
    assert report.verdict == "not_checked"
    assert any("ValueError: no" in note for note in report.notes)


@pytest.mark.parametrize(("layer", "inputs", "operator"), [
    ("nn.Conv2d(4, 8, 3)", "2, 4, 9, 9", "conv2d"), ("nn.Conv3d(4, 4, 3, groups=4)", "2, 4, 5, 5, 5", "depthwise_conv3d"),
    ("nn.ConvTranspose1d(4, 8, 3)", "2, 4, 9", "conv_transpose1d"),
    ("nn.Conv1d(4, 8, 3, groups=2)", "2, 4, 9", "grouped_conv1d"),
    ("nn.Linear(4, 8)", "2, 4", "addmm"), ("nn.ReLU()", "2, 4", ""),
    ("nn.Sequential(nn.Linear(4, 6), nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 4, 3))", "2, 4", ""),
])
def test_the_operator_that_does_most_of_the_arithmetic(tmp_path, layer, inputs, operator):
    path = tmp_path / "problem.py"
    path.write_text(
        f"{HEAD}class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layer = {layer}\n"
        "    def forward(self, x):\n        return self.layer(x)\n"
        f"def get_inputs():\n    return [torch.rand({inputs})]\ndef get_init_inputs():\n    return []\n")
    cost = counted(load_module(str(path), {}))
    assert cost.operator == operator and (cost.flops > 0) == ("ReLU" not in layer)


def test_what_has_no_effect_only_because_the_problem_was_reduced_is_none(written):
    task = written("return x.view(batch, -1, features).mean(1, keepdim=True).exp()", "torch.randn(4 * batch, features)")
    whole, small = load_module(task.path), load_module(task.path)
    small.get_inputs = lambda: [whole.get_inputs()[0][:whole.batch]]
    alone = needless(TorchReference(small), 60)
    assert any(name.startswith("mean") for name in alone.no_effect)
    assert needless(TorchReference(small), 60, TorchReference(whole)).no_effect == ()


def test_sizes_that_must_be_equal_are_reduced_together():
    def cost(sizes):
        moved = 4 * sizes["batch"] * sizes["n"]
        return Cost(input_bytes=moved, parameter_bytes=0, output_bytes=0, flops=0) if sizes["batch"] == sizes["n"] else None

    assert reduced({"batch": 4096, "n": 4096, "k": 3}, cost, 1e6, 1e9) == {"batch": 256, "n": 256, "k": 3}
