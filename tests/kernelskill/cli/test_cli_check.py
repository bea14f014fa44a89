"""`kernelskill check` and the pytest fixture, as a kernel's author meets them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernelskill import checking
from kernelskill.cli import group
from kernelskill.errors import KernelSkillError

ROOT = Path(__file__).resolve().parents[3]
KERNEL = '''
import cupy as cp
import numpy as np

NAME = "scale"
SIZES = {"n": 600}
CHECK_SIZES = [{"n": 64}]


def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32)}


def reference(x):
    return 2 * x + 1


kernel = cp.RawKernel(r"""extern "C" __global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 4 * 4) y[i] = 2.f * x[i] + 1.f;
}""", "k")


def run(x):
    y = cp.empty_like(x)
    kernel(((x.size + 127) // 128,), (128,), (x, y, np.int32(x.size)))
    return y
'''


def test_one_file_is_task_and_solution_and_the_fault_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("scale.py").write_text(KERNEL)
    command = ["check", "scale.py", "--task", "scale.py", "--device", "sim", "--examples", "1"]
    done = CliRunner().invoke(group, command)
    assert done.exit_code == 1, done.output
    assert "VIOLATED    every output element written" in done.output
    assert "smallest example  n=1; task values, seed 0" in done.output
    assert "run it:  python checks/scale/written.py" in done.output
    compile(Path("checks/scale/written.py").read_text(), "written.py", "exec")
    report = json.loads(Path("checks/scale/report.json").read_text())
    assert report["outcome"] == "failed"
    assert {"n": 1} in [example["sizes"] for example in json.loads(Path("checks/scale/failed_before.json").read_text())]


def test_what_failed_before_and_cannot_be_read_is_named(tmp_path):
    (tmp_path / "scale.py").write_text(KERNEL)
    (tmp_path / checking.KNOWN).write_text("[{}]")
    with pytest.raises(KernelSkillError, match=r"failed_before\.json cannot be read: .*\n.*another folder with --out"):
        checking.check(tmp_path / "scale.py", tmp_path / "scale.py", device=None, mode="sim", folder=tmp_path)  # type: ignore[arg-type]


def test_one_line_in_a_test_suite_fails_with_the_counterexample(tmp_path):
    (tmp_path / "scale.py").write_text(KERNEL)
    (tmp_path / "test_scale.py").write_text(
        'def test_scale(check_kernel):\n    check_kernel("scale.py", task="scale.py", device="sim", examples=1)\n\n\n'
        'def test_gone(check_kernel):\n    check_kernel("gone.py", task="scale.py")\n')
    plugins = ["-p", "kernelskill.pytest_plugin", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, "test_scale.py"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "2 failed" in done.stdout, done.stdout
    assert "smallest example  n=1" in done.stdout and "no such file: gone.py" in done.stdout
    assert "Traceback" not in done.stdout and "evaluator/" not in done.stdout
