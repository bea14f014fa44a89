"""The part of recognising a task that runs the task's own code: in a process of its own (evaluator/confined.py).

The task's author is the user, but a task may come from anywhere: what it does must not reach the user's files, keys or
network, and must not end this process.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import to_json

from evaluator.confined import Lost, server
from kernelskill.errors import KernelSkillError, Location, TaskError, WriterError
from kernelskill.model import Task
from kernelskill.writers.program.ir import Program
from kernelskill.writers.task_code import raised_by_task
from kernelskill.writers.torch_terms import Leaf, Term

SECONDS = 120.0
"""Importing torch takes a few; the check sizes are small."""


@dataclass(frozen=True)
class Traced:
    """What `Model.forward` computes: a term over its arguments where one of the families takes it, or a program."""

    term: Term | None = None
    arguments: tuple[Leaf, ...] = ()
    program: Program | None = None


def traced(task: Task) -> Traced:
    """The traced model of a KernelBench task, proven on its check sizes. Raises KernelSkillError."""
    return TypeAdapter(Traced).validate_json(_asked("trace_here", task, f"{__name__}:load_torch"))


def check_declared(task: Task) -> None:
    """Raises WriterError where a native task's declared operation is not what its reference computes."""
    _asked("declared_here", task)


def _asked(function: str, task: Task, before: str = "") -> str:
    """The JSON that `function` of this module answers for the task; raises the error that it answers."""
    try:
        payload = to_json(task, inf_nan_mode="constants").decode()
        reply = json.loads(server().ask(f"{__name__}:{function}", payload, SECONDS, before))
    except Lost as lost:
        raise TaskError(f"the task's code cannot be run: {lost}", location=Location(task.spec.path),
                        hint="mend the task and try again") from lost
    if "error" in reply:
        raise _error(reply["error"])
    return json.dumps(reply["value"])


@lru_cache(maxsize=1)
def load_torch() -> None:
    """In the server: what tracing and meta tensors load on first use, so that every trace starts with it."""
    import torch
    from torch import fx

    from kernelskill.writers import recognise, torch_ops, verify  # noqa: F401
    from kernelskill.writers.program import prove, tracing  # noqa: F401

    fx.symbolic_trace(torch.nn.Identity())
    with torch.device("meta"):
        torch.nn.functional.gelu(torch.nn.Linear(1, 1)(torch.rand(1, 1)))


def trace_here(payload: str) -> str:
    """In the confined process."""
    from kernelskill.writers.program.prove import prove
    from kernelskill.writers.program.tracing import trace_program
    from kernelskill.writers.recognise import problem_of, trace
    from kernelskill.writers.verify import verify

    def program(task: Task) -> Traced:
        found = trace_program(Path(task.spec.path), task.spec.allow_library)
        prove(task, found)
        return Traced(program=found)

    def work(task: Task) -> Traced:
        if task.spec.allow_library and (kept := program(task)).program and kept.program.library:
            return kept
        try:
            term, arguments = trace(Path(task.spec.path))
            problem_of(task, term, arguments)
            verify(task, term, arguments)
        except KernelSkillError:
            return program(task)
        return Traced(term, arguments)

    return _answered(payload, work)


def declared_here(payload: str) -> str:
    """In the confined process."""
    from kernelskill.writers.declared import verify_declared

    return _answered(payload, verify_declared)


def _answered(payload: str, work: Any) -> str:
    task = TypeAdapter(Task).validate_json(payload)
    try:
        return to_json({"value": work(task)}, inf_nan_mode="constants").decode()
    except KernelSkillError as error:
        return to_json({"error": _fields(error)}).decode()
    except Exception as error:  # the reference is the user's code: whatever it raises is told with its place
        return to_json({"error": _fields(raised_by_task(error, Path(task.spec.path)))}).decode()


def _fields(error: KernelSkillError) -> dict[str, Any]:
    place = error.location
    return {"task": isinstance(error, TaskError), "message": error.message, "hint": error.hint,
            "place": [str(place.path), place.line, place.column] if place else None}


def _error(fields: dict[str, Any]) -> KernelSkillError:
    place = fields["place"]
    location = Location(*place) if place else None
    return (TaskError if fields["task"] else WriterError)(fields["message"], location=location, hint=fields["hint"])
