"""Signals to a command over many tasks leave no process of it running: what it does catches some, its workers see the rest."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SECONDS = 300
"""Bound of every wait here; none is expected to take more than a few."""
ENDLESS = """
import time
import numpy as np
NAME = "endless"
FAMILY = "elementwise"
OPERATION = "-x"
ARGUMENTS = {"inputs": {"x": ["n"]}, "output": "y", "shape": ["n"]}
SIZES = {"n": 64}
CHECK_SIZES = [{"n": 7}, {"n": 8}, {"n": 64}]
def make_inputs(rng, n):
    time.sleep(600 * (n == 64))
    return {"x": rng.standard_normal(n, dtype=np.float32)}
def reference(x):
    return -x
def run(x):
    return -x
"""


@pytest.fixture
def started(tmp_path):
    """Starts a command over two tasks that never end, and waits until one of its processes has been asleep in a task."""
    (tmp_path / "tasks").mkdir()
    for name in "ab":
        (tmp_path / "tasks" / f"{name}.py").write_text(ENDLESS)
    processes = []

    def start(*words, at_work) -> tuple[subprocess.Popen, set[int]]:
        process = subprocess.Popen(
            [sys.executable, "-m", "kernelskill", *map(str, words)], cwd=ROOT, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        processes.append(process)
        waited(lambda: len(at_work(descendants(process.pid))) > 0, process)
        return process, descendants(process.pid)

    yield start
    for process in processes:
        for pid in (process.pid, *descendants(process.pid)):
            kill(pid)
        process.communicate()


def kill(pid) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def waited(condition, process=None) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        assert process is None or process.poll() is None, f"the command ended by itself: {process.stderr.read().decode()}"
        time.sleep(0.05)


def fields(pid) -> list[str]:
    """State, parent, ... of a process; nothing where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants(root: int) -> set[int]:
    parents = {int(entry.name): fields(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    found, fresh = set(), {root}
    while fresh:
        fresh = {pid for pid, stat in parents.items() if stat and int(stat[1]) in fresh} - found
        found |= fresh
    return found


def alive(pids) -> set[int]:
    return {pid for pid in pids if (stat := fields(pid)) and stat[0] != "Z"}


def command_lines(pids, text) -> set[int]:
    def line(pid) -> str:
        try:
            return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            return ""

    return {pid for pid in pids if text in line(pid)}


def linting(pids) -> set[int]:
    """Forks of the lint's process: those whose parent is one as well."""
    servers = command_lines(pids, "evaluator.lint")
    return {pid for pid in servers if (stat := fields(pid)) and int(stat[1]) in servers}


def judging(pids) -> set[int]:
    return command_lines(pids, "-m evaluator ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_lint_that_is_stopped_leaves_nothing(started, tmp_path, number):
    out = tmp_path / "lint.jsonl"
    process, before = started("task", "check", tmp_path / "tasks", "--device", "sim", "--workers", 2, "--out", out,
                              at_work=linting)
    process.send_signal(number)
    error = process.communicate(timeout=SECONDS)[1].decode()
    waited(lambda: not alive(before))
    if number != signal.SIGKILL:
        assert process.returncode == 130
        assert f"interrupted; what is done is in {out}" in " ".join(error.split())


def test_a_bench_that_is_stopped_leaves_nothing_and_says_how_to_go_on(started, tmp_path):
    process, before = started("bench", tmp_path / "tasks", "--device", "sim", "--no-lint", "--out", tmp_path / "bench",
                              at_work=judging)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=SECONDS)[1].decode()
    waited(lambda: not alive(before))
    assert process.returncode == 130 and f"--resume {tmp_path / 'bench'}" in error
