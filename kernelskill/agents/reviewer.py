"""Reviewer: evaluates a solution in a process of its own and turns the result into facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evaluator import pool
from evaluator.types import UNPROFILED, BaselineName, DeviceSpec, Evaluation, Mode, Request, SanitizerTool, Tool
from kernelskill.facts import collect
from kernelskill.facts.nsight import COUNTERS
from kernelskill.model import Fact, Task

SANITIZERS: tuple[SanitizerTool, ...] = ("memcheck", "racecheck", "initcheck", "synccheck")
CLOSED = re.compile(r"forbidden here|not installed")
"""Reasons that hold for every evaluation on this machine."""


@dataclass(frozen=True)
class Reviewer:
    """Compile, verify, profile: on the simulator (`sim`) or on a GPU (`cuda`)."""

    task: Task
    device: DeviceSpec
    mode: Mode
    timeout_s: float
    _closed: dict[Tool, str] = field(default_factory=dict)

    def review(
        self, solution: Path, seed: int | None = None, worth_us: float | None = None,
        baselines: tuple[BaselineName, ...] = (), start: str = "",
    ) -> Evaluation:
        """One evaluation. Whatever the solution does, the answer is an Evaluation. `seed` repeats one that a verdict names.

        On a GPU a solution that is not faster than `worth_us` is neither sanitized nor profiled.
        """
        measured = self.mode == "cuda"
        counters = COUNTERS if measured and not self._closed else ()
        evaluation = pool.evaluate(Request(
            task=self.task.spec, solution=str(solution), mode=self.mode, device=self.device, timeout_s=self.timeout_s,
            seed=seed, counters=counters, sanitize=SANITIZERS if measured else (), worth_us=worth_us,
            baselines=baselines, start=start))
        return self._with_closed(evaluation)

    def compare(self, solution: Path, start: Path, baselines: tuple[BaselineName, ...]) -> Evaluation:
        """Judges and times a solution on fresh samples, in turns with each baseline; without tools and counters."""
        return pool.evaluate(Request(
            task=self.task.spec, solution=str(solution), mode=self.mode, device=self.device, timeout_s=self.timeout_s,
            baselines=baselines, start=str(start), worth_us=UNPROFILED))

    def _with_closed(self, evaluation: Evaluation) -> Evaluation:
        """Tools that cannot be used on this machine are not tried again; every evaluation carries the reason."""
        reason = evaluation.unavailable.get("ncu", "")
        if CLOSED.search(reason):
            self._closed["ncu"] = reason
        return evaluation.model_copy(update={"unavailable": {**self._closed, **evaluation.unavailable}})

    def facts(self, source: str, evaluation: Evaluation) -> Mapping[str, Fact]:
        """What is known of a solution; what was not measured has no fact."""
        return collect(self.task, source, evaluation, self.device)
