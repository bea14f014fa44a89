"""Expected gains: middle of a range, formula, cap, default, and nothing but arithmetic."""

import pytest

from kernelskill.policy.gain import FormulaError, Gain, evaluate, expected, formula_facts
from kernelskill.policy.schema import GainFormula, GainRange

VALUES = {"headroom": 8.0, "global_load_efficiency_pct": 25, "uses_restrict": True, "last_gain.launch_tuning": 1.5}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("headroom", 8.0),
        ("100 / global_load_efficiency_pct", 4.0),
        ("min(headroom, 4, 5)", 4.0),
        ("max(1, headroom - 2) * 2", 12.0),
        ("-headroom + 9", 1.0),
        ("last_gain.launch_tuning * 2", 3.0),
        ("1e-1", 0.1),
    ],
)
def test_value_of_a_formula(text, value):
    assert evaluate(text, VALUES) == value


@pytest.mark.parametrize(
    "text",
    [
        "headroom ** 2",
        "__import__('os')",
        "headroom if 1 else 2",
        "[1]",
        "lambda: 1",
        "headroom.__class__()",
        "max()",
        "max(headroom)",
        "min(headroom, default=1)",
        "True",
        "'a'",
        "headroom >",
        "",
        "1 // 2",
        "f(1)",
        "(1).real",
        "headroom[0]",
        "x := 1",
    ],
)
def test_nothing_but_arithmetic(text):
    with pytest.raises(FormulaError):
        formula_facts(text)


def test_a_truth_value_is_no_number():
    with pytest.raises(FormulaError, match="uses_restrict is not a number"):
        evaluate("uses_restrict * 2", VALUES)


def test_facts_of_a_formula():
    assert formula_facts("min(headroom, 100 / global_load_efficiency_pct) * headroom") == [
        "headroom",
        "global_load_efficiency_pct",
    ]


def test_middle_of_a_range():
    assert expected(GainRange(low=1.0, high=2.0), {}) == Gain(1.5)


def test_capped_by_headroom():
    assert expected(20, VALUES) == Gain(8.0, "20x capped by headroom 8")
    assert expected(2, {"headroom": 0.5}) == Gain(1.0, "2x capped by headroom 0.5")


def test_never_below_one():
    assert expected("headroom / 100", VALUES) == Gain(1.0)


def test_unknown_fact_falls_back_and_says_so():
    assert expected("time_us / 2", {}) == Gain(1.0, "time_us is unknown, so 1x is assumed")
    assert expected(GainFormula(formula="time_us / 2", default=1.7), {}) == Gain(1.7, "time_us is unknown, so 1.7x is assumed")


def test_division_by_zero_falls_back_and_says_so():
    gain = expected("1 / (global_load_efficiency_pct - 25)", VALUES)
    assert gain == Gain(1.0, "1 / (global_load_efficiency_pct - 25) has no value, so 1x is assumed")


def test_a_gain_is_a_finite_number():
    assert expected("headroom / 1e-300 / 1e-300", {"headroom": 3.0}).value == 3.0
    assert expected("time_us * 1e300 * 1e300", {"time_us": 3.0}).value == 1e6
