"""What decides: the built-in rules with the user's folders after them, over the methods that have a card."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelskill.methods import load_methods
from kernelskill.paths import methods_folder, rules_folder
from kernelskill.policy import RuleBook, load_rules


def rule_folders(extra: Sequence[Path] = (), builtin: Path | None = None) -> list[Path]:
    """The built-in rules (or those that stand in for them) first, the user's after them: a later rule wins by id."""
    return [builtin or rules_folder(), *extra]


def method_ids() -> list[str]:
    """Every method that has a card. Raises MethodError."""
    return sorted(load_methods(methods_folder()))


def rule_book(extra: Sequence[Path] = (), builtin: Path | None = None) -> RuleBook:
    """The rules of these folders. Raises RuleError, MethodError when they cannot be used."""
    return load_rules(rule_folders(extra, builtin), method_ids())
