"""The deciders of the ablations: repeatable, from facts alone, and ending."""

from collections import Counter

from kernelskill.model import Fact
from kernelskill.policy.ablation import FreeChoice, RandomPolicy

METHODS = ("vectorized_access", "launch_tuning", "loop_unrolling")


def facts(round_=1, left=5, **values):
    known = {"round": round_, "rounds_left": left, **{f"applicable.{m}": True for m in METHODS}, "applicable.split_k": False}
    known |= {name.replace("__", "."): value for name, value in values.items()}
    return {name: Fact(name=name, value=value, provenance="history") for name, value in known.items()}


def test_the_draw_depends_on_seed_and_round_and_on_nothing_else():
    draws = [RandomPolicy(7).decide(facts(n)).chosen.method for n in range(1, 60)]
    assert draws == [RandomPolicy(7).decide(facts(n, time_us=float(n))).chosen.method for n in range(1, 60)]
    assert draws != [RandomPolicy(8).decide(facts(n)).chosen.method for n in range(1, 60)]
    counts = Counter(draws)
    assert set(counts) == set(METHODS) and min(counts.values()) > 5


def test_what_was_tried_in_vain_is_not_drawn_and_nothing_left_is_a_stop():
    rest = {f"failed_here__{m}": 1 for m in METHODS[:2]}
    decision = RandomPolicy(1).decide(facts(**rest))
    assert decision.chosen.method == "loop_unrolling" and "drawn from 1 applicable" in decision.reason
    assert [c.fate for c in decision.candidates] == ["chosen"]
    nothing = RandomPolicy(1).decide(facts(**rest, no_gain_here__loop_unrolling=1))
    assert (nothing.outcome, nothing.stop_reason) == ("stop", "no_method_left")
    assert RandomPolicy(1).decide(facts(left=0)).stop_reason == "budget_exhausted"


def test_the_writer_chooses_until_rounds_or_patience_end():
    assert FreeChoice().decide(facts(rounds_since_best=4)).chosen.method == "free_choice"
    assert FreeChoice().decide(facts(rounds_since_best=5)).stop_reason == "no_gain"
    assert FreeChoice().decide(facts(left=0)).stop_reason == "budget_exhausted"
