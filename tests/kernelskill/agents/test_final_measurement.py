"""The last measurement of a run: taken once, on a GPU only, kept in the journal, shown with everything it is about."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from evaluator.statistics import summarise
from evaluator.types import BaselineTime, DeviceSpec, Environment, Evaluation, GpuState, Status
from kernelskill.loop import Loop
from kernelskill.memory.run import Run, RunConfig
from kernelskill.report.live import Silent
from kernelskill.report.summary import print_run, print_summary, report_of

DEVICE = DeviceSpec(
    name="NVIDIA H200", compute_capability=(9, 0), sm_count=132, sm_clock_hz=1.98e9, dram_bytes_per_s=4.8e12,
    fp32_flops_per_s=67e12, l2_bytes=50 << 20, l1_shared_bytes_per_sm=256 << 10, shared_bytes_per_sm=228 << 10,
    shared_bytes_per_block=227 << 10,
)


def evaluation(us, **more):
    return Evaluation(status=Status.PASSED, message="", time=summarise([us, us * 1.01, us * 0.99]), precision_class="fp32",
                      environment=Environment(device="NVIDIA H200", simulated=False, arch="sm_90"), precision_ratio=1.2, **more)


def row(name, us, precision):
    return BaselineTime(name=name, flags="TF32 forbidden", precision_class=precision, time=summarise([us] * 3),
                        solution_time=summarise([50.0] * 3))


FINAL = evaluation(
    50.0, gpu_states=(GpuState(name="H200"), GpuState(name="H200", throttle_reasons=("power_cap",))),
    baselines=(row("torch_eager", 200.0, "fp32"), row("torch_compile_tf32", 60.0, "tf32"), row("naive_start", 500.0, "fp32"),
               BaselineTime(name="torch_compile", flags="", reason="it cannot be compiled: no gcc")),
)


class Reviewer:
    """Answers with the recorded final measurement; counts how often it is asked."""

    def __init__(self):
        self.asked = []

    def compare(self, solution, start, baselines):
        self.asked.append((solution.read_text(), start.read_text(), baselines))
        return FINAL


@pytest.fixture
def run(tmp_path):
    task = tmp_path / "task.py"
    task.write_text("pass\n")

    def make(baselines=("torch_eager", "naive_start")):
        config = RunConfig(task="task.py", task_copy="task/task.py", mode="cuda", device=DEVICE, rounds=1, writer="template",
                           timeout_s=10, versions={}, baselines=baselines)
        made = Run.create(tmp_path / "run", config, task)
        made.keep_start(made.keep_source("start = 1\n"), evaluation(510.0))
        made.finish("budget_exhausted")
        return made
    return make


def finished(run, reviewer):
    loop = Loop(run, None, None, SimpleNamespace(reviewer=reviewer), Silent())
    assert loop.optimise() == "budget_exhausted"


def test_the_winner_is_measured_once_and_read_back(run):
    made, reviewer = run(), Reviewer()
    finished(made, reviewer)
    again = Run.open(made.folder)
    finished(again, reviewer)
    assert reviewer.asked == [("start = 1\n", "start = 1\n", ("torch_eager", "naive_start"))]
    assert again.final == (made.graph.best, FINAL)
    assert [json.loads(line)["event"] for line in made.journal.path.read_text().splitlines()][-1] == "final"


def test_without_baselines_nothing_is_measured(run):
    reviewer = Reviewer()
    finished(run(baselines=()), reviewer)
    assert reviewer.asked == []


def test_the_report_names_baseline_precision_card_and_spread(run, capsys):
    made = run()
    finished(made, Reviewer())
    report = report_of(made)
    assert json.loads(json.dumps(report))["final"]["best_torch"] == "torch_eager"
    assert report["final"]["speedup_over_best_torch"] == {"ratio": 4.0, "low": 4.0, "high": 4.0}
    assert report["final"]["held_back"] == ["power_cap"]
    assert [row["reason"] for row in report["final"]["baselines"]][-1] == "it cannot be compiled: no gcc"
    print_summary(made, report)
    text = capsys.readouterr().out
    assert ("4.00× (4.00 to 4.00) over torch_eager (fp32), the fastest torch at this precision or better; fp32, measured on "
            "NVIDIA H200") in text
    assert "the card was held back meanwhile (power_cap)" in text
    assert "torch_compile_tf32" in text and "1.20×" in text and "no gcc" in text
    print_run(made)
    assert "measured again on fresh samples: 50.0 µs" in capsys.readouterr().out
