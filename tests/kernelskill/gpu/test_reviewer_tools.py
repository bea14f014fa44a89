"""What the reviewer asks for on a GPU. The evaluation itself needs one; here the request is looked at and answered."""

import csv
from pathlib import Path

import pytest

from evaluator import pool
from evaluator.ncu import SECTIONS
from evaluator.profile_cuda import not_worth
from evaluator.statistics import summarise
from evaluator.types import Environment, Evaluation, Status
from kernelskill.agents.reviewer import Reviewer
from kernelskill.facts.device import load_device
from kernelskill.facts.nsight import COUNTERS, rule_fact
from kernelskill.tasks import load_task
from kernelskill.vocabulary import VOCABULARY

ROOT = Path(__file__).parents[3]
TASK = load_task(ROOT / "examples" / "row_sum")
FORBIDDEN = "forbidden here: ERR_NVGPUCTRPERM; counters are for administrators only here"


@pytest.fixture
def asked(monkeypatch):
    """Requests that reached the pool, each answered with a reason for missing counters while it asks for them."""
    requests = []

    def evaluate(request, reason=FORBIDDEN):
        requests.append(request)
        where = Environment(device="NVIDIA H200", simulated=request.mode == "sim", arch="sm_90")
        return Evaluation(status=Status.PASSED, message="", environment=where,
                          unavailable={"ncu": reasons[-1]} if request.counters and reasons[-1] else {})

    reasons = [FORBIDDEN]
    requests.append(reasons)
    monkeypatch.setattr(pool, "evaluate", evaluate)
    return requests


def time(median_us):
    """A measured time with its samples, which scatter by half a percent."""
    return summarise([median_us * (1 + 0.005 * step / 10) for step in range(-10, 11)])


def reviewer(mode):
    return Reviewer(TASK, load_device("h200"), mode, 60.0)


def test_on_a_gpu_counters_and_all_sanitizer_tools_are_asked_for_and_in_the_simulator_nothing(asked):
    reviewer("cuda").review(Path("solution.py"), rival=time(70.0))
    reviewer("sim").review(Path("solution.py"), rival=time(70.0))
    measured, simulated = asked[1:]
    assert (measured.counters, len(measured.sanitize), measured.rival) == (COUNTERS, 4, time(70.0))
    assert (simulated.counters, simulated.sanitize, simulated.rival) == ((), (), None)


def test_a_start_and_a_winner_are_profiled_in_full_what_is_between_for_its_facts(asked):
    asked[0].append("")
    made = reviewer("cuda")
    made.review(Path("start.py"))
    made.review(Path("child.py"), rival=time(70.0))
    made.compare(Path("best.py"), Path("start.py"), ("naive_start",))
    start, child, final = asked[1:]
    assert [request.counter_set for request in (start, child, final)] == ["full", "facts", "full"]
    assert final.counters == COUNTERS and final.sanitize == () and final.rival is None


def test_the_lighter_set_reads_every_section_whose_rule_is_a_fact():
    """The details page of a full profile names the section of each rule."""
    exports = (ROOT / "benchmarks/policy_corpus/nsight/h200_naive_gemm_relu_softmax.ncu-details.csv",
               ROOT / "tests/evaluator/tools/recorded/ncu_details.csv")
    texts = [path.read_text(encoding="utf-8") for path in exports]
    rows = [row for text in texts for row in csv.DictReader(text[text.index('"ID"'):].splitlines())]
    sections = {row["Rule Name"]: row["Section Name"] for row in rows if row["Rule Name"]}
    facts = {rule: section for rule, section in sections.items() if rule_fact(rule) in VOCABULARY}
    assert len(facts) > 7 and set(facts.values()) <= set(SECTIONS)
    assert sections["SOLFPRoofline"] not in SECTIONS  # of the full set, and no fact


def test_forbidden_counters_are_tried_once_and_every_evaluation_has_the_reason(asked):
    review = reviewer("cuda").review
    first, second = (review(Path("solution.py")) for _ in range(2))
    assert [bool(request.counters) for request in asked[1:]] == [True, False]
    assert (first.unavailable, second.unavailable) == ({"ncu": FORBIDDEN}, {"ncu": FORBIDDEN})


def test_a_failure_of_one_solution_does_not_close_the_counters_for_the_next(asked):
    asked[0].append("the solution failed under ncu: ...")
    review = reviewer("cuda").review
    review(Path("solution.py"))
    review(Path("solution.py"))
    assert [bool(request.counters) for request in asked[1:]] == [True, True]


@pytest.mark.parametrize(("child", "said"), [(80.0, "slower"), (69.7, "equal"), (70.0, "equal")])
def test_a_solution_that_is_not_faster_as_far_as_the_samples_say_costs_no_tool(asked, child, said):
    reviewer("cuda").review(Path("solution.py"), rival=time(70.0))
    skipped = not_worth(asked[1], time(child))
    assert set(skipped) == {"ncu", "cupti", "compute-sanitizer"}
    assert len(set(skipped.values())) == 1 and f"not faster than its parent ({said}: " in skipped["ncu"]


def test_a_faster_solution_and_one_without_a_rival_are_looked_into(asked):
    reviewer("cuda").review(Path("solution.py"), rival=time(70.0))
    reviewer("cuda").review(Path("solution.py"))
    assert not_worth(asked[1], time(60.0)) == {} == not_worth(asked[2], time(80.0))
    assert set(not_worth(asked[2].model_copy(update={"timed_only": True}), time(80.0))) == {"ncu", "cupti", "compute-sanitizer"}
