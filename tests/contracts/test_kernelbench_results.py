"""The recorded KernelBench measurements and lint hang together, and the pages say what the records say."""

import json

from benchmarks import kernelbench_lint, kernelbench_report
from evaluator.lint.report import SETS_ASIDE

LINT = json.loads(kernelbench_lint.RECORD.read_text())
CARD = json.loads(kernelbench_report.CARD.read_text())
RECORDED = json.loads(kernelbench_report.RECORDED.read_text())


def test_the_pages_are_the_records():
    assert kernelbench_lint.PAGE.read_text() == kernelbench_lint.page(LINT)
    assert kernelbench_report.PAGE.read_text() == kernelbench_report.page(CARD, RECORDED, LINT)


def test_every_problem_is_there():
    assert len(LINT["problems"]) == len(RECORDED["problems"]) == 250
    assert set(CARD["problems"]) == set(LINT["problems"])


def test_a_task_is_set_aside_for_a_finding_or_its_verdict():
    for key, row in LINT["problems"].items():
        codes = {code for code, _ in row["findings"]}
        assert row["set_aside"] == (row["verdict"] != "judgeable" or bool(codes & set(SETS_ASIDE))), key
        passing = {name for name, seen in row["nulls"].items() if seen["passes"]}
        copies = {name for name in ("input", "scaled_input") if name in row["ours"] and not row["ours"][name]["refused"]}
        assert ("null_passes" in codes) == bool(passing - copies), key


def test_times_are_medians_of_several_samples_and_carry_their_provenance():
    made = CARD["provenance"]
    assert made["device"] == "NVIDIA H200" and made["versions"]["torch"] and made["state_before"] and made["commit"]
    for key, row in CARD["problems"].items():
        assert "error" in row or all(t["samples"] >= 7 and 0 < t["min_us"] <= t["us"] for t in row["times"].values()), key
