"""What the reviewer asks for on a GPU. The evaluation itself needs one; here the request is looked at and answered."""

from pathlib import Path

import pytest

from evaluator import pool
from evaluator.profile_cuda import not_worth
from evaluator.types import Environment, Evaluation, Status
from kernelskill.agents.reviewer import Reviewer
from kernelskill.facts.device import load_device
from kernelskill.facts.nsight import COUNTERS
from kernelskill.tasks import load_task

TASK = load_task(Path(__file__).parents[3] / "examples" / "row_sum")
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


def reviewer(mode):
    return Reviewer(TASK, load_device("h200"), mode, 60.0)


def test_on_a_gpu_counters_and_all_sanitizer_tools_are_asked_for_and_in_the_simulator_nothing(asked):
    reviewer("cuda").review(Path("solution.py"), worth_us=70.0)
    reviewer("sim").review(Path("solution.py"))
    measured, simulated = asked[1:]
    assert (measured.counters, len(measured.sanitize), measured.worth_us) == (COUNTERS, 4, 70.0)
    assert (simulated.counters, simulated.sanitize) == ((), ())


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


def test_a_solution_that_is_too_slow_says_so_for_each_tool_that_was_asked_for(asked):
    reviewer("cuda").review(Path("solution.py"), worth_us=70.5)
    reason = "not used: the solution is not faster than 70.5 us"
    assert not_worth(asked[1]) == {"ncu": reason, "cupti": reason, "compute-sanitizer": reason}
