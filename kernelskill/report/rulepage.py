"""One rule as a page: what it says, who can make it fire, what it can cause, which cases test it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kernelskill.expertise import rule_book
from kernelskill.methods import load_methods
from kernelskill.paths import methods_folder
from kernelskill.policy import RuleBook
from kernelskill.policy.conditions import parts, phrase, show, tests
from kernelskill.policy.rulebook import LoadedRule
from kernelskill.policy.schema import Action, Condition, GainFormula, GainRange, Propose, Test, named_methods
from kernelskill.policy.testfile import read_cases, test_path
from kernelskill.report.rulebook import place_json, rules_named
from kernelskill.vocabulary import lookup

GROUP_WORDS = {"all": "all of", "any": "any of", "none": "none of"}


def page_of(extra: Sequence[Path], name: str) -> dict[str, Any]:
    """Everything about a rule, for programs and for `page_text`; a `for_each` rule as it is written."""
    book = rule_book(extra)
    copies = rules_named(book, name)
    one = copies[0] if name == copies[0].id else None
    rule = copies[0]
    said = one.rule if one else rule.written
    return {
        "id": name, "title": said.title, **place_json(rule.at("id")), "status": said.status, "since": said.since,
        "replaces": str(rule.replaced.at("id")) if rule.replaced else None, "priority": said.priority,
        "for_each": "method" if said.for_each else None, "except": list(said.excepted),
        "copies": len(copies), "when": list(condition_lines(said.when)),
        "then": [action_text(action) for action in said.then], "because": said.because, "source": said.source,
        "needs": [need(fact, book) for fact in dict.fromkeys(test.fact for _, test in tests(said.when))],
        "causes": list(consequences(rule, book)) if one else [f"for every method: {action}" for action in said.then],
        "cases": list(cases_of(rule)),
    }


def condition_lines(condition: Condition, depth: int = 0) -> Iterator[str]:
    """A condition as an indented list."""
    if isinstance(condition, Test):
        yield "  " * depth + phrase(condition)
        return
    (group,) = type(condition).model_fields
    yield "  " * depth + GROUP_WORDS[group]
    for part in parts(condition):
        yield from condition_lines(part, depth + 1)


def action_text(action: Action) -> str:
    """An action with the gain that it expects."""
    if not isinstance(action, Propose):
        return str(action)
    gain, params = action.gain, "".join(f", {key} = {show(value)}" for key, value in action.params.items())
    if isinstance(gain, GainRange):
        return f"{action}, expected {show(gain.low)}x to {show(gain.high)}x{params}"
    if isinstance(gain, GainFormula):
        return f"{action}, expected {gain.formula} (else {show(gain.default)}x){params}"
    return f"{action}, expected {gain if isinstance(gain, str) else show(gain) + 'x'}{params}"


def need(fact: str, book: RuleBook) -> dict[str, Any]:
    """Where a fact of the condition can come from."""
    deriving = [rule.id for rule in book.rules if fact in rule.derives]
    spec = lookup(fact.replace("{method}", "method"))
    if spec is None:
        return {"fact": fact, "derived_by": deriving}
    return {"fact": fact, "measured_by": list(spec.sources), "unit": spec.unit, "meaning": spec.meaning}


def consequences(rule: LoadedRule, book: RuleBook) -> Iterator[str]:
    """What follows: the rules that read a derived fact, and for a method the other rules with a say in it."""
    for fact in rule.derives:
        readers = [other.rule.id for other in book.rules if any(test.fact == fact for _, test in tests(other.rule.when))]
        yield f"{fact} is read by {_names(readers) or 'no rule'}"
    for method in dict.fromkeys(m for action in rule.rule.then for m in named_methods(action).values()):
        card = load_methods(methods_folder()).get(method)
        yield f"{method}{f' ({card.title})' if card else ''}: {_others(method, rule, book) or 'no other rule has a say in it'}"


def _others(method: str, rule: LoadedRule, book: RuleBook) -> str:
    found: dict[str, list[str]] = {}
    for other in book.rules:
        for action in other.rule.then:
            if other.rule.id != rule.rule.id and method in named_methods(action).values():
                found.setdefault(str(action), []).append(other.rule.id)
    return "; ".join(f"{action} by {_names(rules)}" for action, rules in sorted(found.items()))


def _names(rules: Sequence[str]) -> str:
    return ", ".join(sorted(set(rules)))


def cases_of(rule: LoadedRule) -> Iterator[dict[str, Any]]:
    """The test cases that name the rule."""
    path = test_path(rule.document.path)
    cases = read_cases(path)[0] if path.exists() else []
    for case in cases:
        for key in ("fires", "not_fires"):
            if rule.rule.id in {name.split("[")[0] for name in getattr(case.case, key)}:
                yield {"case": case.case.name, "expects": key, **place_json(case.location)}


def page_text(page: dict[str, Any]) -> str:
    """The page for people."""
    place = f"{page['path']}:{page['line']}:{page['column']}" + (f" (replaces {page['replaces']})" if page["replaces"] else "")
    since = f" since {page['since']}" if page["since"] else ""
    but = f" (not for {', '.join(page['except'])})" if page["except"] else ""
    copies = f", one copy for each of {page['copies']} methods{but}" if page["for_each"] else ""
    sections = {
        "when": page["when"], "then": page["then"], "because": [page["because"]], "source": [page["source"]],
        "who can fire it": [_need_text(entry) for entry in page["needs"]], "what it can cause": page["causes"],
        "tested by": [f"{case['path']}:{case['line']} {case['expects'].replace('not_fires', 'does not fire')}: {case['case']}"
                      for case in page["cases"]],
    }
    lines = [f"{page['id']}: {page['title']}" if page["title"] else page["id"],
             f"{place}, {page['status']}{since}, priority {page['priority']}{copies}"]
    for title, entries in sections.items():
        if entries := list(filter(None, entries)):
            lines += [f"{title}:", *(f"  {entry}" for entry in entries)]
    return "\n".join(lines)


def _need_text(entry: dict[str, Any]) -> str:
    if "derived_by" in entry:
        return f"{entry['fact']}: derived by {', '.join(entry['derived_by']) or 'no rule'}"
    unit = f" [{entry['unit']}]" if entry["unit"] else ""
    return f"{entry['fact']}{unit}: from {' or '.join(entry['measured_by'])}; {entry['meaning']}"
