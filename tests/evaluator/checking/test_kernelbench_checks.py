"""A KernelBench solution is checked on other shapes of its problem, and its counterexample is a program of torch alone."""

from __future__ import annotations

import runpy
import sys

import pytest
from check_bench import H200, verdict

from evaluator.checking.checker import check_here
from evaluator.checking.types import CheckRequest
from evaluator.simulator import standin
from evaluator.types import Request, TaskSpec

PROBLEM = """
import torch
import torch.nn as nn

rows = 17
cols = 34


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))

    def forward(self, x):
        return x * self.weight


def get_inputs():
    return [torch.rand(rows, cols)]


def get_init_inputs():
    return [cols]
"""
SOLUTION = '''
import cupy
import numpy as np
import torch

CODE = r"""
extern "C" __global__ void scale(const float* x, const float* w, float* y, int cols) {
  for (int c = threadIdx.x; c < cols / 2 * 2; c += 64) y[blockIdx.x * cols + c] = x[blockIdx.x * cols + c] * w[c];
}
"""
kernel = cupy.RawKernel(CODE, "scale")


class ModelNew(torch.nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(cols))

    def forward(self, x):
        y = torch.empty_like(x)
        kernel((x.shape[0],), (64,), (x.data_ptr(), self.weight.data_ptr(), y.data_ptr(), np.int32(x.shape[1])))
        return y
'''


def test_odd_columns_of_a_kernelbench_problem(tmp_path, monkeypatch, capsys):
    problem, solution, program = (tmp_path / name for name in ("problem.py", "solution.py", "program.py"))
    problem.write_text(PROBLEM)
    solution.write_text(SOLUTION)
    spec = TaskSpec(name="scale", kind="kernelbench", path=str(problem), sizes={"rows": 17, "cols": 34},
                    check_sizes=({"rows": 2, "cols": 32}, {"rows": 4, "cols": 16}))
    request = Request(task=spec, solution=str(solution), device=H200, timeout_s=600, seed=0)
    report = check_here(CheckRequest(request=request, examples=1, work_limit=512, cost=1.5))
    found = verdict(report, "written").counterexample
    assert report.outcome == "failed" and found.example.sizes == {"rows": 1, "cols": 1}
    assert found.inputs == ("x: float32[1, 1]",)
    program.write_text(found.reproduction)
    monkeypatch.setattr(sys, "argv", [str(program), str(solution)])
    standin.install(standin.Session(device=H200))
    try:
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(program), run_name="__main__")
    finally:
        standin.uninstall()
    assert ended.value.code == 1 and "1 of 1 elements are wrong" in capsys.readouterr().out
