"""Logs of compute-sanitizer 2025.3 on an H200, of kernels with one planted fault each."""

import sys
import time
from pathlib import Path

import pytest

from evaluator.oracle import load_oracle
from evaluator.sanitizer import check, findings_in
from evaluator.types import Request, TaskSpec
from kernelskill.facts.device import load_device

RECORDED = Path(__file__).parent / "recorded"


def findings(name, own=None):
    return findings_in((RECORDED / f"{name}.txt").read_text(), name.split("_")[0], own)


@pytest.mark.parametrize(("name", "kind", "kernel", "line"), [
    ("memcheck_oob", "out_of_bounds", "oob", 5), ("memcheck_misaligned", "out_of_bounds", "misaligned", 9),
    ("memcheck_oob_shared", "out_of_bounds", "oob_shared", 35), ("racecheck_race", "shared_race", "race", 15),
    ("initcheck_uninit", "uninitialised_global", "uninit", 19), ("synccheck_sync", "divergent_barrier", "sync", 29)])
def test_a_fault_becomes_one_finding_with_kernel_and_line(name, kind, kernel, line):
    (only,) = findings(name)
    assert (only.kind, only.kernel, only.line, only.severity) == (kind, kernel, line, "error")
    assert ".cubin" not in only.message


def test_the_first_thread_is_named_and_how_often_it_was_seen():
    (only,) = findings("memcheck_oob")
    assert (only.block, only.thread) == ((2, 0, 0), (0, 0, 0))
    assert only.message == (
        "Invalid __global__ write of size 4 bytes at oob+0xc0 at CUDA line 5 by thread (0,0,0) in block (2,0,0) Access to "
        "0x7f90ca800400 is out of bounds and is 1 bytes after the nearest allocation at 0x7f90ca800200 of size 512 bytes "
        "(compute-sanitizer memcheck), 2 times")


def test_both_accesses_of_a_race_are_in_its_message():
    (only,) = findings("racecheck_race")
    assert ("Write access at race+0xe0 at CUDA line 14 and Read access at race+0xf0 at CUDA line 15 [256 hazards]"
            in only.message)


@pytest.mark.parametrize("name", ["memcheck_clean", "racecheck_clean", "initcheck_uninit_shared"])
def test_a_clean_log_gives_nothing(name):
    assert findings(name) == []


def test_findings_in_a_librarys_kernel_are_left_out():
    assert findings("memcheck_oob", {"softmax"}) == []
    assert len(findings("memcheck_oob", {"oob", "softmax"})) == 1


def test_misaligned_accesses_have_a_kind_of_their_own_and_warnings_stay_warnings():
    misaligned = ("========= Invalid __global__ read of size 16 bytes\n=========     at k+0x70 in a.cu:9\n"
                  "=========     by thread (1,0,0) in block (0,0,0)\n=========     Access to 0x7efbea800104 is misaligned\n")
    assert [f.kind for f in findings_in(misaligned, "memcheck")] == ["misaligned"]
    warning = ("========= Warning: Race reported between Write access at k+0xe0 in a.cu:14\n"
               "=========     and Write access at k+0xf0 in a.cu:15 [4 hazards]\n")
    assert [(f.kind, f.severity) for f in findings_in(warning, "racecheck")] == [("shared_race", "warning")]


def test_a_tool_that_says_nothing_is_no_all_clear(bench, tmp_path, monkeypatch):
    """A program that only starts what it is given: the simulator's process answers, and no log is written."""
    reference = "def make_inputs(rng, n):\n    return {'x': rng.standard_normal(n)}\n\ndef reference(x):\n    return x\n"
    task = bench.native(reference, [{"n": 4}])
    request = bench.request(task, "import cupy as cp\ndef run(x):\n    return x.copy()\n")
    silent = tmp_path / "compute-sanitizer"
    silent.write_text(f'#!/bin/sh\nwhile [ "$1" != {sys.executable} ]; do shift; done\nexec "$@"\n')
    silent.chmod(0o755)
    monkeypatch.setattr("evaluator.sanitizer.find_sanitizer", lambda: str(silent))
    checked = check(request.model_copy(update={"sanitize": ("memcheck",)}), load_oracle(task), ["k"], time.monotonic() + 60)
    assert checked.unavailable == "memcheck: it ended without a summary, so it may have watched nothing"


def test_a_machine_without_the_sanitizer_is_told_so(monkeypatch):
    monkeypatch.setattr("evaluator.sanitizer.find_sanitizer", lambda: None)
    task = TaskSpec(name="t", kind="native", path="reference.py", sizes={"n": 1}, check_sizes=({"n": 1},))
    request = Request(task=task, solution="s.py", mode="cuda", device=load_device("h200"), sanitize=("memcheck",))
    checked = check(request, None, ["k"], 0.0)
    assert (checked.findings, checked.unavailable) == ([], "compute-sanitizer is not installed here: install the CUDA toolkit")
