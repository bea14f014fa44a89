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
        self._report = lru_cache(maxsize=65536, typed=True)(self._report_anew)

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

    @cached_property
    def _shown(self) -> Mapping[tuple[str, int], tuple[str, ...]]:
        """Of every variant the facts that a report of it reads: those of its literals, then those of `because`."""
        return {key: tuple(dict.fromkeys([*variant.facts, *PLACEHOLDER.findall(variant.rule.rule.because)]))
                for key, variant in self._variants.items()}

    @cached_property
    def _place(self) -> Mapping[str, int]:
        return {rule.id: place for place, rule in enumerate(self.book.rules)}

    def decide(self, facts: Mapping[str, Fact]) -> Decision:
        """The decision for these facts. Raises DecisionError on unusable facts and when engine and oracle disagree."""
        values = check_facts(facts, self.book)
        firing = self._engine.run(values)
        self._check(firing, values)
        known = values | dict.fromkeys(firing.derived, True)
        reports = [self._report(rule, index, *[known.get(name) for name in shown])
                   for rule, index, shown in self._first_variants(firing)]
        fired = tuple([report[0] for report in reports])
        selection = select([report[1] for report in reports], known)
        best = selection.chosen
        return Decision(
            outcome="method" if best else "stop", stop_reason=selection.stop_reason, reason=selection.reason,
            chosen=MethodApplication(method=best.method, params=dict(best.params)) if best else None,
            facts={name: facts[name] for name in values}, derived=dict.fromkeys(sorted(firing.derived), True),
            fired=fired, candidates=selection.candidates,
            replacements=tuple(self._replacements({rule.rule for rule in fired}, values, firing.derived)),
            rules_digest=self.book.digest)

    def prepare(self) -> None:
        """What can be done before the facts are there: the next decision is quicker by it. Raises DecisionError."""
        self._engine.prepare()

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

    def _first_variants(self, firing: Firing) -> Iterable[tuple[str, int, tuple[str, ...]]]:
        """Of every fired rule its first conjunction that fired and the facts to show, in the order of the book."""
        first: dict[str, int] = {}
        for rule, index in firing.fired:
            first[rule] = min(index, first.get(rule, index))
        for rule in sorted(first, key=self._place.__getitem__):
            yield rule, first[rule], self._shown[rule, first[rule]]

    def _report_anew(self, ident: str, index: int, *shown: Value | None) -> tuple[FiredRule, Fired]:
        """A rule that fired, for the record and for the agenda. Kept: most rules fire again on the same values."""
        variant = self._variants[ident, index]
        values = {name: value for name, value in zip(self._shown[ident, index], shown, strict=True) if value is not None}
        rule, matched = variant.rule, {name: values[name] for name in variant.facts if name in values}
        because = fill(rule.rule.because, values)
        facts = [f"{name} = {show(value)}" for name, value in matched.items()]
        absent = [f"{lit.fact} is not known" if lit.op == "absent" else f"not {lit.fact}" for lit in variant.literals
                  if lit.fact not in values]
        return (FiredRule(rule=rule.id, variant=variant.index, matched=matched, effects=rule.effects, because=because,
                          source=rule.rule.source, location=rule.location),
                Fired(rule.id, rule.rule.priority, rule.rule.then, because, ", ".join([*facts, *absent])))


def fill(text: str, values: Mapping[str, Value]) -> str:
    """Puts the values of facts into the placeholders of a `because`."""
    return PLACEHOLDER.sub(lambda match: show(values.get(match[1])), text) if "{" in text else text


def check_facts(facts: Mapping[str, Fact], book: RuleBook) -> dict[str, Value]:
    """Values by name, in the order of names. Raises DecisionError naming every fact that cannot enter a decision."""
    values: dict[str, Value] = {}
    wrong, derived = [], book.derived
    for name in sorted(facts):
        fact = facts[name]
        values[name] = value = fact.value
        if name in derived or fact.name != name or _misfit(name, value):
            wrong.append(name)
    if wrong:
        problems = "; ".join(f"{name} {_problem(name, facts[name], book)}" for name in wrong)
        raise DecisionError(f"facts that cannot be used: {problems}", hint="the source of these facts is wrong")
    return values


def _problem(name: str, fact: Fact, book: RuleBook) -> str:
    if fact.name != name:
        return f"holds the fact {fact.name}"
    return "is derived by rules and cannot be given" if name in book.derived else _misfit(name, fact.value)


@lru_cache(maxsize=65536, typed=True)
def _misfit(name: str, value: Value) -> str:
    """What is wrong with the value; empty for a usable one. Kept, because most facts come again in the next decision."""
    spec = lookup(name)
    if spec is not None and spec.kind != kind_of(value):
        return f"= {value!r} is not a {spec.kind}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"= {value} is not a finite number"
    if isinstance(value, int) and abs(value) > 2**53:
        return f"= {value} is too large for an exact number"
    return ""
