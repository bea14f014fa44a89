"""Deciding again: a recorded decision must come out the same, and what other facts or rules would have changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kernelskill.errors import DecisionError
from kernelskill.model import Decision, Fact, Value
from kernelskill.policy.deciding import Policy
from kernelskill.vocabulary import lookup


def replay(decision: Decision, policy: Policy) -> str:
    """The first difference between a recorded decision and a new one on its facts; empty when they are identical."""
    if decision.rules_digest != policy.book.digest:
        return f"the rules differ: recorded {decision.rules_digest[:12]}, now {policy.book.digest[:12]}"
    return next(differences(decision, policy.decide(decision.facts)), "")


def what_if(decision: Decision, policy: Policy, changed: Mapping[str, Value | None]) -> Decision:
    """The decision with other facts (None: not known). Raises DecisionError for a fact that the vocabulary does not have."""
    facts = dict(decision.facts)
    for name, value in changed.items():
        facts.pop(name, None)
        if value is not None:
            facts[name] = _assumed(name, value)
    return policy.decide(facts)


def differences(recorded: Decision, again: Decision) -> Iterator[str]:
    """What differs between two decisions, what matters most first. Where rule files lie does not count."""
    if recorded.outcome != again.outcome or recorded.chosen != again.chosen:
        yield f"chosen: {recorded.chosen or recorded.stop_reason}, now {again.chosen or again.stop_reason}"
    for title, before, after in (("derived", recorded.derived, again.derived), ("fired", _fired(recorded), _fired(again)),
                                 ("candidates", _candidates(recorded), _candidates(again))):
        yield from _keyed(title, before, after)
    if recorded.reason != again.reason:
        yield f"reason: {recorded.reason!r}, now {again.reason!r}"


def _keyed(title: str, before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        if name not in after or name not in before:
            yield f"{title}: {name} only {'recorded' if name in before else 'now'}"
        elif before[name] != after[name]:
            yield f"{title}: {name} was {before[name]}, now {after[name]}"
    if list(before) != list(after) and before.keys() == after.keys():
        yield f"{title}: another order, {', '.join(before)}, now {', '.join(after)}"


def _fired(decision: Decision) -> dict[str, object]:
    return {rule.rule: rule.model_dump(exclude={"location"}) for rule in decision.fired}


def _candidates(decision: Decision) -> dict[str, object]:
    return {candidate.method: candidate.model_dump() for candidate in decision.candidates}


def _assumed(name: str, value: Value) -> Fact:
    spec = lookup(name)
    if spec is None:
        raise DecisionError(f"no fact is called {name}", hint="names: kernelskill/vocabulary.py")
    return Fact.model_validate({"name": name, "value": value, "unit": spec.unit, "provenance": spec.sources[0]})


def changes(decisions: Iterable[Decision], policy: Policy) -> Iterator[tuple[Decision, Decision]]:
    """Recorded decisions that other rules would have taken otherwise, each with the new one."""
    for decision in decisions:
        again = policy.decide(decision.facts)
        if (decision.chosen, decision.stop_reason) != (again.chosen, again.stop_reason):
            yield decision, again
