"""Whole-number arithmetic over size names, as task files use it: `ceil_div(rows, 256)`, `2 * m * n * k`.

An expression is parsed, never executed: only integers, known names, `+ - * // %` and `min max ceil_div` exist.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from kernelskill.errors import near_or_all

MAX_LENGTH = 500
FUNCTIONS: dict[str, Callable[..., int]] = {"min": min, "max": max, "ceil_div": lambda a, b: -(-a // b)}
OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


class ExpressionError(ValueError):
    """An expression that cannot be read or evaluated. `hint` says what to write instead."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = message, hint
        super().__init__(message)


@dataclass(frozen=True)
class Expression:
    """A parsed expression; `text` is its canonical Python spelling (valid source if `ceil_div` is defined)."""

    text: str
    names: frozenset[str]
    tree: ast.expr

    def value(self, sizes: Mapping[str, int]) -> int:
        """The value for these sizes. Raises ExpressionError on a division by zero."""
        try:
            return _value(self.tree, sizes)
        except ZeroDivisionError:
            shown = ", ".join(f"{k}={v}" for k, v in sizes.items())
            raise ExpressionError(f"'{self.text}' divides by zero for {shown}") from None

    def uses(self, function: str) -> bool:
        """Whether the expression calls this function."""
        return any(isinstance(n, ast.Call) and ast.unparse(n.func) == function for n in ast.walk(self.tree))


def parse(text: str | int, known: Collection[str]) -> Expression:
    """Read an expression whose names must be in `known`. Raises ExpressionError naming the first mistake."""
    source = str(text)
    if len(source) > MAX_LENGTH:
        raise ExpressionError(f"expression of {len(source)} characters; the limit is {MAX_LENGTH}")
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise ExpressionError(f"'{source}' is not an expression", "write e.g. ceil_div(rows, 256)") from None
    _check(tree, source, known)
    names = frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name)) - FUNCTIONS.keys()
    return Expression(ast.unparse(tree), names, tree)


def _check(node: ast.expr, source: str, known: Collection[str]) -> None:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return
        case ast.Name(id=name):
            if name not in known:
                raise ExpressionError(f"'{source}' uses unknown name '{name}'", near_or_all(name, known))
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
            _check(left, source, known)
            _check(right, source, known)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check(operand, source, known)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            _check_call(name, args, source)
            for argument in args:
                _check(argument, source, known)
        case _:
            raise ExpressionError(f"'{source}': '{ast.unparse(node)}' is not allowed here",
                                  "use whole numbers, size names, + - * // % and min, max, ceil_div")


def _check_call(name: str, args: list[ast.expr], source: str) -> None:
    if name not in FUNCTIONS:
        raise ExpressionError(f"'{source}' calls unknown function '{name}'", near_or_all(name, FUNCTIONS))
    if len(args) != 2 and (name == "ceil_div" or len(args) < 2):
        raise ExpressionError(f"'{source}': {name} takes two values, got {len(args)}")


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.Name(id=name):
            return sizes[name]
        case ast.BinOp(left=left, op=operator, right=right):
            return OPERATORS[type(operator)](_value(left, sizes), _value(right, sizes))
        case ast.UnaryOp(operand=operand):
            return -_value(operand, sizes)
        case ast.Call(func=ast.Name(id=name), args=args):
            return FUNCTIONS[name](*(_value(a, sizes) for a in args))
    raise AssertionError(f"unchecked node {node!r}")
