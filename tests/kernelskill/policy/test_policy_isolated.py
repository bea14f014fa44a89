"""Decisions in another process: the same answers, and a native crash costs exactly one of them."""

import ctypes
import time

import pytest
from policy_support import book_of, facts

from kernelskill.errors import DecisionError
from kernelskill.policy import IsolatedPolicy, Policy, isolated_decide

RULES = "rules:\n  - {id: r, when: {fact: uses_restrict}, then: [{propose: launch_tuning}]}\n"


class NativeCrash:
    """Reads address 0 in the process that unpickles it."""

    def __reduce__(self):
        return ctypes.string_at, (0,)


class Slow:
    def __reduce__(self):
        return time.sleep, (60,)


def test_the_same_decision(tmp_path):
    book = book_of(tmp_path, RULES)
    assert isolated_decide(book, facts(uses_restrict=True)) == Policy(book).decide(facts(uses_restrict=True))


def test_a_crash_costs_one_decision(tmp_path):
    with IsolatedPolicy(book_of(tmp_path, RULES)) as policy:
        assert policy.decide(facts(uses_restrict=True)).chosen.method == "launch_tuning"
        with pytest.raises(DecisionError, match=r"the rule engine crashed \(SIGSEGV\) while deciding"):
            policy.decide({"time_us": NativeCrash()})
        assert policy.decide(facts(uses_restrict=True)).chosen.method == "launch_tuning"


def test_errors_of_a_decision_come_back_and_the_child_lives(tmp_path):
    with IsolatedPolicy(book_of(tmp_path, RULES)) as policy:
        with pytest.raises(DecisionError, match="time_us = 'x' is not a number"):
            policy.decide(facts(time_us="x"))
        child = policy._child
        assert policy.decide({}).stop_reason == "no_method_left" and policy._child is child


def test_a_decision_that_hangs_is_ended(tmp_path):
    with IsolatedPolicy(book_of(tmp_path, RULES), timeout_s=3) as policy:
        with pytest.raises(DecisionError, match="took longer than 3 s"):
            policy.decide({"time_us": Slow()})
        assert policy.decide({}).stop_reason == "no_method_left"


def test_closing_ends_the_child(tmp_path):
    policy = IsolatedPolicy(book_of(tmp_path, RULES))
    policy.decide({})
    child = policy._child
    policy.close()
    policy.close()
    assert child.returncode == 0 and policy.decide({}).stop_reason == "no_method_left"
    policy.close()
