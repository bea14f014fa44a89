"""Checks of logic: what can never fire, what never matters, and what goes in circles."""
# ruff: noqa: D102 - `validate` and `finalize` are documented by Validator

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from kernelskill.errors import RuleError
from kernelskill.issues import Issue
from kernelskill.policy.compile import MAX_CONJUNCTIONS, Variant, strata
from kernelskill.policy.conditions import Conjunction, Literal, normal_form, parts, phrase, size
from kernelskill.policy.implication import contradict, form_implies, implies
from kernelskill.policy.rulebook import LoadedRule
from kernelskill.policy.schema import Any_, Condition, None_, Prefer, Test
from kernelskill.policy.validator import Validator
from kernelskill.yamlsource import Keys

Held = list[tuple[Literal, str]]
"""What is known to hold at a place of a condition, and its words."""


@dataclass(frozen=True)
class _Edge:
    """One preference: where it stands and what it says."""

    winner: str
    loser: str
    rule: LoadedRule
    index: int


class ConflictingConditions(Validator):
    """Two conditions of one conjunction that can never hold together."""

    check = "contradiction"

    def validate(self, rule: LoadedRule) -> Iterator[Issue]:
        for where, test, negated, held in walk(rule.rule.when, self.derived):
            for literal in needed(test, negated, self.derived):
                clash = next((words for other, words in held if contradict(literal, other)), None)
                if clash:
                    yield self.issue(rule, where, f"`{phrase(test, negated)}` can never hold together with `{clash}`",
                                     "the rule (or this branch of it) never fires: correct one of the two")
                    break


class RedundantCondition(Validator):
    """A condition that already follows from another one of the same conjunction."""

    check = "redundant-condition"
    severity = "warning"

    def validate(self, rule: LoadedRule) -> Iterator[Issue]:
        for where, test, negated, held in walk(rule.rule.when, self.derived):
            mine = needed(test, negated, self.derived)
            covers = [next((words for have, words in held if implies(have, need)), None) for need in mine]
            if mine and all(covers):
                yield self.issue(rule, where, f"`{phrase(test, negated)}` already follows from `{covers[0]}`", "leave it out")


class UnreachableRule(Validator):
    """A rule that waits for derived facts which only unreachable rules derive."""

    check = "unreachable-rule"

    def finalize(self) -> Iterator[Issue]:
        for rule in self.book.rules:
            waiting = [self._missing(conjunction) for conjunction in forms(rule, self.derived)]
            if waiting and all(waiting):
                yield self.issue(rule, ("when",), f"rule {rule.rule.id} can never fire: only rules that need "
                                                  f"`{waiting[0][0].fact}` derive it", "give the circle a start")

    def _missing(self, conjunction: Conjunction) -> list[Literal]:
        """Derived facts of the conjunction that are derived somewhere, but can never come about."""
        return [lit for lit in conjunction if lit.fact in self.derived and lit.op == "==" and lit.fact not in self._possible]

    @cached_property
    def _possible(self) -> frozenset[str]:
        """Derived facts that can come about when every measured condition may hold."""
        found = set(self.derived - self.book.derived)
        while True:
            more = {name for rule in self.book.rules if rule.derives for conj in forms(rule, self.derived)
                    if all(lit.fact in found for lit in conj if lit.fact in self.derived and lit.op == "==")
                    for name in rule.derives} - found
            if not more:
                return frozenset(found)
            found |= more


class NegationCycle(Validator):
    """A fact that is derived because it is not derived."""

    check = "negation-cycle"

    def finalize(self) -> Iterator[Issue]:
        variants = [Variant(rule, index, conjunction) for rule in self.book.rules
                    for index, conjunction in enumerate(forms(rule, self.derived))]
        try:
            strata(variants)
        except RuleError as error:
            assert error.location is not None
            yield Issue(self.check, self.severity, error.location, error.message, error.hint)


