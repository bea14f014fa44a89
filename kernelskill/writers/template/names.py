"""Names and size values that come from a task's declaration."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from kernelskill.errors import WriterError
from kernelskill.model import Task
from kernelskill.tasks.reference import reference_inputs
from kernelskill.writers.template.host import safe_name

SIZE_EXPRESSION = re.compile(r"[\w\s+*/()%-]+")


def kernel_name(text: str) -> str:
    """A kernel name made of the task's name; the ending keeps it apart from C's words and CUDA's functions."""
    words = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return f"{words if re.match('[a-z]', words) else 'task_' + words}_kernel"


def size_value(task: Task, dimension: str | int) -> int:
    """The dimension (a size name, a number, or arithmetic over size names) at the task's full sizes. Raises WriterError."""
    text = str(dimension)
    try:
        if not SIZE_EXPRESSION.fullmatch(text):
            raise ValueError(text)
        return int(eval(compile(text, "size", "eval"), {"__builtins__": {}}, dict(task.spec.sizes)))
    except (ValueError, NameError, SyntaxError, ArithmeticError) as error:
        known = ", ".join(task.spec.sizes)
        raise WriterError(
            f"'{text}' in the arguments of task '{task.name}' is not arithmetic over its sizes ({known})"
        ) from error


def run_inputs(task: Task, declared: Iterable[str]) -> dict[str, str]:
    """The inputs in the order in which `run` receives them: name in the task -> name in the generated code."""
    path = Path(task.spec.path)
    names = tuple(declared)
    if path.is_file():
        names = reference_inputs(path, ast.parse(path.read_text(encoding="utf-8")), task.spec.sizes)
    return {name: safe_name(name, task.spec.sizes) for name in names}
