from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from kernelskill.cli import group

GUARDS = Path(__file__).resolve().parents[2] / "guards"
SOLUTION, TASK = GUARDS / "cheats" / "calls_matmul.py", GUARDS / "tasks" / "linear.py"
CALL = ["evaluate", str(SOLUTION), "--task", str(TASK), "--device", "sim"]


def test_a_name_that_is_no_operators_is_refused_before_anything_runs():
    done = CliRunner().invoke(group, [*CALL, "--allow-library", "conv,Mat Mul"])
    assert "--allow-library: 'Mat Mul' is no operator's name" in str(done.exception)


def test_what_is_allowed_stays_and_the_rest_is_named():
    done = CliRunner().invoke(group, [*CALL, "--allow-library", "matmul", "--timeout", "120"])
    assert done.exit_code == 1
    assert "torch.add computes outside the solution's own kernels" in done.output
    assert "--allow-library add" in " ".join(done.output.split())
