"""Kill a run at any moment: it resumes, having lost at most the evaluation in flight, and ends as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time

import pytest
from command import ROOT, Command

TASK = "examples/row_sum"
ROUNDS = "3"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return outcome(
        Command(
            "optimize",
            TASK,
            "--device",
            "sim",
            "--rounds",
            ROUNDS,
            "--out",
            tmp_path_factory.mktemp("undisturbed") / "run",
            "--json",
        ).json
    )


def outcome(report):
    return {key: report[key] for key in ("status", "rounds", "methods", "best_time_us", "speedup", "stop_reason")}


@pytest.mark.parametrize("lines", [2, 5])
def test_a_killed_run_resumes(kernelskill, undisturbed, tmp_path, lines):
    folder = tmp_path / "run"
    call = [sys.executable, "-m", "kernelskill", "optimize", TASK, "--device", "sim", "--rounds", ROUNDS, "--out", str(folder)]
    process = subprocess.Popen(call, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    journal = folder / "journal.jsonl"
    whole = folder / "run.json"  # written last: before it there is no run to go on with
    while process.poll() is None and not (whole.exists() and journal.read_bytes().count(b"\n") >= lines):
        time.sleep(0.005)
    assert process.poll() is None, "the run ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = journal.read_bytes().split(b"\n")[:-1]
    report = kernelskill("optimize", "--resume", folder, "--json").json
    assert outcome(report) == undisturbed
    assert journal.read_bytes().split(b"\n")[: len(kept)] == kept
    rounds = [row["round"] for row in kernelskill("show", folder, "--json").json["attempts"]]
    assert rounds == list(range(1, len(rounds) + 1))


def test_a_torn_last_line_does_not_stop_a_resume(kernelskill, undisturbed, tmp_path):
    folder = tmp_path / "run"
    kernelskill("optimize", TASK, "--device", "sim", "--rounds", ROUNDS, "--out", folder)
    journal = folder / "journal.jsonl"
    lines = journal.read_bytes().split(b"\n")
    journal.write_bytes(b"\n".join(lines[:5]) + b"\n" + lines[5][:40])
    assert outcome(kernelskill("optimize", "--resume", folder, "--json").json) == undisturbed


def test_interrupting_says_how_to_go_on(tmp_path):
    folder = tmp_path / "run"
    call = [sys.executable, "-m", "kernelskill", "optimize", TASK, "--device", "sim", "--out", str(folder)]
    # A shell's background jobs ignore the interrupt and so would their children.
    process = subprocess.Popen(call, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    while not (folder / "run.json").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"--resume {folder}" in err
    assert "Traceback" not in err


def test_two_processes_do_not_work_on_one_run(kernelskill, tmp_path):
    folder = tmp_path / "run"
    call = [sys.executable, "-m", "kernelskill", "optimize", TASK, "--device", "sim", "--rounds", "2", "--out", str(folder)]
    process = subprocess.Popen(call, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal = folder / "journal.jsonl"
    while not (journal.exists() and journal.read_bytes().count(b"\n") >= 2):
        time.sleep(0.005)
    assert "another process is working on this run" in kernelskill("optimize", "--resume", folder, expect=2).err
    assert process.wait() == 0
    assert [row["round"] for row in kernelskill("show", folder, "--json").json["attempts"]] == [1, 2]
