"""What the tools said on the H200: nothing modelled among measured facts, faults named, honest solutions let pass."""

import json

import pytest

from benchmarks.examples import RESULTS
from benchmarks.h200.sanitizer import PLANTED

OPTIMISED = json.loads((RESULTS / "h200" / "optimised_examples.json").read_text())
SANITIZED = json.loads((RESULTS / "h200" / "sanitizer.json").read_text())


@pytest.mark.parametrize("name", OPTIMISED["examples"])
def test_a_run_on_the_gpu_was_decided_by_measured_facts(name):
    row = OPTIMISED["examples"][name]
    for when in ("provenance_first", "provenance_last"):
        assert row[when]["ncu"] > 40 and row[when]["cupti"] > 5
        assert not {"modelled", "simulated"} & row[when].keys()
    assert row["unavailable"] == []
    assert row["speedup"] == pytest.approx(row["start_us"][0] / row["best_us"][0])


@pytest.mark.parametrize("name", OPTIMISED["examples"])
def test_methods_agree_with_the_simulators_run_as_far_as_the_record_says(name):
    row = OPTIMISED["examples"][name]
    theirs, same = row["simulator"]["attempted"], row["simulator"]["same_rounds"]
    assert row["attempted"][:same] == theirs[:same]
    assert row["attempted"][same:same + 1] != theirs[same:same + 1] or same in (len(row["attempted"]), len(theirs))


def test_planted_faults_gave_right_outputs_and_all_but_the_explained_were_caught():
    assert set(SANITIZED["planted"]) == set(PLANTED)
    assert {row["without"] for row in SANITIZED["planted"].values()} == {"PASSED"}
    missed = {name for name, row in SANITIZED["planted"].items() if not row["caught"]}
    assert missed == set(SANITIZED["not_caught"])


def test_honest_solutions_passed_the_sanitizer():
    assert {row["status"] for row in SANITIZED["honest"].values()} == {"PASSED"}
    assert all(min(row["watched"].values()) > 0 for row in SANITIZED["honest"].values())
