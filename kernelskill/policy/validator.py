"""What a check of rules looks like: one small class, run over every rule and then once over all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import ClassVar

from kernelskill.issues import Issue, Severity
from kernelskill.policy.rulebook import LoadedRule, RuleBook


class Validator:
    """A check. The docstring of a subclass says what it finds; `check` is its name in messages."""

    check: ClassVar[str]
    severity: ClassVar[Severity] = "error"

    def __init__(self, book: RuleBook, assumed: Collection[str] = ()) -> None:
        self.book = book
        self.derived = book.derived | frozenset(assumed)
        """Derivable facts, those of rules that could not be read included."""

    def validate(self, rule: LoadedRule) -> Iterator[Issue]:
        """Findings in one rule."""
        yield from ()

    def finalize(self) -> Iterator[Issue]:
        """Findings that need all rules."""
        yield from ()

    def issue(self, rule: LoadedRule, keys: tuple[str | int, ...], message: str, hint: str = "") -> Issue:
        """A finding at a part of a rule."""
        return Issue(self.check, self.severity, rule.at(*keys), message, hint)
