"""Every cheat is found and every honest look-alike passes, in the simulator; benchmarks/h200/guards.py runs them on a GPU."""

from __future__ import annotations

import json

import pytest

from benchmarks.guard_cases import (
    FOLDER,
    ISOLATION,
    NOWHERE,
    PAGE,
    contradicts,
    detector_exists,
    load_cases,
    load_kinds,
    page,
    recorded,
)

CASES = load_cases()


HERE = [case for case in CASES if case.expect != NOWHERE and case.kinds]
"""The plain solutions are what times are compared with on a GPU."""


@pytest.mark.parametrize("case", HERE, ids=lambda case: case.file)
def test_verdict_in_the_simulator(case, judged, h200):
    evaluation = judged(case.request(h200, "sim"))
    assert case.disagreement(evaluation, "sim") == ""


def test_every_solution_is_a_case_and_every_case_a_solution():
    files = sorted(str(path.relative_to(FOLDER)) for kind in ("cheats", "honest") for path in (FOLDER / kind).glob("*.py"))
    assert sorted(str(case.path.relative_to(FOLDER)) for case in CASES) == files


@pytest.mark.parametrize("case", [case for case in CASES if not case.honest], ids=lambda case: case.file)
def test_detector_exists(case):
    assert detector_exists(case.detector), case.detector


def test_every_kind_has_a_case_or_says_why_it_needs_none():
    shown = {number for case in CASES if not case.honest for number in case.kinds}
    kinds = load_kinds()
    assert [number for number, kind in kinds.items() if number not in shown and not kind.how and not kind.open] == []
    assert shown <= set(kinds)


def test_the_page_is_fresh():
    assert PAGE.read_text(encoding="utf-8") == page(recorded()), "run: python -m benchmarks.guard_cases"


def test_the_recorded_run_on_a_gpu_found_nothing_wrong():
    rows = {row["file"]: row for row in recorded()["cases"]}
    assert [case.file for case in CASES if case.file in rows and contradicts(case, rows)] == []
    assert set(rows) <= {case.file for case in CASES}
    assert all(not row["wrong"] for row in recorded()["kernelbench"])


def test_the_recorded_isolation_suite_left_nothing():
    rows = json.loads(ISOLATION.read_text(encoding="utf-8"))["cases"]
    assert len(rows) >= 24 and all(not row["wrong"] and row.get("next_status", "PASSED") == "PASSED" for row in rows)
