"""The `replay` writer: answers from a recorded run, so that its rounds can be played again, with no model and no person.

Where the new run comes to a solution that the recorded one did not decide at, it has nothing to apply.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kernelskill.errors import WriterError
from kernelskill.model import MethodApplication, Task
from kernelskill.writers.free import FreeWriter
from kernelskill.writers.request import Request


@dataclass(frozen=True)
class Step:
    """One decision of the recorded run, and what its writer did then."""

    source: str
    """The solution it was decided at."""
    applicable: frozenset[str]
    """What the recorded writer could apply to it."""
    method: MethodApplication | None = None
    """What was asked for, with its parameters; None where the run stopped."""
    answer: str | None = None
    """The module; None where the writer produced none."""
    message: str = ""
    """Why it produced none."""


class ReplayWriter(FreeWriter):
    """The n-th decision at a solution is answered as the n-th one was, a repair as the same module was mended before."""

    name = "replay"

    def __init__(self, start: str, steps: Sequence[Step], repairs: Mapping[str, str]) -> None:
        """`repairs`: failed module -> what the recorded writer made of it."""
        super().__init__(())
        self._start, self._steps, self._repairs = start, tuple(steps), dict(repairs)

    def start(self, task: Task) -> str:
        """The recorded starting solution. Raises WriterError where the run has none."""
        if not self._start:
            raise WriterError("the recorded run has no starting solution", hint="replay a run that has begun")
        return self._start

    def applicable(
        self, task: Task, source: str, tried: Collection[MethodApplication] = ()
    ) -> dict[str, MethodApplication]:
        """What the recorded writer could apply, the method that it did apply with its parameters."""
        step = self._at(source, len(tried))
        if step is None:
            return {}
        return {method: step.method if step.method and step.method.method == method else MethodApplication(method=method)
                for method in sorted(step.applicable)}

    def write(self, task: Task, request: Request) -> str:
        """The recorded module. Raises WriterError where the recorded run asked for something else, or nothing came."""
        if request.role == "repairer":
            if request.source not in self._repairs:
                raise WriterError("the recorded run did not mend this module")
            return self._repairs[request.source]
        step = self._at(request.source, len(request.history))
        if step is None or step.method != request.method:
            asked = f"asked for {step.method}" if step and step.method else "stopped" if step else "was never"
            raise WriterError(f"the recorded run {asked} here, so there is no module for {request.method}",
                              hint="a replay follows the recorded run only under the same rules, device and budget")
        if step.answer is None:
            raise WriterError(step.message or "the recorded writer produced no module")
        return step.answer

    def _at(self, source: str, index: int) -> Step | None:
        here = [step for step in self._steps if step.source == source]
        return here[index] if index < len(here) else None
