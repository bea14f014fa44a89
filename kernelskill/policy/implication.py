"""When does one comparison follow from another? Enough for lints: it never says yes wrongly, and may miss a case."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.policy.conditions import COMPARE, Conjunction, Literal, kind_of
from kernelskill.policy.schema import is_number

_FOLLOWS = {  # (premise, conclusion) -> relation that premise's threshold must have to the conclusion's
    (">=", ">="): ">=", (">=", ">"): ">", (">=", "!="): ">", (">", ">="): ">=", (">", ">"): ">=", (">", "!="): ">=",
    ("<=", "<="): "<=", ("<=", "<"): "<", ("<=", "!="): "<", ("<", "<="): "<=", ("<", "<"): "<=", ("<", "!="): "<=",
}


def implies(premise: Literal, conclusion: Literal) -> bool:
    """Wherever the premise holds, the conclusion holds."""
    if premise == conclusion:
        return True
    if premise.fact != conclusion.fact:
        return False
    if conclusion.op == "exists":
        return premise.op != "absent"
    if premise.other or conclusion.other or premise.value is None or conclusion.value is None:
        return False
    if kind_of(premise.value) != kind_of(conclusion.value):
        return False
    if premise.op == "==":
        return COMPARE[conclusion.op](premise.value, conclusion.value)
    relation = _FOLLOWS.get((premise.op, conclusion.op))
    return bool(relation and is_number(premise.value) and COMPARE[relation](premise.value, conclusion.value))


def contradict(one: Literal, other: Literal) -> bool:
    """The two can never hold together."""
    if one.fact == other.fact and "absent" in (one.op, other.op):
        return one.op != other.op
    return implies(one, other.negated()) or implies(other, one.negated())


def conjunction_implies(premise: Conjunction, conclusion: Conjunction) -> bool:
    """Every literal of the conclusion follows from some literal of the premise."""
    return all(any(implies(have, need) for have in premise) for need in conclusion)


def form_implies(premise: Sequence[Conjunction], conclusion: Sequence[Conjunction]) -> bool:
    """Every way to make the premise hold makes the conclusion hold."""
    return all(any(conjunction_implies(have, need) for need in conclusion) for have in premise)
