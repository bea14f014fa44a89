"""Experience scales expected gains and breaks ties; both are told."""

import pytest

from kernelskill.policy.agenda import Fired, select
from kernelskill.policy.gain import Past, expected, past_of
from kernelskill.policy.schema import Propose, Veto


def seen(method, bottleneck, trials, successes, gain=None):
    facts = {f"experience_trials.{method}.{bottleneck}": trials, f"experience_successes.{method}.{bottleneck}": successes}
    return facts | ({f"experience_gain.{method}.{bottleneck}": gain} if gain else {})


def propose(method, gain, priority=50):
    return Fired(f"rule_{method}", priority, [Propose(propose=method, gain=gain)], "of a reason")


def test_without_trials_the_rule_alone_counts():
    assert past_of("a", ["dram"], {}) is None
    assert past_of("a", ["dram"], seen("a", "l2", 5, 5, 2.0)) is None


def test_the_bottleneck_with_the_most_trials_speaks():
    facts = seen("a", "dram", 2, 2, 3.0) | seen("a", "l2", 5, 1, 1.5)
    assert past_of("a", ["dram", "l2"], facts) == Past("l2", 5, 1, 1.5)


def test_four_trials_weigh_as_much_as_the_rule():
    gain = expected(4.0, {}, Past("dram", 4, 4, 1.0))
    assert gain.value == pytest.approx(2.0)
    assert gain.note == "4x by the rule; 4 of 4 earlier trials under dram helped, 1x in the middle"


def test_trials_that_did_not_help_brought_nothing():
    assert expected(2.0, {}, Past("dram", 1000, 0, 1.0)).value == pytest.approx(1.0, abs=0.01)
    assert expected(2.0, {}, Past("dram", 1000, 500, 3.0)).value == pytest.approx(2.0, abs=0.01)


def test_the_headroom_still_caps():
    assert expected(2.0, {"headroom": 1.5}, Past("dram", 1000, 1000, 9.0)).value == 1.5


def test_experience_turns_a_close_choice_and_says_so():
    rules = [propose("a", 1.3), propose("b", 1.2)]
    derived = {"bottleneck.dram": True}
    assert select(rules, derived).chosen.method == "a"
    turned = select(rules, derived | seen("a", "dram", 6, 0))
    assert turned.chosen.method == "b"
    kept = select(rules, derived | seen("b", "dram", 6, 6, 2.0))
    assert kept.chosen.method == "b"
    assert "6 of 6 earlier trials under dram helped, 2x in the middle" in kept.reason


def test_experience_under_another_bottleneck_is_not_used():
    rules = [propose("a", 1.3), propose("b", 1.2)]
    assert select(rules, {"bottleneck.l2": True} | seen("a", "dram", 6, 0)).chosen.method == "a"


def test_where_no_bottleneck_is_known_its_own_row_counts():
    assert select([propose("a", 1.3), propose("b", 1.2)], seen("a", "none", 6, 0)).chosen.method == "b"


def test_it_breaks_a_tie_that_the_headroom_made():
    rules, facts = [propose("a", 4.0), propose("b", 3.0)], {"headroom": 1.2, "bottleneck.dram": True}
    assert select(rules, facts).chosen.method == "a"
    told = select(rules, facts | seen("b", "dram", 3, 3, 2.0))
    assert told.chosen.method == "b"
    loser = next(c for c in told.candidates if c.method == "a")
    assert "experience decides: no earlier trials, against 3 of 3 earlier trials under dram helped" in loser.fate_reason


def test_priority_and_vetoes_stand_above_it():
    facts = {"bottleneck.dram": True} | seen("b", "dram", 50, 50, 9.0)
    assert select([propose("a", 1.1, priority=60), propose("b", 1.1)], facts).chosen.method == "a"
    veto = Fired("no_b", 0, [Veto(veto="b")], "of a reason")
    assert select([propose("a", 1.1), propose("b", 1.1), veto], facts).chosen.method == "a"
