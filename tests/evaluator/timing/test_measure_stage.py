"""The timing stage as a whole, on the CPU: its parts in order, each with its seconds; what is made ahead of it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from cpu_session import HONEST

from evaluator import measure as stages
from evaluator.baselines import expected_at
from evaluator.judge_timing import CHECKED_EARLY
from evaluator.measure import Processes, measure, session_here, session_soon
from evaluator.oracle import TaskFault, load_oracle
from evaluator.trees import Leaf
from evaluator.verify import Record

NATIVE = """
def make_inputs(rng, n):
    return {"x": rng.standard_normal((n, 5), dtype=np.float32), "k": 3}
def reference(x, k):
    return k * x.sum(axis=1), np.sign(x)
"""


def named(parts):
    """Notes the parts as they begin."""
    @contextmanager
    def stage(name):
        parts.append(name)
        yield

    return stage


def test_the_parts_of_the_timing_in_order(stage):
    made = stage()
    runner, parts, record = made.process(HONEST), [], Record()
    runner.load()
    request = made.bench.request(made.task, HONEST)
    processes = Processes(runner)
    session = session_here(request, made.oracle, processes, 5, time.monotonic() + 60)
    fields, device = measure(session, processes, record, named(parts))
    assert parts == ["prepare", "reference", "timing", "replay"] and device == "cpu"
    assert fields["time"].samples >= 20 and "cannot be captured" in fields["graph_unavailable"]
    assert fields["task_facts"] == {"task_bytes": 2 * 4 * 96 * 64, "task_output_elements": 96 * 64}
    assert record.checks["timed_calls_checked"] == CHECKED_EARLY + 1
    assert record.precision.classify() == "fp32" and not record.notes


def test_a_reference_that_fails_leaves_the_calls_unchecked_and_says_so(stage):
    made = stage()
    runner, record = made.process(HONEST), Record()
    runner.load()
    session = session_here(made.bench.request(made.task, HONEST), made.oracle, Processes(runner), 5, time.monotonic() + 60)
    session._coming.result()

    def fails(problem, seed, count):
        raise TaskFault("too large for it")

    session.reference = fails
    session.begin_reference()
    fields, _ = measure(session, Processes(runner), record, named([]))
    assert fields["time"].samples and record.checks["timed_calls_checked"] == 0
    assert record.notes == ["no timed call was compared, the reference fails at the full sizes: too large for it"]


def test_inputs_and_reference_of_a_native_task_are_made_ahead(bench, monkeypatch):
    task = bench.native(NATIVE, [{"n": 4}], {"n": 300})
    session = session_soon(bench.request(task, ""), SimpleNamespace(reference=None), 9, time.monotonic() + 60).result()
    assert session.problem.inputs["x"].shape == (300, 5)
    found = session.checkpoint()
    x = session.problem.inputs["x"].values * np.float32(found.factor)
    monkeypatch.setattr("evaluator.oracle.CONCURRENT_BYTES", 0)  # one run of the reference after the other
    want, _ = expected_at(load_oracle(task), session_problem(session, x), found.seed, 1 << 20)
    for path, have in found.expected.items():
        assert (have.values == want[path].values).all() and (have.allowed == want[path].allowed).all()
    assert found.shapes == [[300], [300, 5]]


def session_problem(session, x):
    """The session's problem with other values of x."""
    return replace(session.problem, inputs={**session.problem.inputs, "x": Leaf.of(x)})


def test_a_task_that_fails_at_the_full_sizes_fails_where_its_inputs_are_needed(bench):
    task = bench.native(NATIVE.replace('"k": 3', '"k": 3 if n < 9 else 1 / 0'), [{"n": 4}], {"n": 300})
    coming = session_soon(bench.request(task, ""), SimpleNamespace(reference=None), 9, time.monotonic() + 60)
    with pytest.raises(TaskFault, match="ZeroDivisionError"):
        coming.result()


def test_a_kernelbench_module_waits_for_the_verification(stage, monkeypatch):
    made = stage()
    monkeypatch.setattr(stages, "session_here", lambda *_: pytest.fail("PyTorch's random numbers are one stream"))
    assert session_soon(made.bench.request(made.task, HONEST), Processes(made.process(HONEST)), 9, 0.0) is None
