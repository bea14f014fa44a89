"""Selection is a pure total order: stop, veto, require, prefer, priority, gain, name."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from kernelskill.policy.agenda import Fired, select
from kernelskill.policy.schema import Action

ACTION = TypeAdapter(Action)


def rule(ident, *actions, priority=500, because="", evidence=""):
    return Fired(ident, priority, [ACTION.validate_python(action) for action in actions], because, evidence)


def propose(method, gain=1.0, **more):
    return {"propose": method, "gain": gain, **more}


def fates(selection):
    return {candidate.method: (candidate.fate, candidate.fate_reason) for candidate in selection.candidates}


def test_no_rules():
    selection = select([], {})
    assert (selection.chosen, selection.stop_reason) == (None, "no_method_left")
    assert selection.reason == "no_method_left: no rule proposes a method for these facts."


def test_one_sentence():
    selection = select(
        [
            rule(
                "propose_tiling", propose("shared_memory_tiling", {"low": 2.4, "high": 4}), because="94 % of DRAM peak is used."
            )
        ],
        {},
    )
    assert selection.reason == (
        "shared_memory_tiling: expected 3.2x, proposed by propose_tiling because 94 % of DRAM peak is used."
    )


def test_without_a_because_the_facts_stand_in():
    assert (
        select([rule("r", propose("a", 2), evidence="time_us = 4")], {}).reason
        == "a: expected 2x, proposed by r because time_us = 4"
    )


def test_stop_goes_before_everything():
    selection = select(
        [
            rule("p", propose("a", 9), priority=999),
            rule("end", {"stop": "near_speed_of_light"}, priority=1, because="it is fast.", evidence="headroom = 1.02"),
        ],
        {},
    )
    assert (selection.chosen, selection.stop_reason) == (None, "near_speed_of_light")
    assert selection.reason == "near_speed_of_light: stop by end because it is fast."
    assert fates(selection) == {"a": ("stopped", "the run ends: near_speed_of_light by end (headroom = 1.02)")}


def test_the_stop_of_highest_priority_names_the_reason():
    stops = [rule("b", {"stop": "late"}, priority=5), rule("a", {"stop": "early"}, priority=9)]
    assert select(stops, {}).stop_reason == "early"


def test_veto():
    selection = select(
        [rule("p", propose("a", 9), propose("b", 2)), rule("v", {"veto": "a"}, evidence="failed_here.a = 1")], {}
    )
    assert selection.chosen.method == "b"
    assert fates(selection)["a"] == ("vetoed", "vetoed by v (failed_here.a = 1)")


def test_everything_vetoed():
    selection = select([rule("p", propose("a")), rule("v", {"veto": "a"})], {})
    assert selection.stop_reason == "no_method_left" and selection.reason == "no_method_left: a vetoed by v."


@pytest.mark.parametrize("applied", [True, False])
def test_a_requirement_waits_until_the_first_was_applied(applied):
    rules = [
        rule("p", propose("register_blocking", 9), propose("other", 1.1)),
        rule("q", {"require": "shared_memory_tiling", "before": "register_blocking"}),
    ]
    selection = select(rules, {"applied.shared_memory_tiling": applied})
    assert selection.chosen.method == ("register_blocking" if applied else "other")
    if not applied:
        assert fates(selection)["register_blocking"] == ("beaten", "needs shared_memory_tiling first, says q")


def test_a_preference_counts_only_between_candidates():
    prefer = rule("f", {"prefer": "a", "over": "b"})
    proposals = rule("p", propose("a", 1.1), propose("b", 5))
    assert select([proposals, prefer], {}).chosen.method == "a"
    assert fates(select([proposals, prefer], {}))["b"] == ("beaten", "a is preferred by f")
    assert select([proposals, prefer, rule("v", {"veto": "a"})], {}).chosen.method == "b"
    assert select([rule("p", propose("b", 5)), prefer], {}).chosen.method == "b"


def test_preferences_chain():
    rules = [
        rule("p", propose("a", 1.1), propose("b", 2), propose("c", 3)),
        rule("f", {"prefer": "a", "over": "b"}),
        rule("g", {"prefer": "b", "over": "c"}),
    ]
    assert select(rules, {}).chosen.method == "a"
    assert [fate for fate, _ in fates(select(rules, {})).values()] == ["chosen", "beaten", "beaten"]


def test_preferences_in_a_circle_cancel_each_other():
    circle = [rule("f", {"prefer": "a", "over": "b"}), rule("g", {"prefer": "b", "over": "a"})]
    assert select([rule("p", propose("a", 1.1), propose("b", 2)), *circle], {}).chosen.method == "b"


def test_priority_before_gain():
    selection = select([rule("low", propose("a", 9), priority=400), rule("high", propose("b", 1.1), priority=600)], {})
    assert selection.chosen.method == "b"
    assert fates(selection)["a"] == ("outranked", "priority 400 (low) against 600 of b")


def test_gain_then_name():
    selection = select([rule("p", propose("b", 2), propose("c", 3), propose("a", 2))], {})
    assert [candidate.method for candidate in selection.candidates] == ["c", "a", "b"]
    assert fates(selection)["a"] == ("outranked", "expected 2x against 3x of c at the same priority")
    assert select([rule("p", propose("b", 2), propose("a", 2))], {}).chosen.method == "a"


def test_a_method_ranks_by_its_best_proposal():
    rules = [
        rule("weak", propose("a", 9), priority=100),
        rule("strong", propose("a", 2, params={"tile": 32}), priority=700),
        rule("other", propose("b", 5), priority=600),
    ]
    best = select(rules, {}).candidates[0]
    assert (best.method, best.priority, best.expected_gain, best.proposed_by, best.params) == (
        "a",
        700,
        2.0,
        ("strong", "weak"),
        {"tile": 32},
    )


def test_headroom_caps_the_gain():
    selection = select([rule("p", propose("a", 5))], {"headroom": 1.5})
    assert selection.candidates[0].expected_gain == 1.5
    assert selection.reason == "a: expected 1.5x (5x capped by headroom 1.5), proposed by p."


METHODS = ["a", "b", "c"]
actions = st.one_of(
    st.builds(propose, st.sampled_from(METHODS), st.sampled_from([1.0, 1.5, 2.0])),
    st.builds(lambda m: {"veto": m}, st.sampled_from(METHODS)),
    st.builds(lambda m, n: {"prefer": m, "over": n}, st.sampled_from(METHODS), st.sampled_from(METHODS)),
    st.builds(lambda m, n: {"require": m, "before": n}, st.sampled_from(METHODS), st.sampled_from(METHODS)),
    st.builds(lambda: {"stop": "x"}),
)


@given(st.lists(st.tuples(st.lists(actions, min_size=1, max_size=3), st.integers(0, 2)), max_size=4))
@settings(max_examples=150, deadline=None)
def test_any_order_gives_the_same_selection(contents):
    rules = [rule(f"r{index}", *content, priority=priority) for index, (content, priority) in enumerate(contents)]
    outcomes = [select(order, {"applied.a": True}) for order in itertools.permutations(rules)]
    assert all(outcome == outcomes[0] for outcome in outcomes)
    chosen = [candidate for candidate in outcomes[0].candidates if candidate.fate == "chosen"]
    assert len(chosen) == (outcomes[0].chosen is not None)
    assert (outcomes[0].stop_reason == "") == (outcomes[0].chosen is not None)
