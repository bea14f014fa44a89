"""Reviewer: evaluates a solution in a process of its own and turns the result into facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evaluator import pool
from evaluator.types import BaselineName, DeviceSpec, Evaluation, Mode, Request, SanitizerTool, TaskSpec, TimeEstimate, Tool
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
    _accepted: list[tuple[dict[str, int], ...]] = field(default_factory=list)
    """The proposed sizes that the task's reference was seen to accept."""
    _counted: list[tuple[int, str]] = field(default_factory=list)
    """The reference's FLOPs and the operator that has most of them."""

    def review(
        self, solution: Path, seed: int | None = None, rival: TimeEstimate | None = None,
        baselines: tuple[BaselineName, ...] = (), start: str = "",
    ) -> Evaluation:
        """One evaluation. Whatever the solution does, the answer is an Evaluation. `seed` repeats one that a verdict names.

        On a GPU a solution that is not faster than its `rival` is neither sanitized nor profiled; one that is, is profiled for
        its facts alone, and a solution without a rival in full.
        """
        measured = self.mode == "cuda"
        evaluation = pool.evaluate(Request(
            task=self._spec(), solution=str(solution), mode=self.mode, device=self.device, timeout_s=self.timeout_s,
            seed=seed, counters=self._counters() if measured else (), counter_set="facts" if rival else "full",
            sanitize=SANITIZERS if measured else (), rival=rival if measured else None, baselines=baselines, start=start))
        return self._remembered(evaluation)

    def compare(self, solution: Path, start: Path, baselines: tuple[BaselineName, ...]) -> Evaluation:
        """Judges and times a solution on fresh samples, in turns with each baseline, and profiles it in full."""
        return self._remembered(pool.evaluate(Request(
            task=self._spec(), solution=str(solution), mode=self.mode, device=self.device, timeout_s=self.timeout_s,
            counters=self._counters(), baselines=baselines, start=str(start))))

    def _spec(self) -> TaskSpec:
        """The task; sizes that are mere proposals are looked for once, and operations are counted once."""
        known: dict[str, object] = {"arithmetic": self._counted[0]} if self._counted else {}
        if self._accepted:
            known |= {"check_sizes": self._accepted[0], "last_sizes": ()}
        return self.task.spec.model_copy(update=known)

    def _counters(self) -> tuple[str, ...]:
        """The metrics to ask for; none where this machine refuses them."""
        return () if self._closed else COUNTERS

    def _remembered(self, evaluation: Evaluation) -> Evaluation:
        """What later evaluations need not find out again: accepted sizes, the task's operations, tools that cannot be used.

        Every evaluation carries the reason why a tool is not used.
        """
        if self.task.spec.last_sizes and evaluation.verified_sizes and not self._accepted:
            self._accepted.append(evaluation.verified_sizes)
        if "task_bytes" in evaluation.task_facts and not self._counted:
            self._counted.append((int(evaluation.task_facts.get("task_flops", 0)), evaluation.task_operator))
        reason = evaluation.unavailable.get("ncu", "")
        if CLOSED.search(reason):
            self._closed["ncu"] = reason
        return evaluation.model_copy(update={"unavailable": {**self._closed, **evaluation.unavailable}})

    def facts(self, source: str, evaluation: Evaluation) -> Mapping[str, Fact]:
        """What is known of a solution; what was not measured has no fact."""
        return collect(self.task, source, evaluation, self.device)
