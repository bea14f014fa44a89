"""The warm process: verdicts as from a fresh process, nothing of one evaluation in the next, killed and lost ones replaced."""

import os
import signal

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
