"""When a child counts as faster, and when its precision is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from evaluator.statistics import summarise
from evaluator.types import Environment, Evaluation, Status, TaskSpec, TimeEstimate
from kernelskill.agents.optimizer import Optimizer
from kernelskill.memory.attempts import AttemptGraph
from kernelskill.model import Task


def evaluation(time, precision="fp32", ratio=1.0):
    return Evaluation(status=Status.PASSED, message="", environment=Environment(device="GPU", simulated=False, arch="sm_90"),
                      time=time, precision_class=precision, precision_ratio=ratio)


def measured(us, spread=0.004, seed=0):
    return summarise((us * (1 + spread * np.random.default_rng(seed).standard_normal(60))).tolist())


def modelled(us):
    return TimeEstimate(provenance="modelled", time_us=us)


def optimizer(start, allow=()):
    graph = AttemptGraph()
    graph.add_start("start", start)
    spec = TaskSpec(name="t", kind="native", path="t.py", sizes={}, check_sizes=())
    task = Task(spec, root=None, start_source="", allow=frozenset(allow))
    return Optimizer(task, SimpleNamespace(graph=graph), None, None, {})


@pytest.mark.parametrize("child,outcome", [
    (measured(80, seed=1), "improved"), (measured(99, seed=1), "equal"), (measured(101, seed=1), "equal"),
    (measured(120, seed=1), "regressed"), (measured(95, 0.9, 1), "equal"),
])
def test_measured_times_are_compared_by_their_intervals(child, outcome):
    found, gain, message = optimizer(evaluation(measured(100)))._compare("start", evaluation(child))
    assert found == outcome
    assert gain == pytest.approx(100 / child.time_us, rel=0.01)
    assert message.startswith("95 % interval of the ratio: ")


def test_modelled_times_keep_their_thresholds():
    judge = optimizer(evaluation(modelled(100)))
    assert judge._compare("start", evaluation(modelled(80))) == ("improved", 1.25, "")
    assert judge._compare("start", evaluation(modelled(90)))[0::2] == ("improved", "within the time model's error")
    assert judge._compare("start", evaluation(modelled(99)))[0] == "equal"
    assert judge._compare("start", evaluation(modelled(110)))[0] == "regressed"


def test_modelled_and_measured_times_are_not_compared():
    assert optimizer(evaluation(modelled(100)))._compare("start", evaluation(measured(50)))[:2] == ("equal", None)


@pytest.mark.parametrize("own,child,allow,refused", [
    ("fp32", "fp32", (), False), ("fp32", "near_fp32", (), False), ("fp32", "tf32", (), True),
    ("fp32", "tf32", ("tf32",), False), ("fp32", "bf16", ("tf32",), True), ("fp16", "fp16", (), False),
    ("tf32", "tf32", (), False), ("tf32", "bf16", (), True), ("fp32", None, (), False),
])
def test_a_lower_precision_needs_permission(own, child, allow, refused):
    message = optimizer(evaluation(None, own), allow)._too_imprecise(evaluation(None, child, 8000.0))
    assert bool(message) == refused
    if refused:
        assert message.startswith(f"precision class {child} (its error is 8e+03 times the reference's)")
        assert f"--allow {child}" in message
