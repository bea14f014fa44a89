"""Conditions as literals: disjunctive normal form, and what each literal says about given facts."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal as OneOf

from kernelskill.model import Value
from kernelskill.policy.schema import All, Any_, Condition, FactName, None_, Test, is_number
from kernelskill.yamlsource import Keys

Verdict = OneOf["holds", "fails", "unknown"]
COMPARE: Mapping[str, Callable[[Value, Value], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}
COMPLEMENT = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "exists": "absent", "absent": "exists"}
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "exists": "missing", "missing": "exists",
            "in": "not in", "not_in": "in", "between": "not between"}


@dataclass(frozen=True)
class Literal:
    """One comparison that needs no brackets; `other` names the device fact that stands in for `value`."""

    fact: str
    op: str
    """A key of `COMPLEMENT`."""
    value: Value | None = None
    other: str = ""

    def __str__(self) -> str:
        if self.op in ("exists", "absent"):
            return f"{self.fact} is {'known' if self.op == 'exists' else 'not known'}"
        if self.value is True and self.op in ("==", "!="):
            return self.fact if self.op == "==" else f"not {self.fact}"
        return f"{self.fact} {self.op} {self.other or show(self.value)}"

    def negated(self) -> Literal:
        """The literal that is true where this one is known to be false."""
        return Literal(self.fact, COMPLEMENT[self.op], self.value, self.other)

    def verdict(self, values: Mapping[str, Value]) -> Verdict:
        """What the facts say; `unknown` when a fact is not known or has another type."""
        if self.op in ("exists", "absent"):
            return "holds" if (self.fact in values) == (self.op == "exists") else "fails"
        actual, bound = values.get(self.fact), values.get(self.other) if self.other else self.value
        if actual is None or bound is None or kind_of(actual) != kind_of(bound):
            return "unknown"
        return "holds" if COMPARE[self.op](actual, bound) else "fails"


Conjunction = tuple[Literal, ...]


def kind_of(value: Value) -> str:
    """`bool`, `number` or `text`: kinds never compare with each other."""
    return "bool" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def show(value: Value | None) -> str:
    """A value as people write it: `true`, `94.3`, `16`, `float32`."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"
    return str(value)


def parts(condition: Condition) -> list[Condition]:
    """The parts of a group; none for a comparison."""
    if isinstance(condition, All):
        return condition.all
    if isinstance(condition, Any_):
        return condition.any
    return condition.none if isinstance(condition, None_) else []


def tests(condition: Condition, where: Keys = ("when",)) -> Iterator[tuple[Keys, Test]]:
    """All comparisons of a condition in order, each with its path of keys inside the rule."""
    if isinstance(condition, Test):
        yield where, condition
        return
    (group,) = type(condition).model_fields
    for index, part in enumerate(parts(condition)):
        yield from tests(part, (*where, group, index))


def literals(test: Test, derived: Collection[str]) -> list[Conjunction]:
    """A comparison as a disjunction of conjunctions. Derived facts are either derived or not, never unknown."""
    op, value = test.op, test.value
    if test.fact in derived:
        wanted = op == "exists" or (op == "==" and value is True) or (op == "!=" and value is False)
        return [(Literal(test.fact, "==" if wanted else "!=", True),)]
    if op in ("exists", "missing"):
        return [(Literal(test.fact, "exists" if op == "exists" else "absent"),)]
    if isinstance(value, FactName):
        return [(Literal(test.fact, op, other=value.fact),)]
    if not isinstance(value, list):
        return [(Literal(test.fact, op, value),)]
    if op == "between":
        return [(Literal(test.fact, ">=", value[0]), Literal(test.fact, "<=", value[1]))]
    if op == "in":
        return [(Literal(test.fact, "==", item),) for item in value]
    return [tuple(Literal(test.fact, "!=", item) for item in value)]


def size(condition: Condition, derived: Collection[str], negated: bool = False) -> int:
    """Number of conjunctions that `normal_form` would give, without building them."""
    if isinstance(condition, Test):
        return len(normal_form(condition, derived, negated))
    counts = [size(part, derived, negated ^ isinstance(condition, None_)) for part in parts(condition)]
    return sum(counts) if _is_disjunction(condition, negated) else math.prod(counts)


def normal_form(condition: Condition, derived: Collection[str], negated: bool = False) -> list[Conjunction]:
    """The condition as a disjunction of conjunctions, in a fixed order, each literal once."""
    if isinstance(condition, Test):
        form = literals(condition, derived)
        return _negate(form) if negated else form
    forms = [normal_form(part, derived, negated ^ isinstance(condition, None_)) for part in parts(condition)]
    return [conjunction for form in forms for conjunction in form] if _is_disjunction(condition, negated) else _product(forms)


def _is_disjunction(group: Condition, negated: bool) -> bool:
    return isinstance(group, Any_) != negated


def _product(forms: list[list[Conjunction]]) -> list[Conjunction]:
    return [tuple(dict.fromkeys(itertools.chain.from_iterable(choice))) for choice in itertools.product(*forms)]


def _negate(form: list[Conjunction]) -> list[Conjunction]:
    """Not (a and b or c) = (not a or not b) and not c."""
    return _product([[(literal.negated(),) for literal in conjunction] for conjunction in form])


def verdict(test: Test, values: Mapping[str, Value], derived: Collection[str]) -> Verdict:
    """What the facts (derived ones included) say about one comparison."""
    form = literals(test, derived)
    if test.fact in derived:
        return "holds" if (test.fact in values) == (form[0][0].op == "==") else "fails"
    found = [{literal.verdict(values) for literal in conjunction} for conjunction in form]
    if {"holds"} in found:
        return "holds"
    return "unknown" if all("unknown" in verdicts for verdicts in found) else "fails"


def phrase(test: Test, negated: bool = False) -> str:
    """The comparison in words: `dram_throughput_pct >= 60`, `reduction_style in [none, serial]`, `not uses_restrict`."""
    op = OPPOSITE[test.op] if negated else test.op
    if op in ("missing", "exists"):
        return f"{test.fact} {'known' if op == 'exists' else 'not known'}"
    if isinstance(test.value, list):
        return f"{test.fact} {op} [{', '.join(map(show, test.value))}]"
    if isinstance(test.value, bool) and op in ("==", "!="):
        return test.fact if test.value == (op == "==") else f"not {test.fact}"
    return f"{test.fact} {op} {test.value.fact if isinstance(test.value, FactName) else show(test.value)}"


def margin(test: Test, values: Mapping[str, Value]) -> float | None:
    """How far the number is from the threshold it misses; None where that means nothing."""
    actual = values.get(test.fact)
    bound = values.get(test.value.fact) if isinstance(test.value, FactName) else test.value
    bounds = bound if isinstance(bound, list) and test.op == "between" else [bound]
    if test.op not in ("<", "<=", ">", ">=", "between") or not is_number(actual) or not all(map(is_number, bounds)):
        return None
    return min(abs(float(edge) - float(actual)) for edge in bounds)  # type: ignore[arg-type]
