"""Why a method was chosen, and why another one was not, in words with numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from kernelskill.model import Candidate, Decision, Fact, FiredRule, Value
from kernelskill.policy.conditions import margin, parts, phrase, show, verdict
from kernelskill.policy.rulebook import RuleBook
from kernelskill.policy.schema import Any_, Condition, FactName, None_, Test
from kernelskill.vocabulary import lookup

Depth = Literal["line", "rules", "all"]


def why(decision: Decision, depth: Depth = "rules") -> str:
    """The decision explained: one `line`, the `rules` that mattered, or `all` (every fact and every rule that fired)."""
    if depth == "line":
        touched = len(decision.replacements)
        return decision.reason + (f" ({touched} replaced rule{'s' * (touched > 1)}: see --depth rules)" if touched else "")
    rules = decision.fired if depth == "all" else mattered(decision)
    sections = {"rules that fired" if depth == "all" else "rules that mattered": [_rule(rule, depth) for rule in rules],
                "candidates": [_candidate(candidate) for candidate in decision.candidates],
                "replaced rules": list(decision.replacements)}
    if depth == "all":
        sections |= {"derived": list(decision.derived), "facts": [_fact(fact) for fact in decision.facts.values()],
                     "rules digest": [decision.rules_digest]}
    lines = [decision.reason]
    for title, entries in sections.items():
        if entries:
            lines += [f"{title}:", *(f"  {line}" for entry in entries for line in entry.splitlines())]
    return "\n".join(lines)


def mattered(decision: Decision) -> list[FiredRule]:
    """The rules that touched a candidate or stopped the run, and those whose derived facts they needed.

    Those of the chosen method or the stop come first.
    """
    chosen = {decision.chosen.method} if decision.chosen else set()
    first = _with_needed(decision, chosen)
    every = _with_needed(decision, {candidate.method for candidate in decision.candidates})
    return first + [rule for rule in every if rule not in first]


def behind(decision: Decision) -> list[FiredRule]:
    """The rules that proposed the chosen method, and those whose derived facts they needed; no rule about another method."""
    if decision.chosen is None:
        return []
    proposal = ["propose", decision.chosen.method]
    kept = [rule for rule in decision.fired if any(effect.split()[:2] == proposal for effect in rule.effects)]
    return _needed_by(kept, decision)


def _with_needed(decision: Decision, methods: set[str]) -> list[FiredRule]:
    """Rules that touch the methods or stop the run, and those whose derived facts they needed, in the order of firing."""
    return _needed_by([rule for rule in decision.fired if any(_touches(effect, methods) for effect in rule.effects)], decision)


def _needed_by(kept: list[FiredRule], decision: Decision) -> list[FiredRule]:
    while True:
        needed = {f"derive {fact}" for rule in kept for fact in rule.matched if fact in decision.derived}
        more = [rule for rule in decision.fired if rule not in kept and needed & set(rule.effects)]
        if not more:
            return [rule for rule in decision.fired if rule in kept]
        kept += more


def _touches(effect: str, methods: set[str]) -> bool:
    verb, *words = effect.split()
    return verb == "stop" or (verb != "derive" and words[-1] in methods and (verb != "prefer" or words[0] in methods))


def why_not(decision: Decision, method: str, book: RuleBook) -> str:
    """Why the method was not chosen: its fate as a candidate, or what every rule that could propose it lacked."""
    candidate = next((c for c in decision.candidates if c.method == method), None)
    if candidate is not None:
        return f"{_candidate(candidate)}\n  proposed by {', '.join(candidate.proposed_by)}"
    proposing = [rule for rule in book.rules if method in rule.proposes]
    if not proposing:
        return f"{method} was not proposed: no rule proposes it."
    values: dict[str, Value] = {name: fact.value for name, fact in decision.facts.items()} | decision.derived
    lines = [f"{method} was not proposed:"]
    for rule in proposing:
        lines += [f"  {rule.id} ({rule.location})", *(f"    {line}" for line in lacking(rule.rule.when, values, book))]
    return "\n".join(lines)


def lacking(condition: Condition, values: Mapping[str, Value], book: RuleBook) -> list[str]:
    """What keeps the condition from holding, a line each; where one of several parts would do, the shortest first."""
    return list(_lacks(condition, values, book, frozenset(), negated=False))


def _lacks(condition: Condition, values: Mapping[str, Value], book: RuleBook, seen: frozenset[str], *,
           negated: bool) -> Iterator[str]:
    if isinstance(condition, Test):
        said = verdict(condition, values, book.derived)
        if said == "unknown" or (said == "holds") == negated:
            yield from _test_lacks(condition, values, book, seen, negated=negated)
        return
    inner = negated ^ isinstance(condition, None_)
    reports = [list(_lacks(part, values, book, seen, negated=inner)) for part in parts(condition)]
    if isinstance(condition, Any_) == negated:  # every part is needed
        yield from (line for report in reports for line in report)
    elif all(reports):
        yield "one of:"
        for first, *rest in sorted(reports, key=len):
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)


def _test_lacks(test: Test, values: Mapping[str, Value], book: RuleBook, seen: frozenset[str], *,
                negated: bool) -> Iterator[str]:
    """One comparison that does not hold: what is needed, what is the case, and for a derived fact why it is not."""
    needed = phrase(test, negated)
    if test.fact in book.derived:
        if test.fact in values:
            yield f"needs {needed}, but {test.fact} was derived"
            return
        yield f"needs {needed}, which no rule derived"
        yield from (f"  {line}" for line in _not_derived(test.fact, values, book, seen))
    elif test.fact not in values:
        yield f"needs {needed}; {test.fact} is unknown: needs {_sources(test.fact, values)}"
    elif isinstance(test.value, FactName) and test.value.fact not in values:
        yield f"needs {needed}; {test.value.fact} is unknown: needs {_sources(test.value.fact, values)}"
    else:
        distance = margin(test, values)
        gap = "" if distance is None else f" (off by {show(round(distance, 6))})" if distance else " (exactly the threshold)"
        yield f"needs {needed}; it is {show(values[test.fact])}{gap}"


def _not_derived(fact: str, values: Mapping[str, Value], book: RuleBook, seen: frozenset[str]) -> Iterator[str]:
    """What each rule that derives the fact lacked; a fact that was explained already is not explained again."""
    if fact in seen:
        return
    for rule in book.rules:
        if fact in rule.derives:
            yield f"{rule.id}:"
            yield from (f"  {line}" for line in _lacks(rule.rule.when, values, book, seen | {fact}, negated=False))


def _sources(fact: str, values: Mapping[str, Value]) -> str:
    """Who can measure the fact; on a GPU whose counters cannot be read, why not."""
    spec, reason = lookup(fact), values.get("counters_unavailable")
    if spec and reason and "ncu" in spec.sources:
        return f"ncu ({reason})"
    return " or ".join(spec.sources) if spec else "a source that provides it"


def _rule(rule: FiredRule, depth: Depth) -> str:
    facts = ", ".join(f"{name} = {show(value)}" for name, value in rule.matched.items())
    because = f"\n  {rule.because}" if rule.because else ""
    source = f"\n  source: {rule.source}" if rule.source else ""
    place = f"\n  rule: {rule.location}" if depth == "all" and rule.location else ""
    return f"{rule.rule}{f' [{facts}]' if facts else ''}{because}{source}{place}"


def _candidate(candidate: Candidate) -> str:
    return f"{candidate.method}: {candidate.fate}, {candidate.fate_reason}"


def _fact(fact: Fact) -> str:
    return f"{fact.name} = {show(fact.value)}{' ' + fact.unit if fact.unit else ''} ({fact.provenance})"
