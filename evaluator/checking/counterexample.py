"""A fault as the person gets it: the smallest example, what was done, and a program that shows it without this package."""

from __future__ import annotations

from evaluator.checking.lab import Lab
from evaluator.checking.properties import Violation
from evaluator.checking.reproduction import reproduction
from evaluator.checking.search import Fault
from evaluator.checking.types import Counterexample, Example
from evaluator.conditions import APART, Conditions
from evaluator.trees import Leaf, leaves

ORDERS: dict[int | None, str] = {None: "", -1: "blocks backwards", APART: "all blocks at once"}
HOW = {"fresh": "a call", "repeat": "the same call once more", "refill": "a call with new data in the same buffers"}


def counterexample(fault: Fault, lab: Lab, title: str) -> Counterexample:
    """The fault in the report's terms."""
    violation = fault.violation
    posed = violation.steps[-1].posed
    arrays = [(path, leaf) for name, value in posed.problem.inputs.items() for path, leaf in leaves(value, name)]
    inputs = tuple(f"{path}: {leaf.dtype}{list(leaf.shape)}" for path, leaf in arrays if isinstance(leaf, Leaf))
    return Counterexample(
        example=posed.example, scenario=_scenario(violation), message=violation.message,
        inputs=inputs, mismatch=violation.mismatch, finding=violation.finding, first_found=_single(fault.first_found),
        after=fault.after, flaky=fault.flaky,
        reproduction=reproduction(violation, title, lab.oracle.spec, lab.request.request.solution, f"{violation.property}.py"))


def _scenario(violation: Violation) -> str:
    """The calls, told."""
    told = []
    for step in violation.steps:
        conditions, layout = step.conditions or Conditions(), step.posed.example.layout
        more = [f"{layout} inputs" if layout != "contiguous" else "",
                ORDERS.get(conditions.block_order, "blocks in a random order"),
                f"fresh memory holding {conditions.fresh_byte:#x}" if conditions.fresh_byte is not None else "",
                "the inputs arriving late on the caller's stream" if conditions.late_stream else ""]
        sizes = ", ".join(f"{name}={value}" for name, value in step.posed.example.sizes.items())
        told.append(f"{HOW[step.how]} on {sizes}" + "".join(f", {word}" for word in more if word))
    return "one call" if told == [f"a call on {sizes}"] else "; then ".join(told)


def _single(drawn: Example | tuple[Example, Example]) -> Example:
    return drawn if isinstance(drawn, Example) else drawn[0]
