"""Two folders of rules: which rules differ, and which recorded decisions that changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelskill.errors import DecisionError
from kernelskill.expertise import method_ids, rule_folders
from kernelskill.memory.run import Run
from kernelskill.policy import Policy, RuleBook, load_rules
from kernelskill.policy.rulebook import MEANING
from kernelskill.report.whatif import Change, decided, summary

RUNS = Path("runs")
"""Where `kernelskill optimize` puts runs that are not told otherwise."""


@dataclass(frozen=True)
class Comparison:
    """What differs."""

    rules: Sequence[str]
    """`added x`, `removed x`, `changed x: when, priority`."""
    changes: Sequence[Change]
    undecided: Sequence[str]
    """Recorded decisions that the first folder cannot take either, with the reason."""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {"rules": list(self.rules), "decisions": [change.as_json() for change in self.changes],
                "undecided": list(self.undecided)}

    def __str__(self) -> str:
        said = [*(self.rules or ["the rules say the same"]), *(str(change) for change in self.changes if change.changed),
                *self.undecided]
        return "\n".join([*said, summary(self.changes) if self.changes else "no recorded decisions: name runs with --runs RUN"])


def compare(before: Path, after: Path, runs: Sequence[Path], *, alone: bool) -> Comparison:
    """Decides on the facts of every recorded decision with both rule sets. Raises RuleError, RunError."""
    methods = method_ids()
    one, other = (load_rules([folder] if alone else rule_folders([folder]), methods) for folder in (before, after))
    first, second = Policy(one), Policy(other)
    changes, undecided = [], []
    for label, facts in _recorded(runs):
        try:
            changes.append(decided(label, first.decide(facts), second, {}))
        except DecisionError as error:
            undecided.append(f"{label}: no decision with {before}: {error.message}")
    return Comparison(list(rule_differences(one, other)), changes, undecided)


def rule_differences(one: RuleBook, other: RuleBook) -> Iterator[str]:
    """A line for every rule that only one side has, or that says something else; a `for_each` rule is one rule."""
    before, after = ({rule.rule.id: rule for rule in reversed(book.rules)} for book in (one, other))
    for name in sorted(before.keys() | after.keys()):
        if name not in after or name not in before:
            yield f"{'removed' if name in before else 'added'} {name} ({(before.get(name) or after[name]).at('id')})"
            continue
        old, new = before[name].written, after[name].written
        if keys := [key for key in ("for_each", *MEANING) if getattr(old, key) != getattr(new, key)]:
            yield f"changed {name}: {', '.join(keys)} ({before[name].at('id')} → {after[name].at('id')})"


def _recorded(runs: Sequence[Path]) -> Iterator[tuple[str, Any]]:
    folders = list(runs) or sorted(path.parent for path in RUNS.glob("*/run.json"))
    for folder in folders:
        for round_, _, decision in Run.open(folder).decisions:
            yield f"{folder.name} round {round_}", decision.facts
