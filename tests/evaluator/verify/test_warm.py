"""The warm process: verdicts as from a fresh process, nothing of one evaluation in the next, killed and lost ones replaced."""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from evaluator import warm
from evaluator.types import Evaluation, Status

TASK = """
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32)}
def reference(x):
    return 2 * x
"""
DOUBLE = """
import json
import os
import cupy as cp
module = cp.RawModule(code='''
extern "C" __global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}''', backend="nvrtc")
assert not hasattr(json, "mark"), "another evaluation left something"
json.mark = 1
def run(x):
    n = x.size
    y = cp.empty(n, dtype=cp.float32)
    module.get_function("twice")(((n + 127) // 128,), (128,), (x, y, cp.int32(n)))
    return y
"""


@pytest.fixture(scope="module", autouse=True)
def _ended():
    yield
    warm.close_all()


@pytest.fixture
def ask(bench, tmp_path):
    """Judges a solution in the given warm process."""
    def call(process: warm.WarmProcess, solution: str = DOUBLE, seconds: float = 100):
        request = bench.request(bench.native(TASK, [{"n": 5}, {"n": 130}]), solution)
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        return process.judge(request.model_dump_json().encode(), home, ("rlimits",), seconds)

    return call


def verdict(ended) -> Evaluation:
    code, out, err = ended
    assert code == 0, err
    return Evaluation.from_json(out)


def test_evaluations_follow_each_other_without_a_trace(ask):
    with warm.warm_process() as process:
        first, second = verdict(ask(process)), verdict(ask(process))
    assert first.status is second.status is Status.PASSED, first.message + second.message
    with warm.warm_process() as again:
        assert again is process
        wrong = verdict(ask(again, DOUBLE.replace("2.0f", "3.0f")))
    assert wrong.status is Status.INCORRECT_NUMERICAL


def test_one_that_hangs_is_killed_and_the_next_is_judged(ask):
    with warm.warm_process() as process:
        assert ask(process, "while True: pass\n", seconds=3) is None
        assert verdict(ask(process)).status is Status.PASSED


def test_a_request_that_cannot_be_read_is_told_as_by_the_command(tmp_path):
    with warm.warm_process() as process:
        code, out, err = process.judge(b"{}", tmp_path, ("rlimits",), 60)
    assert (code, out) == (2, b"") and b"stdin holds no Request" in err


def test_a_server_that_was_lost_is_not_used_again(tmp_path):
    warm.close_all()
    with pytest.raises(OSError), warm.warm_process() as process:
        os.kill(process._process.pid, signal.SIGKILL)
        process._process.wait()
        process.judge(b"{}", tmp_path, ("rlimits",), 60)
    with warm.warm_process() as other:
        assert other is not process


def test_a_judge_ends_with_its_server(ask):
    """An interrupted caller kills the server; what it was judging must leave the GPU."""
    with pytest.raises(KeyboardInterrupt), warm.warm_process() as process:
        def asked():
            with contextlib.suppress(OSError, ValueError):
                ask(process, "from time import sleep\nsleep(600)\n" + DOUBLE)

        thread = threading.Thread(target=asked, daemon=True)
        thread.start()
        judges = _children(process._process.pid)
        raise KeyboardInterrupt
    deadline = time.monotonic() + 20
    while any(_alive(pid) for pid in judges) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert judges and not any(_alive(pid) for pid in judges)
    thread.join(20)


def _children(pid: int) -> list[int]:
    """Waits for the first process that it forks, and for what that one forks."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        inner = [int(c) for child in found for c in Path(f"/proc/{child}/task/{child}/children").read_text().split()]
        if inner:
            return found + inner
        time.sleep(0.05)
    return []


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
