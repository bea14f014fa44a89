"""The recorded proof of `kernelskill check` and the session on its page are of the present kernels and hold what is claimed."""

from __future__ import annotations

import json
import time

import pytest

from benchmarks.check_quality.corpus import HONEST, PLANTED, entries
from benchmarks.check_quality.rows import RATIO, SECONDS, record, summary
from benchmarks.check_quality.session import KERNEL, MENDED, PAGE, RECORD, WRONG, figures, mended
from evaluator.checking.checker import check_here
from evaluator.checking.lab import Lab
from evaluator.checking.text import counterexample_lines
from evaluator.checking.types import CheckRequest
from evaluator.types import Request
from evaluator.worker import preload
from kernelskill.facts.device import load_device
from kernelskill.tasks import load_task

RECORDED = json.loads(RECORD.read_text(encoding="utf-8"))


def test_the_corpus_is_as_large_as_asked_and_no_kernel_is_in_it_twice():
    assert len(PLANTED) >= 60 and len(HONEST) >= 60 - 12
    texts = [(kernel.task, kernel.source) for kernel in (*PLANTED, *HONEST)]
    assert len(set(texts)) == len(texts), "a planted fault that changes nothing is a right kernel"
    assert all(kernel.properties and kernel.minimal for kernel in PLANTED)


def test_every_kernel_has_a_row_that_is_of_its_present_text(tmp_path):
    rows = {(kind, row["kernel"]): row["digest"] for kind in ("planted", "honest") for row in RECORDED[kind]}
    assert rows == {(entry.kind, entry.name): entry.digest for entry in entries(tmp_path)}


def test_the_recorded_thresholds_are_met():
    said = RECORDED["summary"]
    assert said["found"] / said["planted"] >= 0.98 and said["median_ratio"] <= RATIO, said["missed"]
    assert said["honest"] >= 60 and said["false_alarms"] == [] and said["refused"] == []
    assert said["processor_s_median"] <= SECONDS and len(said["over_ten_processor_s"]) <= 0.05 * said["planted"]


def test_the_summary_follows_from_the_rows():
    said = RECORDED["summary"]
    again = summary(RECORDED["planted"], RECORDED["honest"], said["command"], said["mode"])
    assert {**again, "machine": "", "python": ""} == {**said, "machine": "", "python": ""}


def test_a_false_alarm_and_a_missed_fault_are_told_from_the_rows():
    row = {"kernel": "k", "task": "t", "digest": "d", "examples": 100, "calls": 5, "processor_s": 1.0}
    rows = [{**row, "kind": "honest", "seed": 0, "false_alarms": []},
            {**row, "kind": "honest", "seed": 1, "examples": 20, "processor_s": 0.1, "false_alarms": ["bounds: n=1"]},
            {**row, "kind": "planted", "kernel": "p", "seed": 0, "found": False, "minimal": {"n": 1}, "also_violated": []}]
    made = record(rows, "command", "sim")
    assert made["summary"]["false_alarms"] == ["k"] and made["summary"]["missed"] == ["p"]
    assert made["honest"][0]["seeds"] == [0, 1] and made["honest"][0]["processor_s"] == 1.0, "of the checks with all examples"


def test_the_page_shows_the_recorded_figures_and_the_kernel_as_it_is():
    page = PAGE.read_text(encoding="utf-8")
    assert figures(RECORDED) in page
    assert KERNEL.read_text(encoding="utf-8") in page
    assert f"+{MENDED.removeprefix(WRONG)}" in page


@pytest.fixture
def asked():
    task = load_task(KERNEL).spec
    request = Request(task=task, solution=str(KERNEL), device=load_device("h200"), timeout_s=600, seed=0)
    return CheckRequest(request=request, examples=1, work_limit=3200, cost=2.0)


def test_the_pages_session_is_what_a_check_says(asked, tmp_path):
    page = PAGE.read_text(encoding="utf-8").replace("normalise.py", "")
    report = check_here(asked)
    (violated,) = report.violated()
    found = violated.counterexample
    assert violated.property == "synchronisation" and found.example.sizes == {"rows": 1, "cols": 1025}
    lines = [line.replace(f"{KERNEL.parent}/", "").replace("normalise.py", "") for line in counterexample_lines(found)]
    assert all(line in page for line in lines if not line.startswith("first met")), lines
    path = tmp_path / KERNEL.name
    path.write_text(mended(), encoding="utf-8")
    inner = asked.request.model_copy(update={"solution": str(path)})
    preload(inner)
    lab = Lab(asked.model_copy(update={"request": inner}), time.monotonic() + 300)
    try:
        lab.load()
        assert lab.call(lab.pose(found.example)).failure is None
    finally:
        lab.close()
