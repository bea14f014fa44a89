"""Deciding again: identical, or the first difference; and what else would have happened."""

import pytest
from policy_support import book_of, facts

from kernelskill.errors import DecisionError
from kernelskill.model import Decision
from kernelskill.policy import Policy, replay, what_if
from kernelskill.policy.replay import changes, differences

RULES = """
rules:
  - {id: wide, when: {fact: vector_load_bytes, op: "<", value: 16}, then: [{propose: vectorized_access, gain: 1.2}]}
  - {id: tune, when: {fact: round, op: ">", value: 1}, then: [{propose: launch_tuning, gain: "headroom / 2"}]}
"""
GIVEN = {"vector_load_bytes": 4, "round": 2, "headroom": 2.2}


@pytest.fixture(name="policy")
def _policy(tmp_path):
    return Policy(book_of(tmp_path / "rules", RULES))


def test_a_recorded_decision_comes_out_the_same(policy, tmp_path):
    recorded = Decision.model_validate_json(policy.decide(facts(GIVEN)).model_dump_json())
    assert replay(recorded, policy) == ""
    assert replay(recorded, Policy(book_of(tmp_path / "moved", RULES))) == "", "where the files lie does not count"


def test_other_rules_are_named_first(policy, tmp_path):
    other = Policy(book_of(tmp_path / "other", RULES.replace("1.2", "1.3")))
    assert replay(policy.decide(facts(GIVEN)), other).startswith(f"the rules differ: recorded {policy.book.digest[:12]}, now ")


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"chosen": {"method": "launch_tuning"}}, "chosen: launch_tuning, now vectorized_access"),
        ({"derived": {"d.x": True}}, "derived: d.x only recorded"),
        ({"fired": ()}, "fired: tune only now"),
        ({"reason": "x"}, "reason: 'x', now 'vectorized_access: expected 1.2x"),
    ],
)
def test_the_first_difference_is_named(policy, change, difference):
    recorded = policy.decide(facts(GIVEN))
    tampered = Decision.model_validate({**recorded.model_dump(), **change})
    assert replay(tampered, policy).startswith(difference)


def test_the_order_of_candidates_counts(policy):
    recorded = policy.decide(facts(GIVEN))
    turned = recorded.model_copy(update={"candidates": recorded.candidates[::-1]})
    assert [text.split(",")[0] for text in differences(turned, recorded)] == ["candidates: another order"]


def test_what_if(policy):
    decision = policy.decide(facts(GIVEN))
    assert decision.chosen.method == "vectorized_access"
    assert what_if(decision, policy, {"headroom": 5.0}).chosen.method == "launch_tuning"
    assert what_if(decision, policy, {"vector_load_bytes": None, "round": 1}).stop_reason == "no_method_left"
    with pytest.raises(DecisionError, match="no fact is called hedroom"):
        what_if(decision, policy, {"hedroom": 5.0})


def test_which_decisions_other_rules_change(policy):
    recorded = [policy.decide(facts(GIVEN)), policy.decide(facts(round=3, headroom=2.0))]
    changed = list(changes(recorded, Policy(policy.book.without("wide"))))
    assert [(old.chosen.method, new.chosen.method) for old, new in changed] == [("vectorized_access", "launch_tuning")]
