"""What the writers have in common that can write any code: people, coding agents and language models."""

from __future__ import annotations

from collections.abc import Collection

from kernelskill.errors import WriterError
from kernelskill.model import MethodApplication, Task


class FreeWriter:
    """A writer that every method is applicable for; the preconditions of a method's card are the loop's business."""

    def __init__(self, methods: Collection[str]) -> None:
        self.methods = tuple(sorted(methods))

    def describe(self, task: Task) -> Task:
        """The task with family and operation where the templates recognise them, otherwise as it is."""
        from kernelskill.writers.template import TemplateWriter

        try:
            return TemplateWriter().describe(task)
        except WriterError:
            return task

    def start(self, task: Task) -> str:
        """The naive kernel of a task that the templates recognise. Raises WriterError for any other."""
        from kernelskill.writers.template import TemplateWriter

        return TemplateWriter().start(task)

    def applicable(
        self, task: Task, source: str, tried: Collection[MethodApplication] = ()
    ) -> dict[str, MethodApplication]:
        """Every method; its parameters are the writer's to choose. One that was tried may be tried in another way."""
        return {method: MethodApplication(method=method) for method in self.methods}
