"""KernelBench models: what is recognised, what is refused and why, and that the rendered module computes the same."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from evaluator.simulator import standin
from evaluator.types import TaskSpec
from kernelskill.errors import WriterError
from kernelskill.model import MethodApplication, Task
from kernelskill.writers import Request
from kernelskill.writers.template import TemplateWriter

torch = pytest.importorskip("torch", reason="torch is not installed (pip install kernelskill[torch])")
from test_template_runs import DEVICE  # noqa: E402

X = "torch.rand(batch, features) - 0.5"
LINEAR = ["self.linear = nn.Linear(features, 12)", "self.scale = nn.Parameter(torch.rand(12))"]
NORM = ["self.norm = nn.LayerNorm((features, 4))"]


def model(tmp_path, init: list[str], forward: str, inputs: str = X) -> Task:
    text = textwrap.dedent("""\
        import torch
        import torch.nn as nn
        import torch.nn.functional as F

        batch = 6
        features = 32


        class Model(nn.Module):
            def __init__(self, features):
                super(Model, self).__init__()
        {init}

            def forward(self, x):
                return {forward}


        def get_inputs():
            return [{inputs}]


        def get_init_inputs():
            return [features]
        """).format(init="\n".join(f"        {line}" for line in init), forward=forward, inputs=inputs)
    path = tmp_path / "problem.py"
    path.write_text(text)
    checks = ({"batch": 3, "features": 20}, {"batch": 5, "features": 7})
    spec = TaskSpec(name="problem", kind="kernelbench", path=str(path), sizes={"batch": 6, "features": 32}, check_sizes=checks)
    return Task(spec, tmp_path, "")


def family(task: Task) -> str:
    return TemplateWriter().start(task).split('"family": "')[1].split('"')[0]


@pytest.mark.parametrize(("init", "forward", "inputs", "expected"), [
    ([], "F.gelu(x) * torch.sigmoid(x)", X, "elementwise"),
    ([], "torch.clamp(x ** 3, -1, 1) + F.leaky_relu(x, 0.2)", X, "elementwise"),
    (["self.bias = nn.Parameter(torch.rand(features, 1, 1))"], "F.relu(x + self.bias)", "torch.rand(batch, features, 3, 2)",
     "elementwise"),
    ([], "x / torch.norm(x, p=2, dim=1, keepdim=True)", X, "row_reduction"),
    ([], "torch.max(x, dim=-1)[0]", X, "row_reduction"),
    (NORM, "self.norm(x)", "torch.rand(batch, features, 4)", "row_reduction"),
    (LINEAR, "torch.relu(self.linear(x)) * self.scale", X, "matmul"),
    ([], "torch.matmul(x.T, x)", X, "matmul"),
    (["self.conv = nn.Conv1d(1, 4, 3, padding=1, stride=2)"], "F.gelu(self.conv(x.unsqueeze(1))) + 1", X, "program"),
    (["self.conv = nn.ConvTranspose1d(1, 4, 3, stride=2)", "self.bn = nn.BatchNorm1d(4)"],
     "F.relu(self.bn(self.conv(x.unsqueeze(1))))", X, "program"),
    (LINEAR, "torch.softmax(self.linear(x), dim=1)", X, "program"),
    ([], "torch.logsumexp(x, dim=0, keepdim=True) - x.argmax(dim=0)", X, "program"),
    ([], "torch.cumsum(x.flip(1), dim=1).flip(1)", X, "program"),
    ([], "F.max_pool1d(x.unsqueeze(1), 3, 2, 1).mean(dim=(1, 2))", X, "program"),
    (["self.norm = nn.GroupNorm(4, features)"], "torch.cat([self.norm(x), x[:, :3]], dim=1)", "torch.rand(batch, features, 2)",
     "program"),
])
def test_known_models_are_recognised_and_compute_the_same(tmp_path, init, forward, inputs, expected):
    task, writer = model(tmp_path, init, forward, inputs), TemplateWriter()
    source = writer.start(task)
    assert family(task) == expected
    source = writer.write(task, Request(method=MethodApplication(method="launch_tuning"), source=source))
    session = standin.Session(device=DEVICE)
    standin.install(session)
    try:
        reference: dict = {"__name__": "reference"}
        exec((tmp_path / "problem.py").read_text(), reference)
        solution: dict = {"__name__": "solution"}
        exec(compile(source, "solution.py", "exec"), solution)
        ours, theirs = solution["ModelNew"](32), reference["Model"](32)
        ours.load_state_dict(theirs.state_dict(), strict=True)
        arguments = reference["get_inputs"]()
        got, want = ours(*arguments), theirs(*arguments)
    finally:
        standin.uninstall()
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5)
    assert session.findings == []


@pytest.mark.parametrize(("init", "forward", "message"), [
    ([], "torch.sort(x, dim=1)[0]", r"problem\.py: the operation 'sort' is not known"),
    ([], "F.pad(x, (1, 1), mode='reflect')", "padding by 'reflect' is not known"),
    (["self.rnn = nn.GRU(features, 3)"], "self.rnn(x)[0]", "the operation 'gru' is not known"),
    ([], "F.dropout(x, 0.5)", "dropout in training mode draws random numbers"),
    ([], "x if x.sum() > 0 else -x", "forward decides by the values of a tensor"),
    ([], "(x, x)", "returns something other than one computed tensor"),
    (["self.bias = nn.Parameter(torch.rand(batch, features))"], "x + self.bias", "uses batch of the file"),
    ([], "x * x.shape[1] ** 0.5", "does not compute what Model of problem at sizes"),
])
def test_unknown_models_are_refused_by_name_with_what_to_do(tmp_path, init, forward, message):
    with pytest.raises(WriterError, match=message) as caught:
        TemplateWriter().start(model(tmp_path, init, forward))
    assert "needs another writer" in caught.value.hint


NATIVE = """
import numpy as np
def make_inputs(rng, rows, cols):
    return {"scale": rng.standard_normal(cols), "x": rng.standard_normal((rows, cols))}
def reference(scale, x):
    return x * scale + 1
"""


def native(tmp_path, operation: str) -> Task:
    path = tmp_path / "reference.py"
    path.write_text(NATIVE)
    sizes = {"rows": 64, "cols": 32}
    spec = TaskSpec(name="scaled", kind="native", path=str(path), sizes=sizes, check_sizes=({"rows": 3, "cols": 4},))
    inputs = {"x": ["rows", "cols"], "scale": ["cols"]}
    return Task(spec, tmp_path, "", "elementwise", operation, {"inputs": inputs, "shape": ["rows", "cols"], "output": "y"})


def test_run_takes_the_inputs_in_the_order_of_make_inputs(tmp_path):
    assert "def run(scale_in, x):" in TemplateWriter().start(native(tmp_path, "x * scale + 1"))


def test_a_declaration_that_the_reference_contradicts_is_refused(tmp_path):
    with pytest.raises(WriterError, match=r"the operation 'x \* scale \+ 2' does not compute what the reference of scaled"):
        TemplateWriter().start(native(tmp_path, "x * scale + 2"))
