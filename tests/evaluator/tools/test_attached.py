"""A solution's process under a tool answers like a runner; a tool that fails or hangs costs nothing else."""

import os
import stat
import sys
import time
from pathlib import Path

import pytest

from evaluator import ncu
from evaluator.attached import Attached, ToolFailed
from evaluator.conditions import Conditions
from evaluator.inputs import TASK, Case
from evaluator.oracle import load_oracle

REFERENCE = """
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n).astype(np.float32)}

def reference(x):
    return 2 * x
"""
SOLUTION = '''
import cupy as cp
K = cp.RawKernel(r"""extern "C" __global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2.0f * x[i]; }""", "twice")

def run(x):
    y = cp.empty_like(x)
    K((-(-x.size // 64),), (64,), (x, y, cp.int32(x.size)))
    return y
'''


@pytest.fixture
def request_and_problem(bench):
    task = bench.native(REFERENCE, [{"n": 100}])
    request = bench.request(task, SOLUTION)
    return request, load_oracle(task).problem(Case({"n": 100}, TASK, 1))


def program(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def soon() -> float:
    return time.monotonic() + 60


def test_under_a_tool_a_solution_answers_as_to_any_judge(request_and_problem, tmp_path):
    request, problem = request_and_problem
    tool = program(tmp_path, "tool", 'echo "tool says $1"; shift; exec "$@"\n')
    with Attached([tool, "hello"], request, soon()) as target:
        target.prepare(problem)
        reply = target.ask("call", dict(problem.inputs), how="fresh", sizes={"n": 100}, keep_inputs=False,
                           conditions=Conditions().model_dump())
        assert (reply["data"]["result"].values == 2 * problem.inputs["x"].values).all()
        assert target.finish() == 0
        assert "tool says hello" in target.printed()
        folder = target.folder
    assert not folder.exists()


@pytest.mark.parametrize(("text", "message"), [
    ('echo "cannot open the device" >&2; exit 3\n', "tool started nothing: cannot open the device"),
    ("exec sleep 60\n", "tool did not start in time")])
def test_a_tool_that_starts_nothing_is_told(request_and_problem, tmp_path, text, message):
    request, problem = request_and_problem
    tool = program(tmp_path, "tool", text)
    with Attached([tool], request, time.monotonic() + 2) as target, pytest.raises(ToolFailed, match=message):
        target.prepare(problem)


def test_a_solution_that_dies_under_the_tool_is_told_with_its_last_words(bench, request_and_problem):
    request, problem = request_and_problem
    Path(request.solution).write_text("import os, sys\nprint('last words', flush=True)\nos._exit(4)\n")
    with Attached([], request, soon()) as target, pytest.raises(ToolFailed, match=r"(?s)ended: .*last words"):
        target.prepare(problem)


def test_what_hangs_under_the_tool_is_ended_with_it(request_and_problem):
    request, problem = request_and_problem
    Path(request.solution).write_text("import time\ntime.sleep(600)\n")
    with Attached([sys.executable, "-c", "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"], request, soon()) as target:
        target.ask("sources")  # it has started, however long that took
        target._channel.deadline = time.monotonic() + 1
        with pytest.raises(ToolFailed, match="did not finish in time"):
            target.prepare(problem)
        pid = target._peer
        assert pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_forbidden_counters_cost_the_counters_only(request_and_problem, tmp_path, monkeypatch):
    request, problem = request_and_problem
    refused = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"
    program(tmp_path, "ncu", f'echo "{refused}"; exit 1\n')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    request = request.model_copy(update={"counters": ("dram__bytes.sum",)})
    with ncu.start(request, ["twice"], soon()) as target, pytest.raises(ToolFailed, match="forbidden here: ERR_NVGPUCTRPERM"):
        ncu.measure(target, problem)


def test_a_machine_without_ncu_is_told_so(request_and_problem, monkeypatch):
    request, _ = request_and_problem
    monkeypatch.setattr(ncu, "find_ncu", lambda: None)
    with pytest.raises(ToolFailed, match="ncu is not installed here: install Nsight Compute"):
        ncu.start(request, ["twice"], soon())
