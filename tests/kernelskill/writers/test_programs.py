"""Programs: what is fused, what stays torch's, that every method keeps them right, and that the proof finds a wrong one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from evaluator.simulator import standin
from kernelskill.errors import WriterError
from kernelskill.model import MethodApplication
from kernelskill.writers import Request
from kernelskill.writers.template import TemplateWriter

torch = pytest.importorskip("torch", reason="torch is not installed (pip install kernelskill[torch])")
from test_recognise import LINEAR, X, model  # noqa: E402
from test_template_runs import DEVICE  # noqa: E402

from kernelskill.writers.program.ir import Axis, Stage  # noqa: E402
from kernelskill.writers.program.merging import merged  # noqa: E402
from kernelskill.writers.program.prove import prove  # noqa: E402
from kernelskill.writers.program.tracing import trace_program  # noqa: E402

IMAGE = "torch.rand(batch, features, 5, 6) - 0.5"
CONV = ["self.conv = nn.Conv2d(features, 6, 3, padding=1)", "self.bias = nn.Parameter(torch.rand(6, 1, 1))"]
TILED = ("shared_memory_tiling", "register_blocking", "bank_conflict_padding", "loop_unrolling", "read_only_cache")
ROWS = ("coalesced_access", "block_per_row_reduction", "warp_shuffle_reduction", "vectorized_access", "loop_unrolling")


def kinds(task) -> list[str]:
    return [stage.kind for stage in trace_program(Path(task.spec.path), task.spec.allow_library).stages]


@pytest.mark.parametrize(("init", "forward", "inputs", "expected"), [
    (CONV, "torch.relu(self.conv(x)) + self.bias", IMAGE, ["product"]),
    (CONV, "(lambda y: y + torch.tanh(y).mean(dim=1, keepdim=True))(self.conv(x))", IMAGE, ["product", "map", "reduce", "map"]),
    ([], "torch.softmax(x, dim=1)", X, ["reduce", "reduce", "map"]),
    ([], "((x - 1) ** 2).mean()", X, ["reduce"]),
    (LINEAR, "F.gelu(self.linear(x * 2)).sum(dim=1) / 3", X, ["product", "reduce"]),
])
def test_element_wise_steps_join_the_stage_before_or_after(tmp_path, init, forward, inputs, expected):
    assert kinds(model(tmp_path, init, forward, inputs)) == expected


def test_a_permitted_operator_stays_torchs_and_what_follows_is_kernels(tmp_path):
    task = model(tmp_path, CONV, "torch.relu(self.conv(x)) + self.bias", IMAGE)
    assert kinds(task.allowing(("matmul",))) == ["product"]
    task = task.allowing(("conv",))
    assert kinds(task) == ["library", "map"]
    _, called = run(TemplateWriter().start(task), tmp_path)
    assert called == {"torch.conv2d"}


def run(source: str, folder: Path, sizes: int = 32):
    """The output of one simulated call, which must be the reference's, and the library operators that it called."""
    session = standin.Session(device=DEVICE)
    standin.install(session)
    try:
        reference: dict = {"__name__": "reference"}
        exec((folder / "problem.py").read_text(), reference)
        solution: dict = {"__name__": "solution"}
        exec(compile(source, "solution.py", "exec"), solution)
        ours, theirs = solution["ModelNew"](sizes), reference["Model"](sizes)
        ours.load_state_dict(theirs.state_dict(), strict=True)
        reference["features"] = sizes
        arguments = reference["get_inputs"]()
        with torch.no_grad():
            want = theirs(*arguments)
            session.forget_library_calls()
            got = ours(*arguments)
            called = {call.name for call in session.library_calls}
        got, want = got.numpy(), want.numpy()
    finally:
        standin.uninstall()
    assert session.findings == []
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    for name, buffer in theirs.named_buffers():
        np.testing.assert_allclose(ours.get_buffer(name).numpy(), buffer.numpy(), rtol=1e-4, atol=1e-5)
    return got, called


