"""Runs the test files beside the rules, and says which conditions no case ever saw true or not true."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelskill.errors import DecisionError, Location, RuleError
from kernelskill.model import Decision, Fact, Value
from kernelskill.policy.conditions import phrase, tests, verdict
from kernelskill.policy.deciding import Policy
from kernelskill.policy.explain import lacking
from kernelskill.policy.loader import load_rules, methods_named
from kernelskill.policy.rulebook import RuleBook
from kernelskill.policy.testfile import LoadedCase, names_rule, read_cases
from kernelskill.vocabulary import lookup


@dataclass(frozen=True)
class RuleTestResult:
    """Outcome of one case. It passed when there are no failures."""

    name: str
    location: Location
    failures: tuple[str, ...]
    decision: Decision | None
    """None when no decision came about."""

    @property
    def passed(self) -> bool:
        """True when everything was as the case says."""
        return not self.failures

    def __str__(self) -> str:
        return f"{self.location}: {'ok' if self.passed else 'FAILED'}: {self.name}" + "".join(f"\n  {f}" for f in self.failures)


@dataclass(frozen=True)
class Uncovered:
    """A condition that no case saw in both states."""

    rule: str
    location: Location
    condition: str
    never: str
    """`true`, `not true`."""

    def __str__(self) -> str:
        return f"{self.location}: {self.condition} was never {self.never} ({self.rule})"


@dataclass(frozen=True)
class Coverage:
    """How many conditions of the rules were seen both true and not true by the cases."""

    conditions: int
    uncovered: tuple[Uncovered, ...]

    @property
    def share_pct(self) -> float:
        """Covered conditions in percent; 100 when there are none."""
        missed = len({item.location for item in self.uncovered})
        return 100.0 * (self.conditions - missed) / self.conditions if self.conditions else 100.0


def run_rule_tests(folders: Sequence[Path], filter: str = "", methods: Collection[str] | None = None) -> list[RuleTestResult]:
    """Runs every case whose file, name or rules contain `filter`. Raises RuleError for rules or tests that do not load.

    `methods` defaults to the methods that the rules name.
    """
    policy = Policy(load_rules(folders, methods_named(folders) if methods is None else methods))
    cases = [case for case in load_cases(folders) if filter in _searched(case)]
    return [run_case(case, policy) for case in cases]


def load_cases(folders: Sequence[Path]) -> list[LoadedCase]:
    """All cases of all folders. Raises RuleError that lists every broken test file."""
    read = [read_cases(path) for folder in folders for path in sorted(Path(folder).rglob("*.test.yaml"))]
    if issues := [issue for _, issues in read for issue in issues]:
        raise RuleError("test files cannot be used\n" + "\n".join(map(str, issues)))
    return [case for cases, _ in read for case in cases]


def run_case(case: LoadedCase, policy: Policy) -> RuleTestResult:
    """Decides on the facts of the case and compares."""
    facts = {name: _fact(name, value) for name, value in case.case.facts.items()}
    unknown = [f"no fact is called {name}" for name in facts if lookup(name) is None]
    try:
        decision = policy.decide(facts)
    except DecisionError as error:
        return RuleTestResult(case.case.name, case.location, (str(error),), None)
    failures = (*unknown, *_failures(case, decision, policy.book))
    return RuleTestResult(case.case.name, case.location, failures, decision)


def coverage(results: Sequence[RuleTestResult], book: RuleBook, counted: Collection[str] | None = None) -> Coverage:
    """Which conditions the decisions of the cases saw true and not true; copies of a `for_each` rule count as one.

    `counted`: ids of the rules to look at; None: all.
    """
    seen: dict[Location, set[bool]] = {}
    owner: dict[Location, tuple[str, str]] = {}
    worlds = [_values(result.decision) for result in results if result.decision]
    for rule in (rule for rule in book.rules if counted is None or rule.rule.id in counted):
        for where, test in tests(rule.rule.when):
            place = rule.at(*where)
            owner.setdefault(place, (rule.rule.id, phrase(test)))
            seen.setdefault(place, set()).update(verdict(test, values, book.derived) == "holds" for values in worlds)
    missed = [Uncovered(owner[place][0], place, owner[place][1], "true" if state else "not true")
              for place, states in seen.items() for state in (True, False) if state not in states]
    return Coverage(len(seen), tuple(missed))


def _failures(case: LoadedCase, decision: Decision, book: RuleBook) -> Iterator[str]:
    fired = [rule.rule for rule in decision.fired]
    for name in [*case.case.fires, *case.case.not_fires]:
        if not any(names_rule(name, rule.id) for rule in book.rules):
            yield f"no rule is called {name}"
    for name in case.case.fires:
        if not any(names_rule(name, rule) for rule in fired):
            yield f"{name} did not fire" + _lacked(name, decision, book)
    yield from (f"{name} fired" for name in case.case.not_fires if any(names_rule(name, rule) for rule in fired))
    chosen = decision.chosen.method if decision.chosen else None
    if case.case.chooses is not None and chosen != case.case.chooses:
        yield f"chose {chosen or 'to stop'}, not {case.case.chooses}: {decision.reason}"
    if case.case.stops is not None and decision.stop_reason != case.case.stops:
        yield f"stopped with {decision.stop_reason or 'nothing'}, not {case.case.stops}: {decision.reason}"


def _lacked(name: str, decision: Decision, book: RuleBook) -> str:
    """What the rule lacked, where the name means one rule."""
    if name not in book.by_id:
        return ""
    return ": " + "; ".join(lacking(book.by_id[name].rule.when, _values(decision), book))


def _values(decision: Decision) -> Mapping[str, Value]:
    return {name: fact.value for name, fact in decision.facts.items()} | decision.derived


def _fact(name: str, value: Value) -> Fact:
    """A fact of a case, with the provenance that such a fact would have."""
    spec = lookup(name)
    return Fact.model_validate({"name": name, "value": value, "unit": spec.unit if spec else "",
                                "provenance": spec.sources[0] if spec else "source"})


def _searched(case: LoadedCase) -> str:
    return " ".join([str(case.document.path), case.case.name, *case.case.fires, *case.case.not_fires])
