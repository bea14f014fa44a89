"""A second opinion on what fires: evaluates the raw YAML trees, sharing no code with the compiler and the engine.

Negation of derived facts is settled by the alternating fixpoint: what can be derived at most, then at least, until both agree.
Each tree becomes a nest of closures once; the closures have the shape of the tree, nothing is rearranged. They are called with
the observed facts, the derived facts (`yes`) and the derived facts that may not be denied (`maybe`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from kernelskill.errors import DecisionError

Tree = Mapping[str, Any]
ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}
COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {**ORDER, "==": operator.eq, "!=": operator.ne}
Predicate = Callable[[Mapping[str, Any], Collection[str], Collection[str]], bool]


class Oracle:
    """The rules as (id, raw rule) pairs; `fired` answers for one set of facts."""

    def __init__(self, rules: Iterable[tuple[str, Tree]]) -> None:
        rules = list(rules)
        derived = [[action["derive"] for action in raw["then"] if "derive" in action] for _, raw in rules]
        self._derivable = frozenset(name for names in derived for name in names)
        self._rules = [(ident, _predicate(raw["when"], True, self._derivable)) for ident, raw in rules]
        self._deriving = [(holds, names) for (_, holds), names in zip(self._rules, derived, strict=True) if names]

    def fired(self, facts: Mapping[str, Any]) -> tuple[frozenset[str], frozenset[str]]:
        """Ids of the rules that fire, and the derived facts. Raises DecisionError when negation has no answer."""
        at_most = self._closure(facts, frozenset())
        while True:
            at_least = self._closure(facts, at_most)
            again = self._closure(facts, at_least)
            if again == at_most:
                break
            at_most = again
        if at_least != at_most:
            unsettled = ", ".join(sorted(at_most - at_least))
            raise DecisionError(f"rules contradict themselves through negation: {unsettled}")
        return frozenset([ident for ident, holds in self._rules if holds(facts, at_least, at_least)]), at_least

    def holds(self, tree: Tree, facts: Mapping[str, Any], derived: frozenset[str]) -> bool:
        """Does a condition hold, given what was observed and what was derived?"""
        return _predicate(tree, True, self._derivable)(facts, derived, derived)

    def _closure(self, facts: Mapping[str, Any], denied_unless: frozenset[str]) -> frozenset[str]:
        """Least set of derived facts, where `not d` counts as true for every d outside `denied_unless`."""
        derived: set[str] = set()
        grew = True
        while grew:
            before = len(derived)
            for holds, names in self._deriving:
                if not derived.issuperset(names) and holds(facts, derived, denied_unless):
                    derived.update(names)
            grew = len(derived) > before
        return frozenset(derived)


def _predicate(tree: Tree, wanted: bool, derivable: frozenset[str]) -> Predicate:
    """Is the tree known to be `wanted`? An unknown part is known to be neither."""
    for group in ("all", "any", "none"):
        if group in tree:
            parts = [_predicate(part, wanted is not (group == "none"), derivable) for part in tree[group]]
            return _every(parts) if (group == "any") is not wanted else _some(parts)
    return _derived(tree, wanted) if tree["fact"] in derivable else _observed(tree, wanted)


def _every(parts: list[Predicate]) -> Predicate:
    def every(observed: Mapping[str, Any], yes: Collection[str], maybe: Collection[str]) -> bool:
        for part in parts:  # noqa: SIM110 - a generator costs more than the comparisons
            if not part(observed, yes, maybe):
                return False
        return True

    return every


def _some(parts: list[Predicate]) -> Predicate:
    def some(observed: Mapping[str, Any], yes: Collection[str], maybe: Collection[str]) -> bool:
        for part in parts:  # noqa: SIM110 - as above
            if part(observed, yes, maybe):
                return True
        return False

    return some


def _derived(tree: Tree, wanted: bool) -> Predicate:
    fact, op, value = tree["fact"], tree.get("op", "=="), tree.get("value", True)
    asks_presence = {"exists": True, "missing": False, "==": value, "!=": not value}[op] is True
    if asks_presence is wanted:
        return lambda observed, yes, maybe: fact in yes
    return lambda observed, yes, maybe: fact not in maybe


def _observed(tree: Tree, wanted: bool) -> Predicate:
    fact, op, value = tree["fact"], tree.get("op", "=="), tree.get("value", True)
    if op in ("exists", "missing"):
        there = wanted is (op == "exists")
        return lambda observed, yes, maybe: (fact in observed) is there
    if isinstance(value, bool) and op not in ORDER:
        sought = value if (op == "==") is wanted else not value
        return lambda observed, yes, maybe: observed.get(fact) is sought
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _number(fact, COMPARE[op], value, wanted)
    if isinstance(value, dict):
        return lambda observed, yes, maybe: _compared(observed.get(fact), op, observed.get(value["fact"]), wanted)
    return lambda observed, yes, maybe: _compared(observed.get(fact), op, value, wanted)


def _number(fact: str, compare: Callable[[Any, Any], bool], value: float, wanted: bool) -> Predicate:
    """The commonest comparison, with a number of the rule: its kind is settled before."""
    def number(observed: Mapping[str, Any], yes: Collection[str], maybe: Collection[str]) -> bool:
        actual = observed.get(fact)
        return isinstance(actual, (int, float)) and not isinstance(actual, bool) and compare(actual, value) is wanted

    return number


def _compared(actual: Any, op: str, value: Any, wanted: bool) -> bool:
    """Is the comparison known to be `wanted`? It is not when a side is missing or of another kind."""
    if actual is None or value is None:
        return False
    if isinstance(value, list):
        if any(_kind(actual) != _kind(option) for option in value):
            return False
        holds = value[0] <= actual <= value[1] if op == "between" else (actual in value) is (op == "in")
        return holds is wanted
    if _kind(actual) is not _kind(value):
        return False
    return COMPARE[op](actual, value) is wanted


def _kind(value: Any) -> type:
    """Truth values, numbers and texts are three kinds."""
    return bool if isinstance(value, bool) else str if isinstance(value, str) else float
