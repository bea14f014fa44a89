"""Shared by the tests that evaluate solutions end to end: one GPU card, and a bench that writes tasks and solutions."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evaluator.pool import evaluate
from evaluator.types import DeviceSpec, Evaluation, Request, TaskSpec

H200 = DeviceSpec(
    name="NVIDIA H200", compute_capability=(9, 0), sm_count=132, sm_clock_hz=1.98e9, dram_bytes_per_s=4.8e12,
    fp32_flops_per_s=67e12, l2_bytes=50 << 20, l1_shared_bytes_per_sm=256 << 10, shared_bytes_per_sm=228 << 10,
    shared_bytes_per_block=227 << 10,
)


@dataclass(frozen=True)
class Bench:
    """Writes a task and a solution into a folder and evaluates them in a process of their own."""

    folder: Path

    def native(self, reference: str, check_sizes: list[dict[str, int]], sizes: Any = None, **spec: Any) -> TaskSpec:
        return self._task("native", "task.py", "import numpy as np\n" + textwrap.dedent(reference), check_sizes, sizes, spec)

    def kernelbench(self, module: str, check_sizes: list[dict[str, int]], sizes: Any = None, **spec: Any) -> TaskSpec:
        header = "import torch\nimport torch.nn as nn\n"
        return self._task("kernelbench", "problem.py", header + textwrap.dedent(module), check_sizes, sizes, spec)

    def _task(self, kind: str, name: str, text: str, check_sizes: list[dict[str, int]], sizes: Any, spec: Any) -> TaskSpec:
        folder = self.folder / "task"
        folder.mkdir(exist_ok=True)
        path = folder / name
        path.write_text(text)
        sizes = sizes or check_sizes[-1]
        return TaskSpec(name="task", kind=kind, path=str(path), sizes=sizes, check_sizes=tuple(check_sizes), **spec)

    def request(self, task: TaskSpec, solution: str, stages: tuple[str, ...] = ("verify",), timeout_s: float = 120) -> Request:
        path = self.folder / "solution.py"
        path.write_text(textwrap.dedent(solution))
        return Request(task=task, solution=str(path), device=H200, stages=stages, timeout_s=timeout_s)

    def evaluate(self, task: TaskSpec, solution: str, **options: Any) -> Evaluation:
        return evaluate(self.request(task, solution, **options))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def line_of(text: str, part: str) -> int:
    """1-based line of the first line of `text` that holds `part`."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)
