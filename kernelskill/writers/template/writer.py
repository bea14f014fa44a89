"""The `template` writer: reads a solution's plan, changes it by one method, renders the new plan."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from kernelskill.errors import KernelSkillError, WriterError
from kernelskill.model import MethodApplication, Task
from kernelskill.writers.base import BEYOND
from kernelskill.writers.request import Request
from kernelskill.writers.task_code import raised_by_task
from kernelskill.writers.template import planline
from kernelskill.writers.template.families import FAMILIES, describe
from kernelskill.writers.template.family import Family, Illegal, Step, plan_from, plan_values


class TemplateWriter:
    """Built in, deterministic: the same plan and task always give the same bytes."""

    name = "template"

    def __init__(self) -> None:
        self._known: dict[str, tuple[Task, Family[Any, Any], Any]] = {}

    def start(self, task: Task) -> str:
        """The family's naive plan, rendered. Raises WriterError when the task is not recognised."""
        family, problem = self._recognise(task)
        return self.render(task, family.naive(problem, ""), ())

    def render(self, task: Task, plan: Any, methods: tuple[MethodApplication, ...]) -> str:
        """The solution module of a plan."""
        family, problem = self._recognise(task)
        line = planline.PlanLine(family.name, plan_values(plan), methods)
        title = f"{task.name}: {task.operation}" if task.operation else task.name
        text: str = family.code(plan, problem).module(title, tuple(str(m) for m in methods), line.text(), problem.torch_module)
        return text

    def plan_of(self, task: Task, source: str) -> tuple[Any, tuple[MethodApplication, ...]]:
        """The plan of a solution and the methods that led to it; the task's own start has the family's naive plan.

        Raises WriterError for a solution that is neither this writer's, unchanged, nor the task's start."""
        family, problem = self._recognise(task)
        line = planline.find(source)
        if line is None:
            if source.strip() != task.start_source.strip():
                raise WriterError("the solution has no plan line: another writer wrote it", hint=BEYOND)
            return family.naive(problem, source), ()
        if line.family != family.name:
            raise WriterError(f"the solution's plan is of family '{line.family}', the task's family is '{family.name}'")
        try:
            plan = plan_from(family.plan_type, line.plan)
        except ValueError as error:
            raise WriterError(f"the solution's plan line does not fit this version's templates: {error}") from error
        if self.render(task, plan, line.methods) != source:
            raise WriterError("the solution was changed after the template writer wrote it, so its plan no longer describes it",
                              hint="go on from an unchanged solution")
        return plan, line.methods

    def applicable(
        self, task: Task, source: str, tried: Collection[MethodApplication] = ()
    ) -> dict[str, MethodApplication]:
        """Methods that can change this solution now, each with its first parameters that are not in `tried`.

        Empty where the task or the solution is not one the templates know (`explain` says why)."""
        try:
            family, problem = self._recognise(task)
            plan, _ = self.plan_of(task, source)
        except WriterError:
            return {}
        found = {}
        for method in family.methods:
            fresh = [a for a in _applications(family, method, plan, problem) if a not in tried]
            if fresh:
                found[method] = fresh[0]
        return found

    def explain(self, task: Task, source: str, method: str) -> str:
        """Why the method cannot be applied to this solution; "" when it can. Raises WriterError for an unknown task."""
        family, problem = self._recognise(task)
        plan, _ = self.plan_of(task, source)
        try:
            family.steps(method, plan, problem)
        except Illegal as reason:
            return str(reason)
        return ""

    def write(self, task: Task, request: Request) -> str:
        """The parent with the method applied. Parameters that the request leaves open are the method's first choice."""
        wanted = request.method
        if wanted is None or request.role == "repairer":
            raise WriterError("the template writer applies a method that is named; it chooses none and repairs nothing")
        family, problem = self._recognise(task)
        plan, methods = self.plan_of(task, request.source)
        try:
            steps = family.steps(wanted.method, plan, problem)
        except Illegal as reason:
            raise WriterError(f"{wanted.method} cannot be applied: {reason}",
                              hint="choose among the methods that the writer calls applicable") from reason
        step = _matching(steps, wanted)
        return self.render(task, step.plan, (*methods, MethodApplication(method=wanted.method, params=step.params)))

    def describe(self, task: Task) -> Task:
        """The task with family, operation and arguments as recognised. Raises WriterError when no template fits."""
        return self._describe(task)[0]

    def _recognise(self, task: Task) -> tuple[Family[Any, Any], Any]:
        return self._describe(task)[1:]

    def _describe(self, task: Task) -> tuple[Task, Family[Any, Any], Any]:
        """Recognising runs the reference on small inputs, so it is done once a task file."""
        if task.spec.path not in self._known:
            try:
                self._known[task.spec.path] = describe(task)
            except KernelSkillError:
                raise
            except Exception as error:  # the reference is the user's code: whatever it raises is told with its place
                raise raised_by_task(error, Path(task.spec.path)) from error
        return self._known[task.spec.path]


def _applications(family: Family[Any, Any], method: str, plan: Any, problem: Any) -> list[MethodApplication]:
    try:
        return [MethodApplication(method=method, params=step.params) for step in family.steps(method, plan, problem)]
    except Illegal:
        return []


def _matching(steps: list[Step[Any]], wanted: MethodApplication) -> Step[Any]:
    """The first step that agrees with every parameter the request gives. Raises WriterError listing the choices."""
    for step in steps:
        if all(step.params.get(name) == value for name, value in wanted.params.items()):
            return step
    choices = "; ".join(str(MethodApplication(method=wanted.method, params=s.params)) for s in steps)
    raise WriterError(f"{wanted} is not one of the choices here", hint=f"the choices are {choices}")


__all__ = ["FAMILIES", "TemplateWriter"]
