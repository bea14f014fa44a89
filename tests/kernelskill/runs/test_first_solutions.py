"""A torch task without a start: the writer is asked for one, it is mended until it passes, then rules choose methods."""

import pytest

from kernelskill import assembly
from kernelskill.report.asked import prompt_of
from kernelskill.report.turn import turn_lines, turn_of

CUMSUM = """
import torch
from torch import nn

N = 256
M = 64
CHECK_SIZES = [{"N": 8, "M": 4}]


class Model(nn.Module):
    def forward(self, x):
        return torch.cumsum(x.double(), dim=1).float()


def get_inputs():
    return [torch.rand(M, N)]


def get_init_inputs():
    return []
"""
SOLUTION = '''
import cupy
import torch

SCAN = cupy.RawModule(code=r"""
extern "C" __global__ void scan(const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int c = 0; c < cols; c++) { sum += x[row * cols + c]; y[row * cols + c] = sum; }
}
""").get_function("scan")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        rows, cols = x.shape
        SCAN(((rows + 63) // 64,), (64,), (x.data_ptr(), y.data_ptr(), cupy.int32(rows), cupy.int32(cols)))
        return y
'''


@pytest.fixture
def torch_session(session, tmp_path):
    (tmp_path / "cumsum.py").write_text(CUMSUM)
    assembly.create_run(tmp_path / "cumsum.py", assembly.Options(rounds=2, device="sim", writer="handoff", seeds=1),
                        session.folder)
    session.go_on()
    return session


def test_it_is_written_mended_and_optimised_by_request(torch_session):
    session = torch_session
    first = session.entry
    assert first.posted.request.role == "generator" and not (first.folder / "parent.py").exists()
    assert "ModelNew" in (first.folder / "request.md").read_text()

    session.answer(SOLUTION.replace("sum += x", "sum -= x"))
    turn = turn_of(session.go_on())
    verdict, = turn["verdicts"]
    assert (verdict["role"], verdict["outcome"], verdict["status"]) == ("generator", "failed", "INCORRECT_NUMERICAL")
    assert "first solution 1: failed" in "\n".join(turn_lines(turn))
    mend = session.entry
    assert mend.posted.request.role == "repairer" and mend.posted.request.failure.kind == "numerical"
    assert (mend.folder / "failed.py").read_text() == SOLUTION.replace("sum += x", "sum -= x")

    session.answer(f"Here is the mended module:\n\n```python\n{SOLUTION}```\n")
    turn = turn_of(session.go_on())
    assert [(v["role"], v["repair"], v["outcome"]) for v in turn["verdicts"]] == [("generator", 1, "started")]
    assert turn["state"] == "waiting" and turn["request"]["role"] == "optimizer"
    assert session.run.graph.start and session.entry.posted.request.source.strip() == SOLUTION.strip()

    sent = [(session.folder / "requests" / f"{number:03}" / "request.md").read_text() for number in (1, 2, 3)]
    shown = [prompt_of(session.folder, first=1), prompt_of(session.folder, first=1, repair=1), prompt_of(session.folder, 1)]
    assert shown == sent
