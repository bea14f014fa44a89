"""Checks of words and values: facts, operands, ranges, methods, formulas, placeholders, metadata."""
# ruff: noqa: D102 - `validate` and `finalize` are documented by Validator

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kernelskill.errors import did_you_mean
from kernelskill.issues import Issue
from kernelskill.policy.conditions import kind_of, show, tests
from kernelskill.policy.deciding import PLACEHOLDER
from kernelskill.policy.gain import FormulaError, formula_facts
from kernelskill.policy.rulebook import LoadedRule
from kernelskill.policy.schema import Derive, FactName, GainFormula, Propose, Scalar, Test, named_methods
from kernelskill.policy.validator import Validator
from kernelskill.vocabulary import GROUPS, PER_METHOD, VOCABULARY, FactSpec, lookup
from kernelskill.yamlsource import Keys

DERIVED_NAME = re.compile(r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$")
BLANK = re.compile(r"<[a-zA-Z][^<>]*>")
"""What `rules new` leaves for the author. `a < b` and `x<3` are no blanks."""
DEVICE_FACTS = frozenset(line.split("|")[0].strip() for line in GROUPS["device"].strip().splitlines())


class UnknownFact(Validator):
    """A condition on a fact that nobody measures."""

    check = "unknown-fact"

    def validate(self, rule: LoadedRule) -> Iterator[Issue]:
        for where, test in tests(rule.rule.when):
            if test.fact not in self.derived and lookup(test.fact) is None and "." not in test.fact:
                hint = did_you_mean(test.fact, self.derived | VOCABULARY.keys()) or "names: kernelskill/vocabulary.py"
                yield self.issue(rule, (*where, "fact"), f"no fact is called `{test.fact}`", hint)


class UnderivedFact(Validator):
    """A condition on a derived fact that no rule derives: the rule can never fire."""

    check = "underived-fact"

    def validate(self, rule: LoadedRule) -> Iterator[Issue]:
        for where, test in tests(rule.rule.when):
            if "." in test.fact and test.fact not in self.derived and lookup(test.fact) is None:
                yield self.issue(rule, (*where, "fact"), f"no rule derives `{test.fact}`",
                                 did_you_mean(test.fact, self.derived) or "write a rule that derives it, or use another fact")


class UnknownMethod(Validator):
    """A method that has no card."""

    check = "unknown-method"

    def validate(self, rule: LoadedRule) -> Iterator[Issue]:
        for index, action in enumerate(rule.rule.then):
            for key, method in named_methods(action).items():
                if method not in self.book.methods:
                    yield self._unknown(rule, ("then", index, key), method)
        for index, method in enumerate(rule.rule.excepted):
            if method not in self.book.methods:
                yield self._unknown(rule, ("for_each", "except", index), method)
        for where, test in tests(rule.rule.when):
            match = PER_METHOD.match(test.fact)
            if match and match[2] not in self.book.methods:
                yield self._unknown(rule, (*where, "fact"), match[2])

    def _unknown(self, rule: LoadedRule, keys: tuple[str | int, ...], method: str) -> Issue:
        hint = did_you_mean(method, self.book.methods) or "write its card in knowledge/methods/"
        return self.issue(rule, keys, f"no method is called `{method}`", hint)


class DerivedName(Validator):
    """A derived fact whose name could be taken for a measured one."""

    check = "derived-name"

    def validate(self, rule: LoadedRule) -> Iterator[Issue]:
        for index, action in enumerate(rule.rule.then):
            if isinstance(action, Derive):
                if lookup(action.derive):
                    yield self.issue(rule, ("then", index, "derive"), f"`{action.derive}` is measured, a rule cannot derive it")
                elif not DERIVED_NAME.match(action.derive):
                    yield self.issue(rule, ("then", index, "derive"), f"`{action.derive}` is no name for a derived fact",
                                     "two lower-case words with a dot, e.g. bottleneck.dram")


class OperandType(Validator):
    """A value that can never compare with the fact: the condition would never hold."""

    check = "operand-type"

    def validate(self, rule: LoadedRule) -> Iterator[Issue]:
        for where, test in tests(rule.rule.when):
            keys = (*where, "value") if "value" in test.model_fields_set else where
            if message := self._mismatch(test):
                yield self.issue(rule, keys, message)

    def _mismatch(self, test: Test) -> str:
        if test.op in ("missing", "exists"):
            return ""
        if test.fact in self.derived:
            plain = test.op in ("==", "!=") and isinstance(test.value, bool)
            return "" if plain else f"`{test.fact}` is derived, so it is only true or not: no `{test.op}` with {_text(test)}"
        spec = lookup(test.fact)
        if spec is None:
            return ""
        if isinstance(test.value, FactName):
            other = lookup(test.value.fact)
            fits = test.value.fact in DEVICE_FACTS and other is not None and other.kind == "number" == spec.kind
            return "" if fits else f"`{test.value.fact}` is not a device quantity that `{test.fact}` compares with"
        wrong = [value for value in _values(test) if kind_of(value) != spec.kind]
        if wrong:
            return f"`{test.fact}` is a {spec.kind}, {show(wrong[0])} is a {kind_of(wrong[0])}"
        return f"`{test.op}` orders numbers, `{test.fact}` is a {spec.kind}" if _orders(test) and spec.kind != "number" else ""


class ValueRange(Validator):
    """A value that the fact never takes."""

    check = "value-range"

    def validate(self, rule: LoadedRule) -> Iterator[Issue]:
        for where, test in tests(rule.rule.when):
            spec = lookup(test.fact)
            for value in _values(test) if spec else []:
                if message := _outside(spec, value):
                    hint = did_you_mean(value, spec.values) if isinstance(value, str) and spec else ""
                    yield self.issue(rule, (*where, "value"), message, hint)
            if test.op == "between" and isinstance(test.value, list) and test.value[0] > test.value[1]:  # type: ignore[operator]
                yield self.issue(rule, (*where, "value"), f"between {_text(test)}: the first number is the larger one")


class GainFacts(Validator):
    """A gain formula that is no plain arithmetic over known numeric facts."""

    check = "gain-formula"

    def validate(self, rule: LoadedRule) -> Iterator[Issue]:
        for index, action in enumerate(rule.rule.then):
            if isinstance(action, Propose) and isinstance(action.gain, (str, GainFormula)):
                nested = isinstance(action.gain, GainFormula)
                keys: tuple[str | int, ...] = ("then", index, "gain", *(["formula"] if nested else []))
                for message, hint in _formula_problems(action.gain if isinstance(action.gain, str) else action.gain.formula):
                    yield self.issue(rule, keys, message, hint)


class Placeholder(Validator):
    """A placeholder in `because` that the condition does not read, so it may have no value."""

    check = "placeholder"

    def validate(self, rule: LoadedRule) -> Iterator[Issue]:
        facts = {name for _, test in tests(rule.rule.when)
                 for name in (test.fact, test.value.fact if isinstance(test.value, FactName) else test.fact)}
        for name in PLACEHOLDER.findall(rule.rule.because):
            if name not in facts:
                yield self.issue(rule, ("because",), f"`{{{name}}}` is not a fact of `when`", did_you_mean(name, facts))


class Blank(Validator):
    """A blank of the scaffold, `<...>`, that nobody filled in."""

    check = "blank"

    def validate(self, rule: LoadedRule) -> Iterator[Issue]:
        for keys, text in texts(rule.raw):
            if match := BLANK.search(text):
                yield self.issue(rule, keys, f"`{match[0]}` is still to be filled in", "write what the blank asks for")


class Metadata(Validator):
    """A rule that does not say why, or on whose word."""

    check = "metadata"
    severity = "warning"

    def validate(self, rule: LoadedRule) -> Iterator[Issue]:
        for key, hint in (("because", "one sentence that a user reads in `why`"), ("source", "guide section, paper or run")):
            if not getattr(rule.rule, key).strip():
                yield self.issue(rule, ("id",), f"rule {rule.rule.id} has no `{key}`", hint)


def texts(value: Any, where: Keys = ()) -> Iterator[tuple[Keys, str]]:
    """Every text inside a value read from YAML, with its path of keys."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts(part, (*where, key))


def _values(test: Test) -> list[Scalar]:
    if test.op in ("missing", "exists") or isinstance(test.value, FactName):
        return []
    return test.value if isinstance(test.value, list) else [test.value]


def _text(test: Test) -> str:
    return ", ".join(map(show, _values(test))) or "a device fact"


def _orders(test: Test) -> bool:
    return test.op in ("<", "<=", ">", ">=", "between")


def _outside(spec: FactSpec | None, value: Scalar) -> str:
    if spec is None or kind_of(value) != spec.kind:
        return ""
    if isinstance(value, str):
        known = not spec.values or value in spec.values
        return "" if known else f"`{spec.name}` is never {value}: it is one of {', '.join(spec.values)}"
    if (spec.low is not None and value < spec.low) or (spec.high is not None and value > spec.high):
        unit = f" {spec.unit}" if spec.unit else ""
        upper = f" and at most {show(spec.high)}{unit}" if spec.high is not None else ""
        return f"`{spec.name}` is never {show(value)}: it is at least {show(spec.low)}{unit}{upper}"
    return ""


def _formula_problems(text: str) -> Iterator[tuple[str, str]]:
    try:
        names = formula_facts(text)
    except FormulaError as error:
        yield str(error), "e.g. headroom, 100 / global_load_efficiency_pct, min(headroom, 4)"
        return
    for name in names:
        spec = lookup(name)
        if spec is None or spec.kind != "number":
            yield f"`{name}` is no numeric fact", did_you_mean(name, [n for n, s in VOCABULARY.items() if s.kind == "number"])
