"""A decision that fails ends the run with one message that says how to go on; the run resumes."""

import json
import shutil

from kernelskill.policy import isolated

CRASHES = """
import os, signal, sys
from kernelskill.policy.isolated import _read, _write
_read(sys.stdin.buffer)
_write(sys.stdout.buffer, "ready")
_read(sys.stdin.buffer)
os.kill(os.getpid(), signal.SIGSEGV)
"""


def test_a_native_crash_costs_one_decision_and_the_run_goes_on(kernelskill, tmp_path, monkeypatch):
    task, run = shutil.copytree("examples/row_sum", tmp_path / "task"), tmp_path / "run"
    (task / "task.toml").write_text((task / "task.toml").read_text().replace("8192", "256").replace("4096", "256"))
    with monkeypatch.context() as patch:
        patch.setattr(isolated, "_CHILD", CRASHES)
        said = kernelskill("optimize", task, "--device", "sim", "--rounds", 1, "--out", run, expect=1)
    assert f"error: {run}: round 1 has no decision: the rule engine crashed (SIGSEGV) while deciding\n" in said.err
    assert f"go on with: kernelskill optimize --resume {run}" in said.err and "Traceback" not in said.err
    events = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == ["run_started", "start", "undecided"]
    assert events[-1]["round"] == 1 and events[-1]["facts"]["task_family"]["provenance"] == "task"
    report = kernelskill("optimize", "--resume", run, "--json").json
    assert report["rounds"] == 1 and report["status"] == "PASSED"
    assert kernelskill("replay", run, "--json").json["identical"] is True
