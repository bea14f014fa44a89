"""Checks of the test files beside the rules. They never keep rules from loading."""
# ruff: noqa: D102 - `validate` and `finalize` are documented by Validator

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kernelskill.errors import Location, did_you_mean
from kernelskill.issues import Issue
from kernelskill.policy.lint_words import BLANK
from kernelskill.policy.rulebook import LoadedRule
from kernelskill.policy.testfile import LoadedCase, names_rule, read_cases, test_path
from kernelskill.policy.validator import Validator


class TestedRules(Validator):
    """A rule file without a test file, and a rule without a case that fires it or one that does not."""

    check = "tested-rules"
    severity = "warning"
    __test__ = False

    def finalize(self) -> Iterator[Issue]:
        files: dict[Path, dict[str, LoadedRule]] = {}
        for rule in self.book.rules:
            files.setdefault(rule.document.path, {}).setdefault(rule.rule.id, rule)
        for path, rules in files.items():
            cases_at = test_path(path)
            if not cases_at.exists():
                yield Issue(self.check, self.severity, Location(path, 1, 1), "the rules of this file have no test file",
                            f"write {cases_at.name} with a case that fires each rule and one that does not")
                continue
            cases, issues = read_cases(cases_at)
            yield from (Issue(issue.check, self.severity, issue.location, issue.message, issue.hint) for issue in issues)
            if not issues:
                yield from self._untested(rules, cases)
                yield from self._strangers(cases)
                yield from _blanks(cases)

    def _untested(self, rules: dict[str, LoadedRule], cases: list[LoadedCase]) -> Iterator[Issue]:
        for ident, rule in rules.items():
            for key, kind in (("fires", "fires"), ("not_fires", "does not fire")):
                names = {name for case in cases for name in getattr(case.case, key)}
                if not any(name.split("[")[0] == ident for name in names):
                    yield self.issue(rule, ("id",), f"no case in which {ident} {kind}",
                                     f"add `{key}: [{ident}]` to a case of {test_path(rule.document.path).name}")

    def _strangers(self, cases: list[LoadedCase]) -> Iterator[Issue]:
        for case in cases:
            for key in ("fires", "not_fires"):
                for index, name in enumerate(getattr(case.case, key)):
                    if not any(names_rule(name, rule.id) for rule in self.book.rules):
                        hint = did_you_mean(name, {rule.rule.id for rule in self.book.rules})
                        yield Issue(self.check, self.severity, case.at(key, index), f"no rule is called `{name}`", hint)


def _blanks(cases: list[LoadedCase]) -> Iterator[Issue]:
    """Blanks of the scaffold in the words of a case."""
    for case in cases:
        for keys, text in [(("name",), case.case.name), *((("facts", name), name) for name in case.case.facts)]:
            if match := BLANK.search(text):
                yield Issue("blank", "error", case.at(*keys), f"`{match[0]}` is still to be filled in",
                            "write what the blank asks for")
