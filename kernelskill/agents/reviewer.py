"""Reviewer: evaluates a solution in a process of its own and turns the result into facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluator import pool
from evaluator.types import DeviceSpec, Evaluation, Mode, Request
from kernelskill.facts import collect
from kernelskill.model import Fact, Task


@dataclass(frozen=True)
class Reviewer:
    """Compile, verify, profile: on the simulator (`sim`) or on a GPU (`cuda`)."""

    task: Task
    device: DeviceSpec
    mode: Mode
    timeout_s: float

    def review(self, solution: Path, seed: int | None = None) -> Evaluation:
        """One evaluation. Whatever the solution does, the answer is an Evaluation. `seed` repeats one that a verdict names."""
        return pool.evaluate(Request(task=self.task.spec, solution=str(solution), mode=self.mode, device=self.device,
                                     timeout_s=self.timeout_s, seed=seed))

    def facts(self, source: str, evaluation: Evaluation) -> Mapping[str, Fact]:
        """What is known of a solution; what was not measured has no fact."""
        return collect(self.task, source, evaluation, self.device)
