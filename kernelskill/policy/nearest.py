"""The smallest change of facts under which a method would have been chosen.

A search over changes, fewest changed facts first: where the method was not proposed, every way to make a proposing rule fire is
tried; where it lost, every way to keep the rule that beat it from firing. What is found is decided again before it is told.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelskill.model import Decision, Value
from kernelskill.policy.agenda import Fired, Selection, select
from kernelskill.policy.conditions import Conjunction, Literal, normal_form, show
from kernelskill.policy.deciding import Policy
from kernelskill.policy.oracle import Oracle
from kernelskill.policy.replay import what_if
from kernelskill.policy.rulebook import LoadedRule, RuleBook
from kernelskill.policy.schema import Prefer, Propose, Require, Stop, Veto
from kernelskill.vocabulary import lookup

Changes = dict[str, Value | None]
"""Fact -> its other value; None: not known."""
STEP = 1e-3
"""How far beyond a strict threshold a changed number goes, relative to it."""


@dataclass(frozen=True)
class Nearest:
    """A change that makes the difference, and the decision that it leads to."""

    changes: Mapping[str, Value | None]
    before: Decision
    after: Decision

    def __str__(self) -> str:
        """One line a fact: what it is and what it would have to be."""
        known = self.before.facts
        return "\n".join(f"{name} = {show(value)} instead of {show(known[name].value if name in known else None)}"
                         for name, value in sorted(self.changes.items()))


def nearest(decision: Decision, method: str, policy: Policy, limit: int = 3000) -> Nearest | None:
    """The smallest change that a search over `limit` worlds finds; None when it finds none."""
    search = _Search(policy.book, method, {name: fact.value for name, fact in decision.facts.items()})
    for changes in search.solutions(limit):
        after = what_if(decision, policy, changes)
        if after.chosen is not None and after.chosen.method == method:
            return Nearest(changes, decision, after)
    return None


class _Search:
    def __init__(self, book: RuleBook, method: str, values: Mapping[str, Value]) -> None:
        self.book, self.method, self.values = book, method, values
        self.oracle = Oracle((rule.id, rule.raw) for rule in book.rules)
        self.forms = {rule.id: normal_form(rule.rule.when, book.derived) for rule in book.rules}

    def solutions(self, limit: int) -> Iterator[Changes]:
        """Changes under which the method is chosen, fewest facts first."""
        order = itertools.count()
        queue: list[tuple[int, int, Changes]] = [(0, next(order), {})]
        seen: set[frozenset[tuple[str, Value | None]]] = set()
        for _ in range(limit):
            if not queue:
                return
            _, _, changes = heapq.heappop(queue)
            world = self._world(changes)
            fired, derived = self.oracle.fired(world)
            rules = [self.book.by_id[ident] for ident in sorted(fired)]
            known = world | dict.fromkeys(derived, True)
            selection = select([Fired(rule.id, rule.rule.priority, rule.rule.then) for rule in rules], known)
            if selection.chosen is not None and selection.chosen.method == self.method:
                yield changes
                continue
            for repair in self._repairs(selection, rules, known):
                merged = changes | repair
                key = frozenset(merged.items())
                if not repair.keys() & changes.keys() and key not in seen:
                    seen.add(key)
                    heapq.heappush(queue, (len(merged), next(order), merged))

    def _world(self, changes: Changes) -> dict[str, Value]:
        return {name: value for name, value in (dict(self.values) | changes).items() if value is not None}

    def _repairs(self, selection: Selection, rules: list[LoadedRule], known: Mapping[str, Value]) -> Iterator[Changes]:
        """Changes that remove one obstacle between the method and being chosen."""
        stops = [rule for rule in rules if any(isinstance(action, Stop) for action in rule.rule.then)]
        mine = next((c for c in selection.candidates if c.method == self.method), None)
        if stops:
            yield from self._silence(stops[0], known)
        elif mine is None:
            for rule in self.book.rules:
                if self.method in rule.proposes:
                    yield from self._fire(rule, known, frozenset())
        else:
            best = selection.chosen.method if selection.chosen else ""
            for rule in rules:
                if any(self._against(action, best) for action in rule.rule.then):
                    yield from self._silence(rule, known)
            for rule in self.book.rules:  # a stronger proposal of its own helps too
                if self.method in rule.proposes and rule not in rules:
                    yield from self._fire(rule, known, frozenset())

    def _against(self, action: object, best: str) -> bool:
        """Does the action hold the method back, or put the chosen one forward?"""
        if isinstance(action, Veto):
            return action.veto == self.method
        if isinstance(action, Require):
            return action.before == self.method
        if isinstance(action, Prefer):
            return action.over == self.method
        return isinstance(action, Propose) and action.propose == best

    def _fire(self, rule: LoadedRule, known: Mapping[str, Value], seen: frozenset[str]) -> Iterator[Changes]:
        """Ways to make the rule fire."""
        if rule.id in seen:
            return
        for conjunction in self.forms[rule.id]:
            yield from self._hold(conjunction, known, seen | {rule.id})

    def _hold(self, conjunction: Conjunction, known: Mapping[str, Value], seen: frozenset[str]) -> Iterator[Changes]:
        """Ways to make every literal of the conjunction hold."""
        failing = [literal for literal in conjunction if not self._holds(literal, known)]
        choices = [list(itertools.islice(self._make(literal, known, seen), 12)) for literal in failing]
        for combination in itertools.islice(itertools.product(*choices), 60):
            merged: Changes = {}
            if all(_agree(merged, change) for change in combination):
                yield merged

    def _holds(self, literal: Literal, known: Mapping[str, Value]) -> bool:
        if literal.fact in self.book.derived:
            return (literal.fact in known) == (literal.op == "==")
        return literal.verdict(known) == "holds"

    def _make(self, literal: Literal, known: Mapping[str, Value], seen: frozenset[str]) -> Iterator[Changes]:
        """Ways to make one literal hold."""
        if literal.fact not in self.book.derived:
            yield from _satisfy(literal, known)
            return
        for rule in self.book.rules:
            if literal.fact in rule.derives:
                fired = any(all(self._holds(lit, known) for lit in form) for form in self.forms[rule.id])
                if literal.op == "==":
                    yield from self._fire(rule, known, seen)
                elif fired:
                    yield from self._silence(rule, known, seen)

    def _silence(self, rule: LoadedRule, known: Mapping[str, Value], seen: frozenset[str] = frozenset()) -> Iterator[Changes]:
        """Ways to keep the rule from firing through the conjunction that holds."""
        if rule.id in seen:
            return
        holding = [form for form in self.forms[rule.id] if all(self._holds(literal, known) for literal in form)]
        for literal in dict.fromkeys(literal for form in holding for literal in form):
            yield from self._make(literal.negated(), known, seen | {rule.id})


def _agree(merged: Changes, change: Changes) -> bool:
    """Adds a change; False when it wants another value of the same fact."""
    if any(name in merged and merged[name] != value for name, value in change.items()):
        return False
    merged.update(change)
    return True


def _satisfy(literal: Literal, known: Mapping[str, Value]) -> Iterator[Changes]:
    """Values of the fact for which a literal on a measured fact holds, nearest first."""
    if literal.op == "absent":
        yield {literal.fact: None}
        return
    bound = known.get(literal.other) if literal.other else literal.value
    values: list[Value] = []
    if literal.op == "exists":
        values = _possible(literal.fact)[:1]
    elif isinstance(bound, (bool, str)):
        values = [bound] if literal.op == "==" else [value for value in _possible(literal.fact) if value != bound]
    elif bound is not None:
        values = [_beyond(literal.op, bound, known.get(literal.fact))]
    for value in values:
        yield {literal.fact: value}


def _beyond(op: str, bound: float, actual: Value | None) -> Value:
    """The number nearest to the threshold that is on the right side of it."""
    whole = isinstance(bound, int) and (actual is None or isinstance(actual, int))
    step = 1 if whole else max(abs(bound) * STEP, STEP)
    return bound + step if op in (">", "!=") else bound - step if op == "<" else bound


def _possible(fact: str) -> list[Value]:
    """Values that the vocabulary allows; of a number the lowest."""
    spec = lookup(fact)
    if spec is None or spec.kind == "number":
        return [spec.low or 0.0] if spec else []
    return [True, False] if spec.kind == "bool" else list(spec.values)
