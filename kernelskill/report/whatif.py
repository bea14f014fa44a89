"""Other facts or other rules: which decisions change, from what to what."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelskill.errors import DecisionError, KernelSkillError, RuleError, did_you_mean
from kernelskill.model import Decision, Value
from kernelskill.policy import Policy, RuleBook, what_if
from kernelskill.report.audit import Selection, rules_of
from kernelskill.vocabulary import VOCABULARY, FactSpec, lookup

NOT_KNOWN = "unknown"
"""What `--fact NAME=unknown` says: decide as if nobody had measured it."""


@dataclass(frozen=True)
class Change:
    """One recorded decision and what it becomes; `after` is None when no decision comes about, `problem` says why."""

    label: str
    """`round 3`, with the run before it where there are several."""
    before: Decision
    after: Decision | None
    problem: str = ""

    @property
    def changed(self) -> bool:
        """Is another method chosen, with other parameters of the rule, or does the run stop for another reason?"""
        return self.after is None or outcome(self.before) != outcome(self.after)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {"decision": self.label, "changed": self.changed, "from": outcome(self.before),
                "to": outcome(self.after) if self.after else None, "reason": self.after.reason if self.after else self.problem,
                "fates": {method: list(pair) for method, pair in fates(self).items()}}

    def __str__(self) -> str:
        if self.after is None:
            return f"{self.label}: {outcome(self.before)} → no decision: {self.problem}"
        if self.changed:
            return f"{self.label}: {outcome(self.before)} → {outcome(self.after)}\n  {self.after.reason}{self._lost()}"
        moved = "".join(f"\n  {method}: {before} → {after}" for method, (before, after) in fates(self).items())
        return f"{self.label}: {outcome(self.before)} stays{moved}"

    def _lost(self) -> str:
        """What became of the method that was chosen before, and through which rule; empty where there was none or it stays."""
        method = self.before.chosen.method if self.before.chosen else ""
        fate = fates(self).get(method)
        stays = self.after is not None and self.after.chosen is not None and self.after.chosen.method == method
        return f"\n  {method}: {fate[1].rpartition('vetoed, ')[2]}" if fate and not stays else ""


def outcome(decision: Decision) -> str:
    """`vectorized_access(width=4)` or `stop near_speed_of_light`."""
    return str(decision.chosen) if decision.chosen else f"stop {decision.stop_reason}"


def fates(change: Change) -> dict[str, tuple[str, str]]:
    """Methods whose fate is another one now: `not proposed` or the fate with its reason, before and after."""
    before, after = ({c.method: f"{c.fate}, {c.fate_reason}" for c in d.candidates} if d else {}
                     for d in (change.before, change.after))
    both = {name: (before.get(name, "not proposed"), after.get(name, "not proposed")) for name in sorted({*before, *after})}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def imagine(selection: Selection, facts: Sequence[str], without: Sequence[str],
            rules: Sequence[Path]) -> tuple[list[Change], str]:
    """The decisions of a selection under other facts (`NAME=VALUE`), without rules, with more rule folders; and a note.

    Where the rules have changed since the run, its decisions are first taken again with the rules as they are now.
    """
    now = rules_of(selection.run)
    book = rules_of(selection.run, rules) if rules else now
    for ident in without:
        known_rule(ident, book)
    changed_facts = parse_facts(facts, book.derived)
    policy, before = Policy(book.without(*without)), Policy(now)
    stale = any(decision.rules_digest != now.digest for _, _, decision in selection.decisions)
    changes = []
    for round_, _, decision in selection.decisions:
        base = before.decide(decision.facts) if stale else decision
        changes.append(decided(f"round {round_}", base, policy, changed_facts))
    note = "the rules have changed since the run: `from` is what they choose now for its facts" if stale else ""
    return changes, note


def decided(label: str, before: Decision, policy: Policy, facts: Mapping[str, Value | None]) -> Change:
    """One decision taken by another policy, with other facts."""
    try:
        return Change(label, before, what_if(before, policy, facts))
    except DecisionError as error:
        return Change(label, before, None, error.message)


def summary(changes: Iterable[Change]) -> str:
    """`2 of 8 decisions change`."""
    changes = list(changes)
    count = sum(change.changed for change in changes)
    return f"{count} of {len(changes)} decision{'s' * (len(changes) != 1)} change{'s' * (count == 1)}"


def known_rule(ident: str, book: RuleBook) -> None:
    """Raises RuleError for a rule that the book does not have."""
    names = {name for rule in book.rules for name in (rule.id, rule.rule.id)}
    if ident not in names:
        hint = did_you_mean(ident, names) or "`kernelskill rules list` lists them"
        raise RuleError(f"no rule is called {ident!r}", hint=hint)


def parse_facts(texts: Sequence[str], derived: Collection[str]) -> dict[str, Value | None]:
    """`NAME=VALUE` texts by name, each in the fact's type. Raises KernelSkillError saying what fits."""
    found: dict[str, Value | None] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        spec = lookup(name)
        if not sign:
            raise KernelSkillError(f"{text!r} is not NAME=VALUE", hint="e.g. --fact headroom=2.5, --fact uses_restrict=false")
        if name in derived:
            raise KernelSkillError(f"{name} is derived by rules and cannot be given",
                                   hint="change what it follows from; `kernelskill rules graph` shows that")
        if spec is None:
            hint = did_you_mean(name, VOCABULARY) or "docs/rules-reference.md"
            raise KernelSkillError(f"no fact is called {name!r}", hint=hint)
        found[name] = None if value == NOT_KNOWN else _value(spec, value)
    return found


def _value(spec: FactSpec, text: str) -> Value:
    upper = "" if spec.high is None else f" and at most {spec.high:g}"
    number = "a number" if spec.low is None else f"a number, at least {spec.low:g}{upper}"
    fits = {"number": number, "bool": "true or false", "text": " or ".join(spec.values) or "a text"}[spec.kind]
    try:
        return _typed(spec, text)
    except ValueError:
        raise KernelSkillError(f"{spec.name} cannot be {text!r}: it is {fits}",
                               hint=f"{spec.name}={NOT_KNOWN} means that nobody measured it") from None


def _typed(spec: FactSpec, text: str) -> Value:
    """Raises ValueError for a text that is no value of the fact."""
    if spec.kind == "bool":
        return ("false", "true").index(text) == 1
    if spec.kind == "number":
        value = float(text)
        if not (spec.low is None or value >= spec.low) or not (spec.high is None or value <= spec.high):
            raise ValueError(text)
        return int(text) if text.lstrip("+-").isdigit() else value
    if spec.values and text not in spec.values:
        raise ValueError(text)
    return text
