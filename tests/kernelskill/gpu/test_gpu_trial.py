"""The doctor's trial evaluation: its kernel is right, and what came of it is told tool by tool."""


import pytest

from evaluator.pool import evaluate
from evaluator.types import Environment, Evaluation, KernelProfile, Request, Status, TaskSpec, Timeline
from kernelskill.facts.device import load_device
from kernelskill.gpu_trial import REFERENCE, SOLUTION, tool_state

WHERE = Environment(device="NVIDIA H200", simulated=False, arch="sm_90")


def test_the_trials_solution_is_right(tmp_path):
    """The simulator runs the same two texts, so a GPU that fails the trial has a fault of its own."""
    reference, solution = tmp_path / "reference.py", tmp_path / "solution.py"
    reference.write_text(REFERENCE)
    solution.write_text(SOLUTION)
    task = TaskSpec(name="twice", kind="native", path=str(reference), sizes={"n": 1000}, check_sizes=({"n": 1000},))
    verdict = evaluate(Request(task=task, solution=str(solution), device=load_device("h200"), stages=("verify",)))
    assert verdict.status is Status.PASSED, verdict.message


@pytest.mark.parametrize(("fields", "tool", "state"), [
    ({"profiles": (KernelProfile(kernel="twice"),)}, "ncu", ""),
    ({"unavailable": {"ncu": "forbidden here: ERR_NVGPUCTRPERM"}}, "ncu", "forbidden here: ERR_NVGPUCTRPERM"),
    ({"timeline": Timeline(calls=7, span_us=3, busy_us=3, longest_gap_us=0)}, "cupti", ""),
    ({"checks": {"sanitizer_memcheck": 1}}, "compute-sanitizer", ""),
    ({"status": Status.TIMEOUT}, "ncu", "not reached: the trial evaluation ended with TIMEOUT")])
def test_what_a_tool_did_in_the_trial(fields, tool, state):
    assert tool_state(Evaluation(**({"status": Status.PASSED, "message": "", "environment": WHERE} | fields)), tool) == state