class PreferenceCycle(Validator):
    """Methods that rules which can fire together prefer to one another in a circle."""

    check = "prefer-cycle"

    def finalize(self) -> Iterator[Issue]:
        edges = [_Edge(action.prefer, action.over, rule, index) for rule in self.book.rules
                 for index, action in enumerate(rule.rule.then) if isinstance(action, Prefer)]
        for edge in edges:
            circle = self._circle([edge], forms(edge.rule, self.derived), edges)
            if circle:
                names = " over ".join([edge.winner, *(step.loser for step in circle)])
                rules = ", ".join(dict.fromkeys(step.rule.rule.id for step in circle))
                yield self.issue(edge.rule, ("then", edge.index), f"preferences go in a circle: {names} (rules {rules})",
                                 "drop one of them, or make their conditions exclude each other")

    def _circle(self, way: list[_Edge], together: list[Conjunction], edges: list[_Edge]) -> list[_Edge]:
        """A way back to where it started, all of whose rules can fire `together`; empty when there is none."""
        if way[-1].loser == way[0].winner:
            return way
        for edge in edges:
            if edge.winner == way[-1].loser and edge.loser not in {step.loser for step in way}:
                both = [have + more for have in together for more in forms(edge.rule, self.derived) if _compatible(have, more)]
                found = self._circle([*way, edge], both, edges) if both else []
                if found:
                    return found
        return []


class ShadowedRule(Validator):
    """A rule that never changes a decision, because another one does the same at least as often and as strongly."""

    check = "shadowed-rule"
    severity = "warning"

    def finalize(self) -> Iterator[Issue]:
        by_actions: dict[str, list[LoadedRule]] = {}
        for rule in self.book.rules:
            by_actions.setdefault(repr(sorted(map(repr, rule.rule.then))), []).append(rule)
        for same in by_actions.values():
            for index, rule in enumerate(same):
                strong = next((other for other in same[:index] if _implies(rule, other, self.derived)), None)
                if strong:
                    yield self.issue(rule, ("id",), f"rule {rule.rule.id} changes nothing: {strong.rule.id} does the same "
                                                    "whenever it fires", f"drop it; the other one: {strong.at('id')}")


class AlwaysVetoed(Validator):
    """A proposal that a veto always meets."""

    check = "always-vetoed"
    severity = "warning"

    def finalize(self) -> Iterator[Issue]:
        vetoing = [(str(action).split()[1], rule) for rule in self.book.rules for action in rule.rule.then
                   if str(action).startswith("veto ")]
        for rule in self.book.rules:
            for method, veto in vetoing:
                if method in rule.proposes and _implies(rule, veto, self.derived):
                    yield self.issue(rule, ("id",), f"rule {rule.rule.id} proposes {method} in vain: {veto.rule.id} vetoes it "
                                                    "whenever it fires", f"the veto: {veto.at('id')}")


def forms(rule: LoadedRule, derived: Collection[str]) -> list[Conjunction]:
    """The rule's conjunctions; none when there are too many to look at (that is another check's finding)."""
    return normal_form(rule.rule.when, derived) if size(rule.rule.when, derived) <= MAX_CONJUNCTIONS else []


def needed(test: Test, negated: bool, derived: Collection[str]) -> list[Literal]:
    """Literals that must all hold for the comparison; empty where it is a choice."""
    form = normal_form(test, derived, negated)
    return list(form[0]) if len(form) == 1 else []


def walk(condition: Condition, derived: Collection[str], where: Keys = ("when",), negated: bool = False,
         held: Held | None = None) -> Iterator[tuple[Keys, Test, bool, Held]]:
    """Every comparison with what must hold beside it: earlier parts of its conjunctions, not those of other branches."""
    held = [] if held is None else held
    if isinstance(condition, Test):
        yield where, condition, negated, list(held)
        held += [(literal, phrase(condition, negated)) for literal in needed(condition, negated, derived)]
        return
    (group,) = type(condition).model_fields
    inner, branches = negated ^ isinstance(condition, None_), isinstance(condition, Any_) != negated
    for index, part in enumerate(parts(condition)):
        yield from walk(part, derived, (*where, group, index), inner, list(held) if branches else held)


def _implies(rule: LoadedRule, other: LoadedRule, derived: Collection[str]) -> bool:
    mine = forms(rule, derived)
    return rule is not other and bool(mine) and form_implies(mine, forms(other, derived))


def _compatible(one: Conjunction, other: Conjunction) -> bool:
    return not any(contradict(mine, theirs) for mine in one for theirs in other)
