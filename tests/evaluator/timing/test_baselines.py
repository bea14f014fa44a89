"""Names of baselines, the headline among them, and what a reference process runs."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import pytest

from evaluator.baselines import (
    BASELINES,
    RECIPES,
    START,
    UnknownBaseline,
    asked,
    baselines_named,
    best_torch,
    expected_at,
    reference_model,
    reference_process,
    speedup,
)
from evaluator.inputs import TASK, Case
from evaluator.oracle_torch import KernelBenchOracle
from evaluator.statistics import summarise
from evaluator.types import BaselineTime, Environment, Evaluation, Status

PROBLEM = """
class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, 32)
        self.norm = nn.BatchNorm1d(32)
    def forward(self, x):
        return self.norm(self.linear(x))
rows = 64
features = 48
def get_inputs():
    return [torch.randn(rows, features)]
def get_init_inputs():
    return [features]
"""


def row(name, us, precision="fp32", own=50.0, **more):
    return BaselineTime(name=name, flags="", precision_class=precision, time=summarise([us] * 5),
                        solution_time=summarise([own] * 5), **more)


def evaluated(precision, *rows):
    return Evaluation(status=Status.PASSED, message="", environment=Environment(device="GPU", simulated=False, arch="sm_90"),
                      time=summarise([50.0] * 5), precision_class=precision, baselines=rows)


def test_names_and_their_short_forms():
    assert baselines_named("eager, compile_tf32,torch_eager", "kernelbench") == ("torch_eager", "torch_compile_tf32")
    assert baselines_named("all", "kernelbench") == BASELINES
    assert baselines_named("all", "native") == (START,)
    assert baselines_named("none", "kernelbench") == baselines_named("", "native") == ()
    assert {*RECIPES, START} == set(BASELINES)


def test_wrong_names_are_refused_with_the_right_ones():
    with pytest.raises(UnknownBaseline, match="'eagre'; there are: torch_eager, "):
        baselines_named("eagre", "kernelbench")
    with pytest.raises(UnknownBaseline, match="torch_compile runs a PyTorch reference"):
        baselines_named("compile", "native")


def test_the_headline_is_the_fastest_torch_that_is_at_least_as_precise():
    rows = (row("torch_eager", 200), row("torch_compile", 150), row("torch_eager_tf32", 60, "tf32"), row(START, 10),
            BaselineTime(name="torch_compile_max_autotune", flags="", reason="late"))
    assert best_torch(evaluated("fp32", *rows)).name == "torch_compile"
    assert best_torch(evaluated("near_fp32", *rows)).name == "torch_compile"
    assert best_torch(evaluated("tf32", *rows)).name == "torch_eager_tf32"
    assert best_torch(evaluated("bf16", *rows)).name == "torch_eager_tf32"
    assert best_torch(evaluated("fp32", row("torch_eager", 200, "tf32"), row(START, 10))) is None
    assert best_torch(evaluated(None, *rows)) is None


def test_a_speedup_is_of_the_samples_that_took_turns():
    assert speedup(row("torch_eager", 200, own=100.0)) == (2.0, 2.0, 2.0)
    assert speedup(BaselineTime(name="torch_eager", flags="", reason="late")) is None


def test_the_reference_process_gives_what_the_oracle_gives(bench):
    task = bench.kernelbench(PROBLEM, [{}])
    request = bench.request(task, "")
    oracle = KernelBenchOracle(task)
    problem = oracle.problem(Case(task.sizes, TASK, 5))
    process = reference_process(request, None, time.monotonic() + 100)
    try:
        expected, shapes = asked(process)(problem, 9, 100)
    finally:
        process.close()
    own, own_shapes = expected_at(oracle, problem, 9, 100)
    assert shapes == own_shapes == [[64, 32]]
    assert list(expected) == list(own) == ["out"]
    assert expected["out"].values.shape == (100,)
    assert np.allclose(expected["out"].values, own["out"].values, rtol=1e-12)
    assert expected["out"].yardstick.dtype == "float32" and 0 < expected["out"].yardstick.own < 1e-5


def test_a_reference_that_fails_says_so(bench):
    from evaluator.runner import Ended

    task = bench.kernelbench(PROBLEM.replace("return self.norm(", "return self.absent("), [{}])
    process = reference_process(bench.request(task, ""), None, time.monotonic() + 100)
    problem = KernelBenchOracle(bench.kernelbench(PROBLEM, [{}])).problem(Case(task.sizes, TASK, 5))
    bench.kernelbench(PROBLEM.replace("return self.norm(", "return self.absent("), [{}])
    try:
        with pytest.raises(Ended, match="absent"):
            asked(process)(problem, 9, 100)
    finally:
        process.close()


@pytest.mark.parametrize("name", ["torch_eager", "torch_eager_tf32", "torch_eager_fp32"])
def test_recipes_set_the_flags_they_name(bench, name, monkeypatch):
    import torch

    from evaluator.solutions import KernelBenchSolution

    monkeypatch.setattr(KernelBenchSolution, "device", "cpu")
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    try:
        task = bench.kernelbench(PROBLEM, [{}])
        model = reference_model(task, RECIPES[name])
        flags = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        assert flags == {"torch_eager": before, "torch_eager_tf32": (True, True), "torch_eager_fp32": (False, False)}[name]
        problem = KernelBenchOracle(task).problem(Case(task.sizes, TASK, 5))
        assert model.construct(problem.init, problem.state) == []
        model.set_inputs(problem.inputs, "fresh")
        assert model.model.training and not model.invoke().requires_grad
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def test_recipes_compile_in_the_mode_they_name(bench, monkeypatch):
    import torch

    from evaluator.solutions import KernelBenchSolution

    monkeypatch.setattr(KernelBenchSolution, "device", "cpu")
    seen = []
    monkeypatch.setattr(torch, "compile", lambda model, mode: seen.append(mode) or model)
    task = bench.kernelbench(PROBLEM, [{}])
    problem = KernelBenchOracle(task).problem(Case(task.sizes, TASK, 5))
    for name in BASELINES:
        if name != START:
            partial(reference_model, task)(RECIPES[name]).construct(problem.init, problem.state)
    assert seen == ["default"] * 3 + ["max-autotune-no-cudagraphs"] * 2
