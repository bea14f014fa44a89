"""Diagnoses are one of a few kinds, with evidence, and the same fault has the same key whatever its values."""

import pytest

from evaluator.types import Environment, Evaluation, Finding, Mismatch, Status
from kernelskill.agents.diagnoser import FINDINGS, KINDS, classify, imprecise, not_written, off_method
from kernelskill.agents.repairer import to_repair
from kernelskill.model import Attempt, MethodApplication

ENVIRONMENT = Environment(device="card", simulated=True, arch="sm_90")


def judged(status, **fields):
    return Evaluation(status=status, message=fields.pop("message", "said"), environment=ENVIRONMENT, **fields)


def wrong(got=2.0, wrong_elements=3, sizes=None):
    mismatch = Mismatch(output="out", case="normal seed 7", sizes=sizes or {"rows": 3}, index=(1, 2), expected=1.0, got=got,
                        max_abs_error=1.0, allowed_error=1e-3, wrong_elements=wrong_elements, total_elements=9)
    return judged(Status.INCORRECT_NUMERICAL, mismatch=mismatch)


def found(kind, **fields):
    return judged(Status.RUNTIME_ERROR, findings=(Finding(kind=kind, message="m", kernel="k", **fields),))


def test_every_status_that_is_no_success_has_a_kind():
    assert set(KINDS) == set(Status) - {Status.PASSED}


@pytest.mark.parametrize("evaluation, kind", [
    (judged(Status.COMPILE_ERROR, compile_log="a.cu(3): error: x"), "compile"),
    (judged(Status.INCORRECT_SHAPE, mismatch=Mismatch(output="out", case="c", sizes={}, got_shape=(2,))), "shape"),
    (wrong(), "numerical"),
    (found("out_of_bounds"), "memory"), (found("misaligned"), "memory"), (found("uninitialised_shared"), "memory"),
    (found("shared_race"), "synchronisation"), (found("divergent_barrier"), "synchronisation"),
    (found("launch_limit"), "launch"), (found("runaway"), "timeout"),
    (judged(Status.TIMEOUT), "timeout"), (judged(Status.REJECTED), "rejected"), (judged(Status.UNSUPPORTED), "unsupported"),
    (judged(Status.RUNTIME_ERROR), "runtime"),
])
def test_the_kind_follows_from_findings_then_status(evaluation, kind):
    assert classify(evaluation).kind == kind


def test_findings_of_the_evaluator_have_a_kind_unless_their_status_says_it():
    from typing import get_args

    from evaluator.types import FindingKind

    assert set(get_args(FindingKind)) >= set(FINDINGS)


def test_evidence_holds_counterexample_extent_and_finding():
    evidence = " | ".join(classify(wrong()).evidence)
    assert "out[1, 2]: expected 1, got 2 (allowed error 0.001); normal seed 7, rows=3" in evidence
    assert "3 of 9 elements of out are wrong, the largest error is 1" in evidence
    assert classify(judged(Status.COMPILE_ERROR, compile_log="a.cu(3): error: x")).log == "a.cu(3): error: x"


def test_the_same_fault_has_the_same_key_and_another_one_another():
    assert classify(wrong(got=2.0)).key == classify(wrong(got=5.5)).key
    assert classify(wrong()).key != classify(wrong(wrong_elements=9)).key
    assert classify(wrong()).key != classify(wrong(sizes={"rows": 67})).key
    log = 'a.cu(3): error: identifier "x" is undefined'
    first, moved, other = (classify(judged(Status.COMPILE_ERROR, compile_log=text)).key for text in (
        log, log.replace("(3)", "(31)"), log.replace('"x"', '"y"')))
    assert first == moved != other
    assert classify(found("out_of_bounds", line=3, source="y[i] = 1")).key == classify(
        found("out_of_bounds", line=9, source="y[i]  =  1")).key


def attempt(repair=0, diagnosis=None, child="c", outcome="failed"):
    return Attempt(round=1, parent="p", child=child, method=MethodApplication(method="m"), outcome=outcome, repair=repair,
                   diagnosis=diagnosis)


def test_a_failure_is_mended_until_the_budget_ends():
    faults = [classify(wrong(sizes={"rows": n})) for n in range(3)]
    tries = [attempt(n, fault, child=f"c{n}") for n, fault in enumerate(faults)]
    assert to_repair(tries[:1], 2) is tries[0] and to_repair(tries[:2], 2) is tries[1]
    assert to_repair(tries, 2) is None and to_repair(tries, 3) is tries[2]
    assert to_repair(tries[:1], 0) is None and to_repair([], 2) is None


def test_a_fault_that_comes_back_is_not_mended_again():
    first, other = classify(wrong()), classify(found("out_of_bounds"))
    assert to_repair([attempt(0, first), attempt(1, first)], 5) is None
    assert to_repair([attempt(0, first), attempt(1, other), attempt(2, first)], 5) is None


@pytest.mark.parametrize("last", [
    attempt(outcome="improved"), attempt(diagnosis=not_written("empty"), child="", outcome="not_written"),
    attempt(diagnosis=classify(judged(Status.UNSUPPORTED))), attempt(outcome="duplicate", diagnosis=classify(wrong())),
])
def test_what_is_good_or_cannot_be_mended_is_left(last):
    assert to_repair([last], 5) is None


def test_broken_promises_and_lost_precision_can_be_mended():
    assert to_repair([attempt(diagnosis=off_method(["m promises x above 1 (is 0)"]), outcome="off_method")], 1) is not None
    assert to_repair([attempt(diagnosis=imprecise("class tf32"))], 1) is not None
    named = judged(Status.UNSUPPORTED, findings=(Finding(kind="unsupported", message="wgmma", kernel="k", line=4),))
    assert to_repair([attempt(diagnosis=classify(named))], 1) is not None
    assert off_method(["m promises x above 1 (is 0)"]).key == off_method(["m promises x above 1 (is 0.5)"]).key
