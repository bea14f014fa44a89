"""The families the writer knows, and which of them a task belongs to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kernelskill.errors import WriterError
from kernelskill.model import Task
from kernelskill.writers.base import BEYOND
from kernelskill.writers.template import (
    elementwise,
    matmul,
    matmul_code,
    program,
    program_code,
    row_code,
    row_reduction,
    transpose,
)
from kernelskill.writers.template.family import Family

ROW_REDUCTION = Family(
    name="row_reduction", plan_type=row_reduction.RowReductionPlan, problem=row_reduction.problem, naive=row_reduction.naive,
    methods=row_reduction.METHODS, code=row_code.code,
)
MATMUL = Family(
    name="matmul", plan_type=matmul.MatmulPlan, problem=matmul.problem, naive=matmul.naive, methods=matmul.METHODS,
    code=matmul_code.code,
)
PROGRAM = Family(
    name="program", plan_type=program.ProgramPlan, problem=program.problem, naive=program.naive, methods=program.METHODS,
    code=program_code.code,
)
FAMILIES: dict[str, Family[Any, Any]] = {
    family.name: family for family in (elementwise.FAMILY, ROW_REDUCTION, transpose.FAMILY, MATMUL, PROGRAM)
}


def describe(task: Task) -> tuple[Task, Family[Any, Any], Any]:
    """The task with its family filled in, that family, and the task in its words. Raises WriterError when no template fits."""
    if task.spec.kind == "kernelbench":
        from kernelskill.writers.recognise import recognise

        found = recognise(task)
        described = replace(task, family=found.family, operation=found.operation, arguments=found.arguments,
                            flops=task.flops or found.flops)
        return described, FAMILIES[found.template], found.problem
    if task.family not in FAMILIES or task.family == PROGRAM.name:
        declared = f"family '{task.family}'" if task.family else "no family"
        raise WriterError(
            f"task '{task.name}' declares {declared}; the templates know {', '.join(n for n in FAMILIES if n != PROGRAM.name)}",
            hint=f"declare family and operation in the task file; {BEYOND}",
        )
    from kernelskill.writers.proof import check_declared

    family = FAMILIES[task.family]
    problem = family.problem(task)
    check_declared(task)
    return task, family, problem
