"""A task's own code, run to recognise what it computes, reaches nothing of the user's and cannot end the command."""

from __future__ import annotations

import pytest

from evaluator.types import TaskSpec
from kernelskill.errors import TaskError
from kernelskill.model import Task
from kernelskill.writers import proof

REFERENCE = """
import os
import numpy as np

def make_inputs(rng, n):
    return {{"x": rng.standard_normal(n, dtype=np.float32)}}

def reference(x):
    {act}
    return 2 * x
"""


@pytest.fixture
def task(tmp_path):
    def made(act: str) -> Task:
        path = tmp_path / "reference.py"
        path.write_text(REFERENCE.format(act=act))
        spec = TaskSpec(name="twice", kind="native", path=str(path), sizes={"n": 8}, check_sizes=({"n": 8},))
        return Task(spec, tmp_path, "", "elementwise", "x * 2")
    return made


def test_an_honest_task_is_proven(task):
    proof.check_declared(task("print('noise')"))


def test_what_it_raises_is_told_with_its_place(task):
    with pytest.raises(TaskError, match=r"reference\.py:9: the task's code raises ValueError: here"):
        proof.check_declared(task("raise ValueError('here')"))


@pytest.mark.parametrize(("act", "raised"), [
    ("open(__file__ + '.new', 'w')", "PermissionError|Read-only"), ("os.unlink(__file__)", "PermissionError|Read-only"),
    ("os.fork()", "PermissionError"), ("os.system('true') and os.kill(os.getppid(), 9)", "PermissionError"),
    ("import socket; socket.socket()", "PermissionError"), ("os.environ['SOME_API_KEY']", "KeyError"),
])
def test_files_programs_network_and_keys_are_out_of_reach(task, monkeypatch, act, raised):
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    with pytest.raises(TaskError, match=raised):
        proof.check_declared(task(act))


@pytest.mark.parametrize(("act", "ending"), [
    ("os._exit(0)", "ended without an answer"), ("os.abort()", "killed by SIGABRT"),
    ("while True: pass", "did not finish within 2 s"),
])
def test_how_it_ends_is_told_and_the_next_task_is_proven(task, monkeypatch, act, ending):
    monkeypatch.setattr(proof, "SECONDS", 2.0)
    with pytest.raises(TaskError, match=ending):
        proof.check_declared(task(act))
    monkeypatch.undo()
    proof.check_declared(task("pass"))
