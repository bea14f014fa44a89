from __future__ import annotations

import pytest

from kernelskill.tasks.expressions import ExpressionError, parse

SIZES = {"rows": 10, "cols": 7}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("rows", 10),
        (3, 3),
        ("rows * cols + 1", 71),
        ("ceil_div(rows, cols)", 2),
        ("ceil_div(cols, cols)", 1),
        ("-rows // 3", -4),
        ("rows % cols", 3),
        ("min(rows, cols, 2)", 2),
        ("max(rows - 20, cols)", 7),
        ("(rows + cols) * 2", 34),
    ],
)
def test_value(text, value):
    assert parse(text, SIZES).value(SIZES) == value


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("rowz", "'rowz' uses unknown name 'rowz'", "did you mean 'rows'?"),
        ("rows +", "'rows +' is not an expression", "ceil_div"),
        ("rows / 2", "'rows / 2': 'rows / 2' is not allowed here", "+ - * // %"),
        ("rows ** 9", "'rows ** 9': 'rows ** 9' is not allowed here", ""),
        ("2.5", "'2.5': '2.5' is not allowed here", "whole numbers"),
        ("True", "'True': 'True' is not allowed here", ""),
        ("open('x')", "'open('x')' calls unknown function 'open'", "known: ceil_div, max, min"),
        ("ceil_div(rows)", "'ceil_div(rows)': ceil_div takes two values, got 1", ""),
        ("min(rows)", "'min(rows)': min takes two values, got 1", ""),
        ("rows.__class__", "'rows.__class__': 'rows.__class__' is not allowed here", ""),
        ("[rows][0]", "'[rows][0]': '[rows][0]' is not allowed here", ""),
        ("min(a=rows, b=1)", "'min(a=rows, b=1)': 'min(a=rows, b=1)' is not allowed here", ""),
        ("1 + " * 200 + "1", "expression of 801 characters; the limit is 500", ""),
    ],
)
def test_refused(text, message, hint):
    with pytest.raises(ExpressionError) as caught:
        parse(text, SIZES)
    assert caught.value.message == message
    assert hint in caught.value.hint


@pytest.mark.parametrize("text", ["rows // (cols - 7)", "rows % 0", "ceil_div(rows, cols - 7)"])
def test_division_by_zero_names_the_sizes(text):
    with pytest.raises(ExpressionError, match="divides by zero for rows=10, cols=7"):
        parse(text, SIZES).value(SIZES)
