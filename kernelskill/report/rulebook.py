"""The rules for people and programs: problems, test results, lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelskill.errors import Location, RuleError, did_you_mean
from kernelskill.expertise import method_ids, rule_book, rule_folders
from kernelskill.issues import Issue
from kernelskill.policy import RuleBook, check_rules, load_rules, run_rule_tests
from kernelskill.policy.rulebook import LoadedRule
from kernelskill.policy.ruletest import Coverage, RuleTestResult, coverage, load_cases


def rules_named(book: RuleBook, name: str) -> list[LoadedRule]:
    """The rule of an id, of a `for_each` rule all its copies; raises RuleError with near names when there is none."""
    found = [rule for rule in book.rules if name in (rule.id, rule.rule.id)]
    if not found:
        hint = did_you_mean(name, {rule.rule.id for rule in book.rules})
        raise RuleError(f"no rule is called {name!r}", hint=hint or "`kernelskill rules list` lists them")
    return found


def checked(extra: Sequence[Path]) -> tuple[list[Issue], str]:
    """Every issue, and a closing line."""
    book, issues = check_rules(rule_folders(extra), method_ids())
    return issues, f"{len({rule.rule.id for rule in book.rules})} rules: {len(issues)} problem{'s' * (len(issues) != 1)}"


def issue_json(issue: Issue) -> dict[str, Any]:
    """An issue for programs."""
    return {"check": issue.check, "severity": issue.severity, **place_json(issue.location), "message": issue.message,
            "hint": issue.hint}


def place_json(place: Location) -> dict[str, Any]:
    """A place for programs."""
    return {"path": str(place.path), "line": place.line, "column": place.column}


@dataclass(frozen=True)
class TestOutcome:
    """What the test files said; `seen` where coverage was asked for."""

    __test__ = False

    results: Sequence[RuleTestResult]
    seen: Coverage | None = None
    threshold: float = 0.0
    counted: str = ""
    """Of which rules and cases the coverage is."""

    @property
    def good(self) -> bool:
        """Every case passed and enough conditions were covered."""
        return all(result.passed for result in self.results) and (self.seen is None or self.seen.share_pct >= self.threshold)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        cases = [{"name": r.name, **place_json(r.location), "passed": r.passed, "failures": list(r.failures)}
                 for r in self.results]
        if self.seen is None:
            return {"cases": cases}
        missed = [{"rule": u.rule, **place_json(u.location), "condition": u.condition, "never": u.never}
                  for u in self.seen.uncovered]
        return {"cases": cases, "counted": self.counted,
                "conditions": self.seen.conditions, "coverage_pct": self.seen.share_pct, "uncovered": missed}

    def __str__(self) -> str:
        failed = [result for result in self.results if not result.passed]
        lines = [*map(str, failed), f"{len(self.results)} cases, {len(failed)} failed"]
        if self.seen is not None:
            covered = f"{self.seen.share_pct:.1f} % of {self.seen.conditions} conditions were seen both true and not true"
            lines += [*map(str, self.seen.uncovered), f"{covered} ({self.counted})"]
        return "\n".join(lines)


def tested(extra: Sequence[Path], text: str, threshold: float | None) -> TestOutcome:
    """Runs the cases that contain the text; a threshold (percent) asks for coverage of conditions too.

    With folders of one's own, coverage is of the rules and cases in them; with a text, of the rules that its cases name.
    """
    folders, methods = rule_folders(extra), method_ids()
    results = run_rule_tests(folders, text, methods)
    if threshold is None:
        return TestOutcome(results)
    book = load_rules(folders, methods)
    own = [result for result in results if not extra or _inside(result.location.path, extra)]
    rules = {rule.rule.id for rule in book.rules if not extra or _inside(rule.document.path, extra)}
    if text:
        places = {str(result.location) for result in own}
        named = [name for case in load_cases(folders) if str(case.location) in places
                 for name in (*case.case.fires, *case.case.not_fires)]
        rules &= {name.split("[")[0] for name in named}
    of = " of the folders given" if extra else ""
    counted = f"{len(rules)} rule{'s' * (len(rules) != 1)} and {len(own)} case{'s' * (len(own) != 1)}{of}"
    return TestOutcome(results, coverage(own, book, rules), threshold, counted)


def _inside(path: Path | str, folders: Sequence[Path]) -> bool:
    return any(Path(path).resolve().is_relative_to(folder.resolve()) for folder in folders)


def listed(extra: Sequence[Path]) -> list[dict[str, Any]]:
    """One row a rule, by id; a `for_each` rule is one row, as it is written."""
    book = rule_book(extra)
    rules = {rule.rule.id: rule for rule in reversed(book.rules)}
    return [{"id": name, "title": rule.rule.title, "status": rule.rule.status, "priority": rule.rule.priority,
             "for_each": "method" if rule.rule.for_each else None, "except": list(rule.rule.excepted),
             "then": [str(action) for action in rule.written.then], **place_json(rule.at("id")),
             "replaces": place_json(rule.replaced.at("id")) if rule.replaced else None}
            for name, rule in sorted(rules.items())]


def list_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The rows as text."""
    width = max((len(row["id"]) for row in rows), default=0)
    return [f"{row['id']:<{width}}  {row['status']:<12}  {row['title']}  ({'; '.join(row['then'])})"
            + (f"  replaces {row['replaces']['path']}:{row['replaces']['line']}" if row["replaces"] else "") for row in rows]
