"""Rules to an engine-neutral program (conjunctions and strata), and the program to durable-rules' dictionaries.

What the engine cannot take safely never reaches it: joins, `$or`, `$not` and arithmetic are not used, one engine rule stands
for one conjunction, and every fact is narrow: a group, a name and one typed slot. Its limits are build errors here.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import quote

from kernelskill.errors import RuleError
from kernelskill.model import Value
from kernelskill.policy.conditions import Conjunction, Literal, kind_of, normal_form, size
from kernelskill.policy.rulebook import LoadedRule, RuleBook
from kernelskill.policy.shared import Shared, family_of, shared

MAX_CONJUNCTIONS = 60
"""Of one rule; more is a condition that nobody can review."""
MAX_FACTS = 15
"""Facts in one conjunction: the engine's frames hold 16 messages."""
MAX_BRANCHES = 60
"""Distinct conditions on one fact: the engine's stack holds 64 branches."""
MAX_SHARED = 250
"""Conjunctions that share one condition: the engine's list holds 255 and is then overrun."""
MAX_SIBLINGS = 480
"""Conditions under one node: the engine's hash table holds 512 and is then searched for ever."""
MAX_ENGINE_RULES = 4000
GROUP_COUNT = 16
SLOTS = {"bool": "b", "number": "n", "text": "s"}
OPERATORS = {"!=": "$neq", "<": "$lt", "<=": "$lte", ">": "$gt", ">=": "$gte"}
BOOT, SINK = "__boot", "__sink"
Pattern = list[dict[str, Any]]


@dataclass(frozen=True)
class Variant:
    """One conjunction of one rule: what the engine sees as a rule."""

    rule: LoadedRule
    index: int
    literals: Conjunction
    engine_facts: frozenset[str] = frozenset()
    """Names of the facts that the engine matches for the literals."""

    @property
    def name(self) -> str:
        """Of the engine rule."""
        return f"{self.rule.id}#{self.index}"

    @cached_property
    def facts(self) -> tuple[str, ...]:
        """Names of the facts that the literals read, each once."""
        return tuple(dict.fromkeys(name for lit in self.literals for name in (lit.fact, lit.other) if name))


@dataclass(frozen=True)
class Program:
    """Everything an engine needs, in no engine's form."""

    variants: tuple[Variant, ...]
    shared: tuple[Shared, ...]
    """Conjunctions that stand for one variant of every copy of a rule."""
    derived: frozenset[str]
    level: Mapping[str, int]
    """Derived fact -> stratum after which it is settled, so that its absence may be asserted."""
    negated: frozenset[str]
    """Facts whose absence some literal asks for."""
    comparisons: frozenset[Literal]
    """Comparisons with a device fact; each is decided before the engine starts and enters as a fact of its own."""

    @cached_property
    def single(self) -> tuple[Variant, ...]:
        """The variants that are an engine rule of their own."""
        covered = {copy.name for one in self.shared for copy in one.copies.values()}
        return tuple(variant for variant in self.variants if variant.name not in covered)

    @cached_property
    def families(self) -> frozenset[str]:
        """Families of facts that a shared conjunction matches."""
        return frozenset(one.family for one in self.shared)


def build_program(book: RuleBook) -> Program:
    """The program of a rule book. Raises RuleError for a rule that is too large or a negation cycle."""
    variants = tuple(variant for rule in book.rules for variant in _variants(rule, book.derived))
    level = strata(variants)
    negated = frozenset(lit.fact for v in variants for lit in v.literals if _asks_absence(lit, book.derived))
    compared = frozenset(lit for v in variants for lit in v.literals if lit.other)
    return Program(variants, tuple(shared(variants, book.derived)), book.derived, level, negated, compared)


def _variants(rule: LoadedRule, derived: frozenset[str]) -> Iterator[Variant]:
    count = size(rule.rule.when, derived)
    if count > MAX_CONJUNCTIONS:
        raise RuleError(f"rule {rule.id} expands to {count} conjunctions, more than {MAX_CONJUNCTIONS}",
                        location=rule.at("when"), hint="derive a fact for a part of the condition in a rule of its own")
    for index, conjunction in enumerate(normal_form(rule.rule.when, derived)):
        facts = {engine_fact(literal, derived) for literal in conjunction}
        if len(facts) > MAX_FACTS:
            raise RuleError(f"rule {rule.id} needs {len(facts)} facts at once, more than {MAX_FACTS}",
                            location=rule.at("when"), hint="derive a fact for a part of the condition in a rule of its own")
        yield Variant(rule, index, conjunction, frozenset(facts))


def _asks_absence(literal: Literal, derived: frozenset[str]) -> bool:
    return literal.op == "absent" or (literal.fact in derived and literal.op == "!=")


