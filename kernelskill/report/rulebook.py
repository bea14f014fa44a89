"""The rules for people: problems, test results, lists."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from kernelskill.errors import RuleError
from kernelskill.methods import load_methods
from kernelskill.paths import methods_folder, rules_folder
from kernelskill.policy import RuleBook, check_rules, load_rules, run_rule_tests
from kernelskill.policy.conditions import phrase, tests
from kernelskill.policy.ruletest import coverage


def all_folders(extra: Sequence[Path]) -> list[Path]:
    """The built-in rules first, the user's after them."""
    return [rules_folder(), *extra]


def method_ids() -> list[str]:
    """Every method that has a card."""
    return sorted(load_methods(methods_folder()))


def checked(extra: Sequence[Path]) -> tuple[list[str], bool]:
    """Every issue as a line, and whether there is none."""
    book, issues = check_rules(all_folders(extra), method_ids())
    return [*map(str, issues), f"{_count(book)}: {len(issues)} problems"], not issues


def tested(extra: Sequence[Path], text: str, threshold: float | None) -> tuple[list[str], bool]:
    """Failed cases as lines with a closing summary, and whether all is well."""
    folders = all_folders(extra)
    results = run_rule_tests(folders, text, method_ids())
    failed = [str(result) for result in results if not result.passed]
    lines = [*failed, f"{len(results)} cases, {len(failed)} failed"]
    if threshold is None:
        return lines, not failed
    seen = coverage(results, load_rules(folders, method_ids()))
    lines += [*map(str, seen.uncovered), f"{seen.share_pct:.1f} % of {seen.conditions} conditions were seen both true and not true"]
    return lines, not failed and seen.share_pct >= threshold


def listed(extra: Sequence[Path]) -> list[str]:
    """One line a rule; the copies of a `for_each` rule are one."""
    book = load_rules(all_folders(extra), method_ids())
    rules = {rule.rule.id: rule for rule in reversed(book.rules)}
    width = max(len(name) for name in rules)
    return [f"{name:<{width}}  {rules[name].rule.title}  ({'; '.join(map(str, rules[name].rule.then))})" for name in sorted(rules)]


def shown(extra: Sequence[Path], name: str) -> str:
    """A rule's page; raises RuleError with near names when there is no such rule."""
    book = load_rules(all_folders(extra), method_ids())
    found = [rule for rule in book.rules if name in (rule.id, rule.rule.id)]
    if not found:
        near = difflib.get_close_matches(name, [rule.rule.id for rule in book.rules], n=3)
        raise RuleError(f"no rule is called {name!r}", hint="near: " + ", ".join(near) if near else "`kernelskill rules list`")
    rule = found[0]
    conditions = "\n".join(f"  {phrase(test)}" for _, test in tests(rule.rule.when))
    return (f"{rule.id}  ({rule.location}, {rule.rule.status}, since {rule.rule.since}, priority {rule.rule.priority})\n"
            f"{rule.rule.title}\nconditions:\n{conditions}\nthen: {'; '.join(map(str, rule.rule.then))}\n"
            f"because: {rule.rule.because}\nsource: {rule.rule.source}")


def _count(book: RuleBook) -> str:
    return f"{len({rule.rule.id for rule in book.rules})} rules"
