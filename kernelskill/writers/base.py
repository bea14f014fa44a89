"""What every code writer promises: one method in, one complete solution module out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from kernelskill.model import MethodApplication, Task
from kernelskill.writers.request import Request

BEYOND = ("the templates cover element-wise steps, reductions, scans, norms, losses, pooling, matrix products and "
          "convolutions; other code needs another writer: --model NAME for a language model, or --writer handoff")
"""What to say, as a hint, of a task or solution that the built-in writer cannot handle."""


class CodeWriter(Protocol):
    """Writes solutions. A writer sees one method only and answers with a whole Python module."""

    name: str

    def describe(self, task: Task) -> Task:
        """The task with family, operation and arguments filled in where the writer can tell. Raises WriterError."""
        ...

    def start(self, task: Task) -> str:
        """A starting solution for a task that brings none. Raises WriterError."""
        ...

    def applicable(
        self, task: Task, source: str, tried: Collection[MethodApplication] = ()
    ) -> dict[str, MethodApplication]:
        """Methods this writer can apply to `source` now, each with the parameters it would use; `tried` are left out."""
        ...

    def write(self, task: Task, request: Request) -> str:
        """The complete solution module with the method applied. Raises WriterError(what, hint)."""
        ...
