"""Every cheat is found and every honest look-alike passes, in the simulator; benchmarks/h200/guards.py runs them on a GPU."""

from __future__ import annotations

import pytest

from benchmarks.guard_cases import FOLDER, NOWHERE, detector_exists, load_cases

CASES = load_cases()


@pytest.mark.parametrize("case", [case for case in CASES if case.expect != NOWHERE], ids=lambda case: case.file)
def test_verdict_in_the_simulator(case, judged, h200):
    evaluation = judged(case.request(h200, "sim"))
    assert case.disagreement(evaluation, "sim") == ""


def test_every_solution_is_a_case_and_every_case_a_solution():
    files = sorted(str(path.relative_to(FOLDER)) for kind in ("cheats", "honest") for path in (FOLDER / kind).glob("*.py"))
    assert sorted(str(case.path.relative_to(FOLDER)) for case in CASES) == files


@pytest.mark.parametrize("case", [case for case in CASES if not case.honest], ids=lambda case: case.file)
def test_detector_exists(case):
    assert detector_exists(case.detector), case.detector
