"""One decision: facts in, rules fired (engine and oracle must agree), one method or the stop out."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache

from kernelskill.errors import DecisionError
from kernelskill.model import Decision, Fact, FiredRule, MethodApplication, Value
from kernelskill.policy.agenda import Fired, select
from kernelskill.policy.compile import Variant, build_program
from kernelskill.policy.conditions import kind_of, show
from kernelskill.policy.engine import Firing, engine_for
from kernelskill.policy.oracle import Oracle
from kernelskill.policy.rulebook import LoadedRule, RuleBook
from kernelskill.vocabulary import lookup

PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*)\}")


class Policy:
    """Decides with one rule book. Safe to call from several threads: decisions wait for one another."""

    def __init__(self, book: RuleBook) -> None:
        self.book = book
        self._program = build_program(book)
        self._engine = engine_for(book.digest, lambda: self._program)

    @cached_property
    def _oracle(self) -> Oracle:
        return Oracle((rule.id, rule.raw) for rule in self.book.rules)

    @cached_property
    def _replacing(self) -> list[tuple[LoadedRule, LoadedRule]]:
        """Rules of later folders, each with the one that it stands in for."""
        return [(rule, rule.replaced) for rule in self.book.rules if rule.replaced is not None]

    @cached_property
    def _variants(self) -> Mapping[tuple[str, int], Variant]:
        return {(variant.rule.id, variant.index): variant for variant in self._program.variants}

    def decide(self, facts: Mapping[str, Fact]) -> Decision:
        """The decision for these facts. Raises DecisionError on unusable facts and when engine and oracle disagree."""
        values = check_facts(facts, self.book)
        firing = self._engine.run(values)
        self._check(firing, values)
        known = values | dict.fromkeys(firing.derived, True)
        variants = list(self._first_variants(firing))
        fired = [self._fired(variant, known) for variant in variants]
        selection = select([_for_agenda(*pair, known) for pair in zip(variants, fired, strict=True)], known)
        best = selection.chosen
        return Decision(
            outcome="method" if best else "stop", stop_reason=selection.stop_reason, reason=selection.reason,
            chosen=MethodApplication(method=best.method, params=dict(best.params)) if best else None,
            facts={name: facts[name] for name in sorted(facts)}, derived=dict.fromkeys(sorted(firing.derived), True),
            fired=tuple(fired), candidates=selection.candidates,
            replacements=tuple(self._replacements({rule.rule for rule in fired}, values, firing.derived)),
            rules_digest=self.book.digest)

    def _check(self, firing: Firing, values: Mapping[str, Value]) -> None:
        """Engine and oracle fired the same rules and derived the same facts, else DecisionError."""
        rules, derived = self._oracle.fired(values)
        by_engine = {rule for rule, _ in firing.fired}
        if by_engine == rules and firing.derived == derived:
            return
        only_engine, only_oracle = sorted(by_engine - rules), sorted(rules - by_engine)
        raise DecisionError(
            f"the rule engine and its check disagree: only the engine fired {only_engine}, only the check {only_oracle}, "
            f"derived {sorted(firing.derived ^ derived)}", hint="nothing was chosen; report it with the facts of this decision")

    def _replacements(self, fired: Collection[str], values: Mapping[str, Value], derived: frozenset[str]) -> Iterator[str]:
        """Every rule of a later folder that fired, or whose forerunner would have: both change what is decided."""
        for rule, replaced in self._replacing:
            now, before = rule.id in fired, self._oracle.holds(replaced.raw["when"], values, derived)
            if now or before:
                yield (f"{rule.id} at {rule.at('id')} {'fired' if now else 'did not fire'}; the rule that it replaces, "
                       f"at {replaced.at('id')}, would {'' if before else 'not '}have fired")

    def _first_variants(self, firing: Firing) -> Iterable[Variant]:
        """Of every fired rule its first conjunction that fired, in the order of the book."""
        first: dict[str, int] = {}
        for rule, index in firing.fired:
            first[rule] = min(index, first.get(rule, index))
        return (self._variants[rule.id, first[rule.id]] for rule in self.book.rules if rule.id in first)

    @staticmethod
    def _fired(variant: Variant, values: Mapping[str, Value]) -> FiredRule:
        rule = variant.rule
        names = dict.fromkeys(name for lit in variant.literals for name in (lit.fact, lit.other) if name in values)
        return FiredRule(rule=rule.id, variant=variant.index, matched={name: values[name] for name in names},
                         effects=rule.effects,
                         because=fill(rule.rule.because, values), source=rule.rule.source, location=rule.location)


def fill(text: str, values: Mapping[str, Value]) -> str:
    """Puts the values of facts into the placeholders of a `because`."""
    return PLACEHOLDER.sub(lambda match: show(values.get(match[1])), text)


def _for_agenda(variant: Variant, fired: FiredRule, values: Mapping[str, Value]) -> Fired:
    facts = [f"{name} = {show(value)}" for name, value in fired.matched.items()]
    absent = [f"{lit.fact} is not known" if lit.op == "absent" else f"not {lit.fact}" for lit in variant.literals
              if lit.fact not in values]
    rule = variant.rule
    return Fired(rule.id, rule.rule.priority, rule.rule.then, fired.because, ", ".join([*facts, *absent]))


def check_facts(facts: Mapping[str, Fact], book: RuleBook) -> dict[str, Value]:
    """Values by name. Raises DecisionError naming every fact that cannot enter a decision."""
    problems = [problem for name in sorted(facts) if (problem := _problem(name, facts[name], book))]
    if problems:
        raise DecisionError("facts that cannot be used: " + "; ".join(problems), hint="the source of these facts is wrong")
    return {name: facts[name].value for name in sorted(facts)}


@lru_cache(maxsize=65536)
def _kind(name: str) -> str:
    """Kind of a word of the vocabulary; empty for any other."""
    spec = lookup(name)
    return spec.kind if spec else ""


def _problem(name: str, fact: Fact, book: RuleBook) -> str:
    kind, value = _kind(name), fact.value
    if fact.name != name:
        return f"{name} holds the fact {fact.name}"
    if name in book.derived:
        return f"{name} is derived by rules and cannot be given"
    if kind and kind != kind_of(value):
        return f"{name} = {value!r} is not a {kind}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{name} = {value} is not a finite number"
    if isinstance(value, int) and abs(value) > 2**53:
        return f"{name} = {value} is too large for an exact number"
    return ""
