"""The program of a counterexample shows the fault by itself, and shows none where the solution is mended."""

from __future__ import annotations

import runpy
import sys

import pytest
from check_bench import H200, verdict

from benchmarks.check_quality.kernels import elementwise
from evaluator.simulator import standin

GOOD = "if (i < n) y[i] = 2.f * x[i] + 1.f;"
CACHED = """
OUTPUTS = {}


def run(x):
    if x.shape not in OUTPUTS:
        OUTPUTS[x.shape] = computed(x)
    return OUTPUTS[x.shape]
"""
FAULTS = {
    "agreement": elementwise("if (i < n) y[i] = i == 70 ? 0.f : 2.f * x[i] + 1.f;"),
    "calls": elementwise(GOOD).replace("def run(x)", "def computed(x)") + CACHED,
}


@pytest.fixture
def simulated_cupy():
    standin.install(standin.Session(device=H200))
    yield
    standin.uninstall()


def exit_code(program: str, solution: str, tmp_path, monkeypatch) -> int:
    path, other = tmp_path / "program.py", tmp_path / "other.py"
    path.write_text(program)
    other.write_text(solution)
    monkeypatch.setattr(sys, "argv", [str(path), str(other)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    return int(ended.value.code)


@pytest.mark.parametrize("name", FAULTS)
def test_the_program_shows_the_fault_and_passes_a_right_solution(checks, name, tmp_path, monkeypatch, capsys, simulated_cupy):
    report = checks.check("scale", FAULTS[name], examples=2)
    found = verdict(report, name)
    assert found.outcome == "violated", [v for v in report.verdicts if v.outcome == "violated"]
    program = found.counterexample.reproduction
    assert "evaluator" not in program and "kernelskill" not in program
    assert exit_code(program, FAULTS[name], tmp_path, monkeypatch) == 1
    assert "are wrong; first at" in capsys.readouterr().out
    assert exit_code(program, elementwise(GOOD), tmp_path, monkeypatch) == 0