def strata(variants: Iterable[Variant]) -> dict[str, int]:
    """Stratum of every derived fact. Raises RuleError naming a rule on a negation cycle."""
    variants = tuple(variants)
    level = {name: 0 for variant in variants for name in variant.rule.derives}
    for _ in range(len(level) + 1):
        raised = None
        for variant in variants:
            need = max((level[lit.fact] + (lit.op == "!=") for lit in variant.literals if lit.fact in level), default=0)
            for name in variant.rule.derives:
                if level[name] < need:
                    level[name], raised = need, variant
        if raised is None:
            return level
    assert raised is not None
    raise RuleError(f"rule {raised.rule.id} depends on the absence of a fact that follows from it",
                    location=raised.rule.at("when"), hint="break the cycle: a fact must not decide whether it is derived")


def durable_rules(program: Program) -> dict[str, dict[str, Any]]:
    """The dictionary form of the program, actions left out. Raises RuleError where it exceeds an engine limit."""
    rules = {one.name: _engine_rule(one.any_copy, program.derived, one.family) for one in program.shared}
    rules |= {variant.name: _engine_rule(variant, program.derived) for variant in program.single}
    _check_limits(program, rules)
    boot = {"all": [{"m": {"k": BOOT}}], "pri": 0}
    sink = {"all": [{"m": {"$ex": {"k": 1}}}, {"z": {"k": SINK}}], "pri": 65535}
    return {BOOT: boot, SINK: sink, **rules}


def _engine_rule(variant: Variant, derived: frozenset[str], family: str = "") -> dict[str, Any]:
    return {"all": _patterns(variant, derived, family), "pri": 1000 - variant.rule.rule.priority}


def _patterns(variant: Variant, derived: frozenset[str], family: str) -> list[dict[str, Any]]:
    """One pattern per fact: the group and the name (or the family that the names share) and every comparison of that fact."""
    patterns: dict[str, Pattern] = {}
    for literal in sorted(variant.literals, key=repr):
        name = engine_fact(literal, derived)
        pattern = patterns.setdefault(name, [{"f": family}] if family else [{"g": group(name)}, {"k": name}])
        if literal.other:
            pattern.append({"b": True})
        elif literal.op in ("==", *OPERATORS) and name == literal.fact:
            test = typed(literal.value)
            pattern.append({OPERATORS[literal.op]: test} if literal.op in OPERATORS else test)
    return [{f"c{index}": {"$and": pattern}} for index, pattern in enumerate(patterns.values())]


def engine_fact(literal: Literal, derived: frozenset[str]) -> str:
    """Name of the fact that the engine matches for a literal."""
    if _asks_absence(literal, derived):
        return absence(literal.fact)
    return comparison(literal) if literal.other else literal.fact


def absence(fact: str) -> str:
    """Name of the fact that says that a fact is not known."""
    return f"absent:{fact}"


def comparison(literal: Literal) -> str:
    """Name of the fact that holds the outcome of a comparison with a device fact."""
    return f"compare:{literal.fact}{literal.op}{literal.other}"


@lru_cache(maxsize=65536)
def group(name: str) -> str:
    """First key of every pattern: spreads the names, because the engine searches siblings one by one."""
    return str(zlib.crc32(name.encode()) % GROUP_COUNT)


def typed(value: Value | None) -> dict[str, Any]:
    """A value in the slot of its type, so that the engine cannot take `true`, `1` and `"1"` for one another.

    Numbers travel as floats and texts percent-encoded: the engine compares raw JSON text.
    """
    assert value is not None
    kind = kind_of(value)
    return {SLOTS[kind]: float(value) if kind == "number" else quote(str(value), safe="") if kind == "text" else value}


def _check_limits(program: Program, rules: Mapping[str, Mapping[str, Any]]) -> None:
    siblings: dict[tuple[str, ...], set[str]] = defaultdict(set)
    branches: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    conjunctions: Counter[tuple[str, ...]] = Counter()
    for variant, engine_rule in [*((one.any_copy, one.name) for one in program.shared), *((v, v.name) for v in program.single)]:
        for pattern in rules[engine_rule]["all"]:
            (bound,) = pattern.values()
            name = next(test[key] for key in ("k", "f") for test in bound["$and"] if key in test)
            path: tuple[str, ...] = ()
            for test in bound["$and"]:
                siblings[path].add(repr(test))
                path = (*path, repr(test))
                branches[name].add(path)
            conjunctions[path] += 1
            met = len(branches[name]) + len(branches[family_of(name)])
            _refuse(variant, met, MAX_BRANCHES, f"distinct conditions on {name}")
            _refuse(variant, conjunctions[path], MAX_SHARED, f"conjunctions with one and the same condition on {name}")
            _refuse(variant, max(len(siblings[path[:n]]) for n in range(len(path))), MAX_SIBLINGS, "conditions side by side")
    if len(rules) > MAX_ENGINE_RULES:
        _refuse(program.variants[-1], len(rules), MAX_ENGINE_RULES, "conjunctions in all")


def _refuse(variant: Variant, count: int, limit: int, what: str) -> None:
    if count > limit:
        raise RuleError(f"rule {variant.rule.id} makes {count} {what}; the engine takes {limit}",
                        location=variant.rule.at("when"), hint="derive a fact for the shared part and test that fact instead")
