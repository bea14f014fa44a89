"""Checks of rules that can be read but may still be wrong."""
from __future__ import annotations
from collections.abc import Iterator
from kernelskill.policy.issues import Issue
from kernelskill.policy.rulebook import RuleBook


def lint(book: RuleBook) -> Iterator[Issue]:
    """All issues."""
    return iter(())
