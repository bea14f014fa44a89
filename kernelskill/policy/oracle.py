"""A second opinion on what fires: evaluates the raw YAML trees, sharing no code with the compiler and the engine.

Negation of derived facts is settled by the alternating fixpoint: what can be derived at most, then at least, until both agree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from kernelskill.errors import DecisionError

Tree = Mapping[str, Any]
ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}


class Oracle:
    """The rules as (id, raw rule) pairs; `fired` answers for one set of facts."""

    def __init__(self, rules: Iterable[tuple[str, Tree]]) -> None:
        self._rules = list(rules)
        self._deriving = [(raw["when"], names) for _, raw in self._rules
                          if (names := [action["derive"] for action in raw["then"] if "derive" in action])]
        self._derivable = frozenset(name for _, names in self._deriving for name in names)

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
        known = _Facts(facts, self._derivable, at_least, at_least)
        return frozenset(ident for ident, raw in self._rules if known.holds(raw["when"], True)), at_least

    def holds(self, tree: Tree, facts: Mapping[str, Any], derived: frozenset[str]) -> bool:
        """Does a condition hold, given what was observed and what was derived?"""
        return _Facts(facts, self._derivable, derived, derived).holds(tree, True)

    def _closure(self, facts: Mapping[str, Any], denied_unless: frozenset[str]) -> frozenset[str]:
        """Least set of derived facts, where `not d` counts as true for every d outside `denied_unless`."""
        derived: set[str] = set()
        known = _Facts(facts, self._derivable, derived, denied_unless)
        grew = True
        while grew:
            before = len(derived)
            for when, names in self._deriving:
                if not derived.issuperset(names) and known.holds(when, True):
                    derived.update(names)
            grew = len(derived) > before
        return frozenset(derived)


class _Facts:
    """What is known: observed facts, derived facts (`yes`) and the derived facts that may not be denied (`maybe`)."""

    def __init__(self, observed: Mapping[str, Any], derivable: frozenset[str],
                 yes: Collection[str], maybe: Collection[str]) -> None:
        self.observed, self.derivable, self.yes, self.maybe = observed, derivable, yes, maybe

    def holds(self, tree: Tree, wanted: bool) -> bool:
        """Is the tree known to be `wanted`? An unknown part is known to be neither."""
        if "all" in tree:
            return (all if wanted else any)(self.holds(part, wanted) for part in tree["all"])
        if "any" in tree:
            return (any if wanted else all)(self.holds(part, wanted) for part in tree["any"])
        if "none" in tree:
            return (all if wanted else any)(self.holds(part, not wanted) for part in tree["none"])
        if tree["fact"] in self.derivable:
            return self._derived(tree, wanted)
        return self._observed(tree) is wanted

    def _derived(self, tree: Tree, wanted: bool) -> bool:
        op, value = tree.get("op", "=="), tree.get("value", True)
        asks_presence = {"exists": True, "missing": False, "==": value, "!=": not value}[op] is True
        return tree["fact"] in self.yes if asks_presence is wanted else tree["fact"] not in self.maybe

    def _observed(self, tree: Tree) -> bool | None:
        """True or false; None: not known."""
        op, value, actual = tree.get("op", "=="), tree.get("value", True), self.observed.get(tree["fact"])
        if op in ("exists", "missing"):
            return (actual is not None) is (op == "exists")
        if isinstance(value, dict):
            value = self.observed.get(value["fact"])
        options = value if isinstance(value, list) else [value]
        if actual is None or any(not _same_kind(actual, option) for option in options):
            return None
        if op == "between":
            return bool(value[0] <= actual <= value[1])
        if op in ORDER:
            return ORDER[op](actual, value)
        return (actual in options) is (op in ("==", "in"))


def _same_kind(left: Any, right: Any) -> bool:
    """Truth values, numbers and texts are three kinds."""
    kinds = [(isinstance(value, bool), isinstance(value, str)) for value in (left, right)]
    return right is not None and kinds[0] == kinds[1]
