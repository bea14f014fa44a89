"""All checks of rules that can be read. To add one: write a Validator and name it here."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kernelskill.issues import Issue
from kernelskill.policy import lint_logic, lint_words
from kernelskill.policy.lint_cases import TestedRules
from kernelskill.policy.rulebook import RuleBook
from kernelskill.policy.validator import Validator

VALIDATORS: tuple[type[Validator], ...] = (
    lint_words.UnknownFact, lint_words.UnderivedFact, lint_words.UnknownMethod, lint_words.DerivedName, lint_words.OperandType,
    lint_words.ValueRange, lint_words.GainFacts, lint_words.Placeholder, lint_words.Blank, lint_words.Metadata,
    lint_logic.ConflictingConditions, lint_logic.RedundantCondition, lint_logic.UnreachableRule, lint_logic.NegationCycle,
    lint_logic.PreferenceCycle, lint_logic.ShadowedRule, lint_logic.AlwaysVetoed,
)


def lint(book: RuleBook, assumed: Collection[str] = (), with_tests: bool = True) -> Iterator[Issue]:
    """Everything the checks find. `assumed`: facts that rules which could not be read may derive."""
    for validator in (*VALIDATORS, *([TestedRules] if with_tests else [])):
        check = validator(book, assumed)
        for rule in book.rules:
            yield from check.validate(rule)
        yield from check.finalize()
