"""Loaded rules: what the engine, the oracle, the lints and the explanations share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kernelskill.errors import Location
from kernelskill.policy.schema import Derive, Propose, Rule
from kernelskill.yamlsource import Document, Keys

MEANING = ("when", "then", "priority", "because", "source", "status")
"""Keys of a rule that enter the digest: everything a decision shows or depends on."""


@dataclass(frozen=True)
class LoadedRule:
    """One rule as it takes part in decisions; a `for_each` rule becomes one of these per method."""

    id: str
    """`failed_here` or, of a `for_each` rule, `failed_here[launch_tuning]`."""
    rule: Rule
    raw: Mapping[str, Any]
    """The YAML mapping with `{method}` filled in; the oracle reads this one."""
    document: Document
    where: Keys
    """Path of the rule inside the document."""
    replaced: LoadedRule | None = None
    """The rule of an earlier folder that this one stands in for; of a `for_each` rule, the copy for the same method."""

    def at(self, *keys: str | int, key: bool = False) -> Location:
        """Place of a part of the rule, e.g. `at("when", "all", 0, "op")`; `key` asks for the key itself."""
        return self.document.at((*self.where, *keys), key=key)

    @cached_property
    def location(self) -> str:
        """Place of the rule, with the rule that it replaces."""
        replaced = f" (replaces {self.replaced.at('id')})" if self.replaced else ""
        return f"{self.at('id')}{replaced}"

    @property
    def method(self) -> str:
        """The method of a copy of a `for_each` rule; "" for any other rule."""
        return self.id[len(self.rule.id) + 1:-1]

    @cached_property
    def written(self) -> Rule:
        """The rule as its file has it: of a copy of a `for_each` rule, with `{method}` not filled in."""
        if self.rule.for_each is None:
            return self.rule
        raw = self.document.data
        for step in self.where:
            raw = raw[step]
        return Rule.model_validate(raw)

    @cached_property
    def effects(self) -> tuple[str, ...]:
        """What follows, as text."""
        return tuple(map(str, self.rule.then))

    @cached_property
    def derives(self) -> tuple[str, ...]:
        """Facts that the rule makes true."""
        return tuple(action.derive for action in self.rule.then if isinstance(action, Derive))

    @cached_property
    def proposes(self) -> tuple[str, ...]:
        """Methods that the rule proposes."""
        return tuple(action.propose for action in self.rule.then if isinstance(action, Propose))


@dataclass(frozen=True)
class RuleBook:
    """All rules of a decision, in the one order that everything uses: priority (high first), then id."""

    rules: tuple[LoadedRule, ...]
    methods: frozenset[str]
    warnings: tuple[str, ...] = ()
    """Lint warnings (with path:line:col): usable, but `rules check` does not pass."""
    by_id: Mapping[str, LoadedRule] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {rule.id: rule for rule in self.rules})

    @cached_property
    def derived(self) -> frozenset[str]:
        """Every fact that some rule derives."""
        return frozenset(name for rule in self.rules for name in rule.derives)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the rules say; files, folders, positions and order do not matter."""
        said = [[rule.id, {key: rule.raw.get(key) for key in MEANING}] for rule in self.rules]
        text = json.dumps([said, sorted(self.methods)], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def without(self, *ids: str) -> RuleBook:
        """The book less some rules (a `for_each` rule by its own id or a copy's), to ask what they change."""
        kept = tuple(rule for rule in self.rules if rule.id not in ids and rule.rule.id not in ids)
        return RuleBook(kept, self.methods, self.warnings)


def in_order(rules: Iterable[LoadedRule]) -> tuple[LoadedRule, ...]:
    """The canonical order of rules."""
    return tuple(sorted(rules, key=lambda rule: (-rule.rule.priority, rule.id)))
