"""Generator: the first solution of a task that brings none. Several are written, reviewed and mended, the best is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evaluator.types import Evaluation, Status
from kernelskill.agents.diagnoser import classify, not_written
from kernelskill.agents.planner import Planner
from kernelskill.agents.repairer import repair_request, to_repair
from kernelskill.agents.reviewer import Reviewer
from kernelskill.errors import WriterError
from kernelskill.memory.run import Run
from kernelskill.model import Attempt, MethodApplication, Task
from kernelskill.writers import CodeWriter, Request

SEED = "first_solution"
"""What stands for a method in the record of a seed."""


@dataclass(frozen=True)
class Generator:
    """Makes the start of one run."""

    task: Task
    run: Run
    reviewer: Reviewer
    writer: CodeWriter
    planner: Planner

    def start(self) -> tuple[str, Evaluation] | None:
        """The task's own start reviewed, else the fastest seed that passes, else the last that failed; None without any."""
        if self.task.start_source:
            digest = self.run.keep_source(self.task.start_source)
            return digest, self.reviewer.review(self.run.source_path(digest))
        for number in range(1, self.run.config.seeds + 1):
            for attempt in self._seeds(number):
                self.run.keep_seed(attempt)
        made = [(a.child, a.evaluation) for a in self.run.seeds if a.evaluation is not None]
        return min(made, key=lambda seed: _rank(seed[1])) if made else None

    def _seeds(self, number: int) -> Iterator[Attempt]:
        """Seed `number`, then its repairs while one is due; goes on where a kill ended."""
        request = self.planner.first_solution(number)
        if not self._made(number):
            yield self._bring(request, self._draft(number))
        while (failed := to_repair(self._made(number), self.run.config.repairs)) is not None and failed.diagnosis is not None:
            mend = repair_request(request, failed.diagnosis, self.run.source(failed.child), self.run.source_path(failed.child))
            edge = {"parent": failed.child, "repair": failed.repair + 1}
            yield self._bring(mend, self._draft(number).model_copy(update=edge))

    def _ready(self) -> str:
        """The templates' naive kernel, where they know the task: it costs nothing. "" where they do not."""
        try:
            return self.writer.start(self.task)
        except WriterError:
            return ""

    def _made(self, number: int) -> list[Attempt]:
        return [a for a in self.run.seeds if a.round == number]

    @staticmethod
    def _draft(number: int) -> Attempt:
        return Attempt(round=number, parent="", child="", method=MethodApplication(method=SEED), outcome="not_written")

    def _bring(self, request: Request, draft: Attempt) -> Attempt:
        ready = self._ready() if draft.round == 1 and not draft.repair else ""
        try:
            child = self.run.keep_source(ready or self.writer.write(self.task, request))
        except WriterError as error:
            return draft.model_copy(update={"message": str(error), "diagnosis": not_written(str(error))})
        draft = draft.model_copy(update={"child": child})
        if any(a.child == child for a in self.run.seeds):
            return draft.model_copy(update={"outcome": "duplicate", "message": "the same code as an earlier first solution"})
        evaluation = self.reviewer.review(self.run.source_path(child))
        if evaluation.status is Status.PASSED:
            return draft.model_copy(update={"outcome": "improved", "evaluation": evaluation})
        diagnosis = classify(evaluation)
        return draft.model_copy(update={"outcome": "failed", "message": diagnosis.summary, "diagnosis": diagnosis,
                                        "evaluation": evaluation})


def _rank(evaluation: Evaluation) -> tuple[bool, float]:
    """Passing first, then the shortest time."""
    time = evaluation.time.time_us if evaluation.time is not None else float("inf")
    return evaluation.status is not Status.PASSED, time
