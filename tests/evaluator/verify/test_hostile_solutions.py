"""A hostile solution costs one evaluation: the right status, nothing left running, nothing written, nothing leaked.

The solutions reach `os` and `ctypes` through numpy's and pathlib's own imports, as code would that evades the source guard.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from textwrap import dedent

import pytest

from benchmarks.hostile import HONEST, HOSTILE, TASK
from evaluator import sandbox
from evaluator.pool import evaluate, evaluate_many
from evaluator.sandbox import bubblewrap
from evaluator.types import Evaluation, Status


def with_attack(attack: str) -> str:
    """An honest solution whose run() first does `attack`."""
    body = "".join(f"    {line}\n" for line in attack.strip().splitlines())
    return HONEST.replace("def run(x):\n", f"def run(x):\n{body}")


@pytest.fixture
def attack(bench):
    def run(code: str, **options):
        return bench.evaluate(bench.native(TASK, [{"n": 40}]), with_attack(code), **options)
    return run


@pytest.fixture(params=["bubblewrap", "rlimits"])
def either_sandbox(request, monkeypatch):
    if request.param == "rlimits":
        monkeypatch.setattr(sandbox, "bubblewrap", lambda: None)
    elif not bubblewrap():
        pytest.skip("needs bubblewrap")
    return request.param


def test_honest_solution_passes(bench, either_sandbox):
    evaluation = bench.evaluate(bench.native(TASK, [{"n": 40}]), HONEST)
    assert evaluation.status is Status.PASSED, evaluation.message
    assert evaluation.environment.sandbox == either_sandbox


def test_endless_loop_is_a_timeout_that_names_the_case_and_leaves_nothing_behind(attack, tmp_path, monkeypatch):
    private = tmp_path / "temporary"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))
    evaluation = attack("while True:\n    pass", timeout_s=6)
    assert evaluation.status is Status.TIMEOUT
    assert "n=40" in evaluation.message
    assert list(private.iterdir()) == []
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert [c for c in children if "evaluator" in Path(f"/proc/{c}/cmdline").read_text()] == []


def test_fork_is_refused(attack, either_sandbox):
    evaluation = attack("while True:\n    host.fork()")
    assert evaluation.status is Status.RUNTIME_ERROR
    assert "PermissionError" in evaluation.message


def test_no_programs_no_network_no_signals_to_others(attack):
    evaluation = attack("""
refused = 0
for call in (host.forkpty, lambda: host.execv("/bin/true", ["true"]), lambda: host.kill(host.getppid(), 9),
             lambda: host.posix_spawn("/bin/true", ["true"], {}), np.testing._private.utils.os.fork):
    try:
        call()
    except OSError:
        refused += 1
assert refused == 5, refused
""")
    assert evaluation.status is Status.PASSED, evaluation.message


@pytest.mark.parametrize("act", ["open('wb')", "unlink()", "rename('/tmp/other')", "mkdir()", "chmod(0o777)"])
def test_no_file_is_made_changed_or_removed(attack, either_sandbox, act):
    name = "solution.py" if "open" not in act and "mkdir" not in act else "new"
    evaluation = attack(f"pathlib.Path(__file__).with_name({name!r}).{act}")
    assert evaluation.status is Status.RUNTIME_ERROR
    assert "PermissionError" in evaluation.message


def test_a_file_that_is_there_is_not_overwritten(attack, either_sandbox):
    evaluation = attack("""
