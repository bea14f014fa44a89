"""The shape of a kernel family: its plan, the methods that change the plan, and how a plan becomes code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from kernelskill.model import Task
from kernelskill.writers.template.module import Code, ProgramText

Plan = TypeVar("Plan")
Problem = TypeVar("Problem")
Param = bool | int | float | str


class Illegal(Exception):
    """The method cannot change this plan; `str()` is the reason, a clause for the person who asks why not."""


def check(condition: bool, reason: str) -> None:
    """The one way a method refuses a plan: raises Illegal(reason) unless the condition holds."""
    if not condition:
        raise Illegal(reason)


@dataclass(frozen=True)
class Step(Generic[Plan]):
    """One way to apply a method: its parameters and the plan it leads to."""

    params: dict[str, Param]
    plan: Plan


@dataclass(frozen=True)
class Family(Generic[Plan, Problem]):
    """Everything the writer knows of one kernel family."""

    name: str
    plan_type: type[Plan]
    problem: Callable[[Task], Problem]
    """The task in the family's own words. Raises WriterError when the declaration cannot be used."""
    naive: Callable[[Problem, str], Plan]
    """The plan nearest to a start solution that this writer did not write ("" where there is none)."""
    methods: Mapping[str, Callable[[Plan, Problem], list[Step[Plan]]]]
    """Method id to the steps it offers, best first; raises Illegal with the reason when there are none."""
    code: Callable[[Plan, Problem], Code | ProgramText]

    def steps(self, method: str, plan: Plan, problem: Problem) -> list[Step[Plan]]:
        """The steps of a method on a plan. Raises Illegal."""
        check(method in self.methods, f"the {self.name} templates have no method '{method}'")
        steps = self.methods[method](plan, problem)
        check(bool(steps), f"every parameter choice of '{method}' is what the code already does")
        return steps


def plan_values(plan: Any) -> dict[str, Param]:
    """A plan's fields as plain values."""
    return asdict(plan)


def plan_from(plan_type: type[Plan], values: Mapping[str, Any]) -> Plan:
    """Inverse of `plan_values`; raises ValueError naming fields that are missing or unknown."""
    expected = {f.name for f in fields(plan_type)}  # type: ignore[arg-type]
    if expected != set(values):
        raise ValueError(f"plan fields {sorted(values)} are not {sorted(expected)}")
    return TypeAdapter(plan_type).validate_python(values)
