"""A fault as the person gets it: the smallest example, what was done, and a program that shows it without this package."""

from __future__ import annotations

from evaluator.checking.lab import Lab
from evaluator.checking.search import Fault
from evaluator.checking.types import Counterexample, Example
from evaluator.trees import Leaf, leaves


def counterexample(fault: Fault, lab: Lab) -> Counterexample:
    """The fault in the report's terms."""
    violation = fault.violation
    posed = violation.steps[-1].posed
    inputs = tuple(f"{path}: {leaf.dtype}[{', '.join(map(str, leaf.shape))}]"
                   for name, value in posed.problem.inputs.items() for path, leaf in leaves(value, name) if isinstance(leaf, Leaf))
    return Counterexample(
        example=posed.example, scenario=" then ".join(step.how for step in violation.steps), message=violation.message,
        inputs=inputs, mismatch=violation.mismatch, finding=violation.finding, first_found=_single(fault.first_found),
        after=fault.after, flaky=fault.flaky)


def _single(drawn: Example | tuple[Example, Example]) -> Example:
    return drawn if isinstance(drawn, Example) else drawn[0]
