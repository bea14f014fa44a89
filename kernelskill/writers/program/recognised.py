"""A proven program in the words of the templates and of the rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelskill.model import Task
from kernelskill.writers.constructor import torch_module
from kernelskill.writers.program.ir import Program
from kernelskill.writers.program.merging import merged, words
from kernelskill.writers.template.module import TorchModule
from kernelskill.writers.template.names import kernel_name
from kernelskill.writers.template.program import ProgramProblem, sides

if TYPE_CHECKING:
    from kernelskill.writers.recognise import Recognised

NOTHING = TorchModule("", (), "", ())
FAMILY = {"map": "elementwise", "reduce": "row_reduction", "scan": "row_reduction", "product": "matmul"}


def recognised_program(task: Task, program: Program) -> Recognised:
    """Family, operation and arguments of the heaviest stage, and the problem for the templates."""
    from kernelskill.writers.recognise import Recognised

    problem = ProgramProblem(kernel_name(task.name), program, tuple(map(merged, program.stages)), NOTHING)
    bindings = tuple(array.binding for array in program.stored if _read(array.name, problem))
    module = torch_module(Path(task.spec.path), tuple(array.name for array in program.arguments), bindings)
    problem = replace(problem, torch_module=module)
    stage = problem.heaviest()
    arguments: dict[str, Any] = {}
    if stage.kind == "product":
        batch, rows, cols = sides(stage)
        arguments = {"m": problem.extent(*batch, *rows), "n": problem.extent(*cols), "k": problem.extent(*stage.reduced)}
    elif stage.kind in ("reduce", "scan"):
        others = [a for a in stage.axes if a not in stage.reduced]
        arguments = {"rows": problem.extent(*others), "cols": problem.extent(*stage.reduced)}
    flops = sum(problem.work(s) * (2 if s.kind == "product" else 1) for s in problem.kernels)
    operation = {"product": "matmul", "map": ""}.get(stage.kind, stage.combine)
    return Recognised(FAMILY[stage.kind], problem, operation, arguments, "program", str(flops))


def _read(name: str, problem: ProgramProblem) -> bool:
    """Whether a kernel, or the statement of a size, needs the array."""
    sized = words(*(size.text for size in problem.needed_sizes()))
    return name in sized or any(name in stage.reads() or stage.result == name for stage in problem.stages)
