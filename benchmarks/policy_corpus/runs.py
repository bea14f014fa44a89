"""Fact sets of optimise runs: every decision of a run's journal, as it was made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.policy_corpus.facts import FactSet, from_facts
from kernelskill.memory.journal import Journal
from kernelskill.model import Decision


def decisions(folders: list[Path]) -> Iterator[FactSet]:
    """One set for each round of each run folder, named `run/<task>/<round>`."""
    for folder in folders:
        task = folder.name.rsplit("-", 2)[0]
        for event in Journal(folder / "journal.jsonl").events():
            if event.name == "decision":
                facts = Decision.model_validate(event.data["decision"]).facts
                yield from_facts(f"run/{task}/{event.data['round']}", "run", facts)