file = host.open(__file__, host.O_WRONLY)
host.write(file, b"x")
""")
    assert evaluation.status is Status.REJECTED or "OSError" in evaluation.message, evaluation.message


def test_no_process_can_be_read_or_written(attack, either_sandbox):
    every = next(hostile for hostile in HOSTILE if hostile.name == "memory_of_every_process")
    evaluation = attack(dedent(every.python))
    assert evaluation.status is Status.RUNTIME_ERROR
    assert "PermissionError: 0 opened" in evaluation.message


def test_environment_holds_no_secrets(attack, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    evaluation = attack("raise ValueError(sorted(host.environ))")
    assert evaluation.status is Status.RUNTIME_ERROR
    assert "SOME_API_KEY" not in evaluation.message
    assert "'HOME'" in evaluation.message


def test_files_beside_the_task_are_out_of_reach(attack, bench, either_sandbox):
    target = bench.folder / "task" / "planted"
    evaluation = attack(f"pathlib.Path({str(target)!r}).touch()")
    assert evaluation.status is Status.RUNTIME_ERROR
    assert "PermissionError" in evaluation.message
    assert not target.exists()


@pytest.mark.skipif(not bubblewrap(), reason="needs bubblewrap")
def test_files_of_the_host_cannot_be_read(attack, tmp_path_factory):
    secret = tmp_path_factory.mktemp("elsewhere") / "key"
    secret.write_text("hunter2")
    evaluation = attack(f"raise ValueError(pathlib.Path({str(secret)!r}).read_text())")
    assert evaluation.status is Status.RUNTIME_ERROR
    assert "FileNotFoundError" in evaluation.message


def test_reference_is_not_in_the_solutions_memory(attack):
    evaluation = attack("""
import sys
modules = list(vars(sys)["modules"].values())
named = [module for module in modules if {"reference", "make_inputs"} & set(vars(module))]
frames, frame = [], None
try:
    raise KeyError
except KeyError as error:
    frame = getattr(error.__traceback__, "tb_" + "frame")
while frame is not None:
    frames += [key for key in getattr(frame, "f_" + "locals") if key in ("oracle", "expected", "secret", "problem")]
    frame = getattr(frame, "f_" + "back")
assert not named and not frames, (named, frames)
""")
    assert evaluation.status is Status.PASSED, evaluation.message


def test_many_evaluations_keep_their_order(bench):
    task = bench.native(TASK, [{"n": 40}])
    good = bench.request(task, HONEST)
    bad_path = bench.folder / "bad.py"
    bad_path.write_text("def run(x):\n    return 1 / 0\n")
    bad = good.model_copy(update={"solution": str(bad_path)})
    statuses = [evaluation.status for evaluation in evaluate_many([good, bad, good], workers=2)]
    assert statuses == [Status.PASSED, Status.RUNTIME_ERROR, Status.PASSED]


def test_python_exception_names_file_and_line(bench):
    evaluation = evaluate(bench.request(bench.native(TASK, [{"n": 40}]), "def run(x):\n    y = x\n    return 1 / 0\n"))
    assert evaluation.status is Status.RUNTIME_ERROR
    assert "solution.py:3: ZeroDivisionError" in evaluation.message


def test_worker_protocol(bench):
    request = bench.request(bench.native(TASK, [{"n": 40}]), "print('hello')\n" + HONEST)
    worker = [sys.executable, "-m", "evaluator"]
    done = subprocess.run(worker, input=request.model_dump_json(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert Evaluation.from_json(done.stdout).status is Status.PASSED
    assert done.stdout.count("\n") == 1
    refused = subprocess.run(worker, input='{"task": 3}', capture_output=True, text=True, timeout=120)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "stdin holds no Request" in refused.stderr


def test_missing_solution_and_task(bench):
    request = bench.request(bench.native(TASK, [{"n": 40}]), HONEST)
    evaluation = evaluate(request.model_copy(update={"solution": str(bench.folder / "nowhere.py")}))
    assert (evaluation.status, "nowhere.py" in evaluation.message) == (Status.RUNTIME_ERROR, True)
    task = request.task.model_copy(update={"path": str(bench.folder / "nowhere.py")})
    evaluation = evaluate(request.model_copy(update={"task": task}))
    assert evaluation.status is Status.UNSUPPORTED
    assert "the task itself cannot be judged" in evaluation.message


def test_python_that_does_not_parse_is_a_compile_error(bench):
    evaluation = evaluate(bench.request(bench.native(TASK, [{"n": 40}]), "def run(x)\n    return x\n"))
    assert evaluation.status is Status.COMPILE_ERROR
    assert "solution.py:1" in evaluation.message