@pytest.mark.parametrize(("init", "forward", "inputs", "methods"), [
    (CONV, "torch.relu(self.conv(x)) + self.bias", IMAGE, TILED),
    (["self.conv = nn.ConvTranspose2d(features, 32, 3, stride=2, groups=2)"], "self.conv(x)", IMAGE, TILED[:2]),
    (LINEAR, "torch.softmax(self.linear(x), dim=1)", X, ("fast_math_intrinsics", "work_per_thread", "vectorized_access")),
    ([], "torch.logsumexp(x - x.mean(dim=1, keepdim=True), dim=1)", "torch.rand(batch, features * 16)", ROWS),
    ([], "x.argmin(dim=1)", "torch.rand(batch, features * 16)", ROWS[:3]),
    (["self.bn = nn.BatchNorm2d(features)"], "F.max_pool2d(self.bn(x), 2)", IMAGE, (*ROWS, "launch_tuning")),
])
def test_every_method_of_a_sequence_keeps_the_program_right(tmp_path, init, forward, inputs, methods):
    task, writer = model(tmp_path, init, forward, inputs), TemplateWriter()
    source, applied = writer.start(task), []
    for method in methods:
        offered = writer.applicable(task, source)
        if method in offered:
            source = writer.write(task, Request(method=offered[method], source=source))
            applied.append(method)
    assert len(applied) >= 2, applied
    assert run(source, tmp_path)[1] == set()


def test_with_several_kernels_a_method_names_the_one_that_it_changes(tmp_path):
    task, writer = model(tmp_path, [], "torch.softmax(x, dim=1)", "torch.rand(batch, features, 3)"), TemplateWriter()
    source = writer.start(task)
    first = writer.applicable(task, source)["launch_tuning"]
    assert first.params["stage"] in ("t0", "t1", "t2")
    with pytest.raises(WriterError, match="is not one of the choices here"):
        writer.write(task, Request(method=MethodApplication(method="launch_tuning", params={"stage": "t9"}), source=source))
    assert "reads neighbouring" in writer.explain(task, source, "coalesced_access") or "neighbouring results" in writer.explain(
        task, source, "coalesced_access")


def test_the_proof_finds_a_program_that_is_not_the_model(tmp_path):
    task = model(tmp_path, [], "torch.softmax(x, dim=1)")
    program = trace_program(Path(task.spec.path), ())
    prove(task, program)
    wrong = dataclasses.replace(program.stages[0], combine="min")
    with pytest.raises(WriterError, match="does not compute what Model of problem at sizes"):
        prove(task, dataclasses.replace(program, stages=(wrong, dataclasses.replace(program.stages[1], combine="prod"),
                                                         program.stages[2])))


def test_a_forgotten_update_of_running_statistics_is_found_by_the_proof(tmp_path):
    task = model(tmp_path, ["self.bn = nn.BatchNorm1d(features)"], "self.bn(x)")
    program = trace_program(Path(task.spec.path), ())
    moved = next(stage for stage in program.stages if stage.given)
    halved = dataclasses.replace(moved, body=moved.body.arguments[0])
    with pytest.raises(WriterError, match="bn_running"):
        prove(task, dataclasses.replace(program, stages=tuple(halved if s is moved else s for s in program.stages)))


def test_neighbouring_loops_become_one_only_where_every_access_runs_through_both(tmp_path):
    program = trace_program(Path(model(tmp_path, CONV[1:], "x[:, :6] * 2 + self.bias", IMAGE).spec.path), ())
    (stage,) = program.stages
    assert [axis.name for axis in merged(stage).axes] == ["i0", "i1", "i2"]
    sliced = merged(dataclasses.replace(stage, atoms=tuple((n, a) for n, a in stage.atoms if a.array == "x")))
    assert [axis.extent for axis in sliced.axes] == ["S0", "((6 * S2) * S3)"]  # six channels are one run
    plain = trace_program(Path(model(tmp_path, [], "x * 2", IMAGE).spec.path), ()).stages[0]
    assert len(merged(plain).axes) == 1
    assert merged(Stage("map", "t0", (Axis("i0", "4"), Axis("i1", "5")), plain.body)).axes == (Axis("i0", "(4 * 5)"),)
