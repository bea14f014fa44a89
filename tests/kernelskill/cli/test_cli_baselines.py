"""What can be asked about baselines and precision, and how a wrong question is answered."""

import shutil

import pytest


@pytest.fixture
def small(tmp_path):
    """Row sums of a size that is simulated at once."""
    task = shutil.copytree("examples/row_sum", tmp_path / "task")
    (task / "task.toml").write_text((task / "task.toml").read_text().replace("8192", "256").replace("4096", "256"))
    return task


def test_baselines_are_refused_without_a_gpu(kernelskill, small, tmp_path):
    said = kernelskill("optimize", small, "--device", "sim", "--baselines", "all", "--out", tmp_path / "run", expect=2)
    assert "error: --baselines: baselines are measured on a GPU, and this is the simulator\n" in said.err
    assert not (tmp_path / "run").exists()


def test_an_unknown_baseline_is_answered_with_those_there_are(kernelskill, small, tmp_path):
    said = kernelskill("optimize", small, "--device", "sim", "--baselines", "eagre",
                       "--out", tmp_path / "run", expect=2)
    assert "error: --baselines: no baseline is called 'eagre'; there are: torch_eager, " in said.err


def test_a_native_task_has_no_torch_baseline(kernelskill, small):
    said = kernelskill("evaluate", "benchmarks/results/solutions/row_sum/best.py", "--task", small, "--device", "sim",
                       "--baselines", "compile", expect=2)
    assert "torch_compile runs a PyTorch reference, and the task has none" in said.err


def test_an_unknown_precision_class_is_refused(kernelskill, small, tmp_path):
    said = kernelskill("optimize", small, "--device", "sim", "--allow", "tf23", "--out", tmp_path / "run", expect=2)
    assert "error: --allow: no precision class is called 'tf23' (there are: tf32, bf16, fp16)\n" in said.err


def test_every_speedup_says_what_it_is_over_how_precise_and_where(kernelskill, small, tmp_path):
    run = tmp_path / "run"
    report = kernelskill("optimize", small, "--device", "sim", "--rounds", 1, "--allow", "tf32", "--out", run, "--json").json
    assert report["precision_class"] == "fp32" and report["speedup_over"] == "start"
    assert report["speedup_interval"] is None and report["final"] is None
    shown = kernelskill("show", run).out
    assert f"{report['speedup']:.2f}× over the start; fp32, modelled for NVIDIA H200" in shown
    evaluated = kernelskill("evaluate", run / "best.py", "--task", small, "--device", "sim").out
    assert "precision fp32: its error is " in evaluated
