"""The whole corpus: kernels with one planted fault each, right ones, and what people ship: the examples' solutions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.check_quality.honest import HONEST as FIRST_HONEST
from benchmarks.check_quality.honest import shipped
from benchmarks.check_quality.honest_more import MORE_HONEST
from benchmarks.check_quality.kernels import Kernel
from benchmarks.check_quality.planted import PLANTED as FIRST_PLANTED
from benchmarks.check_quality.planted_more import MORE_PLANTED
from benchmarks.check_quality.tasks import task
from evaluator.types import TaskSpec
from kernelskill.tasks import load_task

PLANTED: tuple[Kernel, ...] = (*FIRST_PLANTED, *MORE_PLANTED)
HONEST: tuple[Kernel, ...] = (*FIRST_HONEST, *MORE_HONEST)


@dataclass(frozen=True)
class Entry:
    """A kernel of the corpus with its task."""

    kind: Literal["planted", "honest"]
    name: str
    source: str
    task: TaskSpec
    kernel: Kernel | None = None
    """None: shipped with the examples."""

    @property
    def digest(self) -> str:
        """Of the solution's text: a recorded result is of this one."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:12]


def entries(folder: Path) -> Iterator[Entry]:
    """Every kernel; the tasks' references are written into `folder`."""
    for kernel in PLANTED:
        yield Entry("planted", kernel.name, kernel.source, task(kernel.task, folder), kernel)
    for kernel in HONEST:
        yield Entry("honest", kernel.name, kernel.source, task(kernel.task, folder), kernel)
    for name, file, example in shipped():
        yield Entry("honest", name, file.read_text(encoding="utf-8"), load_task(example).spec)
