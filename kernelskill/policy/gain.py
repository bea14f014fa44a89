"""Expected gains: a number, the middle of a range, or a formula over numeric facts."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from kernelskill.model import Value
from kernelskill.policy.conditions import show
from kernelskill.policy.schema import GainFormula, GainRange, is_number

_BINARY: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}
_FUNCTIONS: Mapping[str, Callable[..., float]] = {"min": min, "max": max}
_FACT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
RULE_TRIALS = 4
"""An expert's number weighs as much as this many trials: one lucky run must not overturn a rule."""
LARGEST = 1e6
"""No optimisation gains more; a formula that says so divides by almost nothing."""


class FormulaError(ValueError):
    """A formula that is not plain arithmetic over facts."""


@dataclass(frozen=True)
class Gain:
    """An expected ratio of times, and what had to be assumed."""

    value: float
    note: str = ""


@dataclass(frozen=True)
class Past:
    """What a method brought in earlier runs under one bottleneck of the solution, on its device and family."""

    bottleneck: str
    trials: int
    successes: int
    median: float
    """Median gain of the successes; 1 where there is none."""

    @property
    def per_trial(self) -> float:
        """The gain that a trial brought on average: a trial without success brought nothing."""
        return 1.0 + max(self.median - 1.0, 0.0) * self.successes / self.trials

    def __str__(self) -> str:
        helped = f"{self.successes} of {self.trials} earlier trials under {self.bottleneck} helped"
        return f"{helped}, {show(round(self.median, 2))}x in the middle" if self.successes else helped


def past_of(method: str, bottlenecks: Iterable[str], values: Mapping[str, Value]) -> Past | None:
    """The method's experience under the bottleneck with the most trials; None where the facts hold none."""
    trials = {name: int(values.get(f"experience_trials.{method}.{name}", 0)) for name in bottlenecks}
    name = min(trials, key=lambda each: (-trials[each], each))
    if not trials[name]:
        return None
    successes, median = (values.get(f"experience_{what}.{method}.{name}") for what in ("successes", "gain"))
    return Past(name, trials[name], int(successes or 0), float(median or 1.0))


def scaled(gain: Gain, past: Past) -> Gain:
    """The rule's gain drawn towards what was seen: the geometric mean, the rule counting as much as `RULE_TRIALS` trials."""
    weight = past.trials / (past.trials + RULE_TRIALS)
    value = gain.value ** (1 - weight) * past.per_trial ** weight
    note = f"{show(round(gain.value, 2))}x by the rule; {past}"
    return Gain(value, f"{gain.note}; {note}" if gain.note else note)


def formula_facts(text: str) -> list[str]:
    """Facts that the formula reads, each once. Raises FormulaError when the formula is not plain arithmetic."""
    names: dict[str, None] = {}
    _walk(_parse(text), lambda name: names.setdefault(name) or 1.0)
    return list(names)


def evaluate(text: str, values: Mapping[str, Value]) -> float:
    """Value of the formula. Raises KeyError (a fact is not known), ZeroDivisionError, FormulaError."""
    def read(name: str) -> float:
        value = values[name]
        if not is_number(value):
            raise FormulaError(f"{name} is not a number")
        return float(value)

    return _walk(_parse(text), read)


def expected(gain: float | str | GainRange | GainFormula, values: Mapping[str, Value], past: Past | None = None) -> Gain:
    """The gain that a proposal promises, drawn towards what the method brought before.

    It is at least 1, and at most `headroom` where that fact is known.
    """
    if isinstance(gain, GainRange):
        raw = Gain((gain.low + gain.high) / 2)
    elif isinstance(gain, (str, GainFormula)):
        raw = _from_formula(gain if isinstance(gain, GainFormula) else GainFormula(formula=gain), values)
    else:
        raw = Gain(float(gain))
    raw = Gain(min(max(raw.value, 1.0), LARGEST), raw.note)
    if past is not None:
        raw = scaled(raw, past)
    value = raw.value
    headroom = values.get("headroom")
    if is_number(headroom) and value > max(float(headroom or 0), 1.0):
        note = f"{raw.note + '; ' if raw.note else ''}{show(round(value, 2))}x capped by headroom {show(headroom)}"
        return Gain(max(float(headroom or 0), 1.0), note)
    return Gain(value, raw.note)


def _from_formula(gain: GainFormula, values: Mapping[str, Value]) -> Gain:
    try:
        return Gain(evaluate(gain.formula, values))
    except KeyError as error:
        return Gain(float(gain.default), f"{error.args[0]} is unknown, so {show(gain.default)}x is assumed")
    except (ZeroDivisionError, OverflowError):
        return Gain(float(gain.default), f"{gain.formula} has no value, so {show(gain.default)}x is assumed")


@lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise FormulaError(f"not a formula: {text!r}") from error


def _walk(node: ast.expr, read: Callable[[str], float]) -> float:
    """Evaluates the few node types that a formula may hold."""
    if isinstance(node, ast.Constant) and is_number(node.value):
        return float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_walk(node.left, read), _walk(node.right, read))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_walk(node.operand, read)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        if len(node.args) < 2 or node.keywords:
            raise FormulaError(f"{node.func.id} needs two arguments or more")
        return _FUNCTIONS[node.func.id](*(_walk(argument, read) for argument in node.args))
    name = ast.unparse(node)
    if isinstance(node, (ast.Name, ast.Attribute)) and _FACT.fullmatch(name):
        return read(name)
    raise FormulaError(f"`{name}` is not allowed: a formula holds facts, numbers, + - * / min max and parentheses")
