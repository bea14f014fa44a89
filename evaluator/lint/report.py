"""What the lint of one task says: the evidence of every stage, the findings, and the verdict."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evaluator.lint.cost import Cost
from evaluator.lint.ours import OursEvidence
from evaluator.lint.shipped import Shipped
from evaluator.types import DeviceSpec, Frozen, TaskSpec, Tolerance

LintVerdict = Literal["judgeable", "unjudgeable_as_shipped", "unjudgeable", "not_checked"]
"""`unjudgeable_as_shipped`: its own check accepts a null candidate, ours refuses all. `unjudgeable`: ours accepts one too."""

FindingCode = Literal[
    "null_passes", "null_passes_loose", "ignores_inputs", "hardly_depends", "random", "one_value", "structured_input",
    "dead_work", "no_effect", "untested_operator", "reducible_product", "too_small",
]
SETS_ASIDE = ("null_passes", "ignores_inputs", "random", "dead_work", "no_effect", "reducible_product", "structured_input",
              "too_small")
"""Findings for which a task is scored apart: a large speedup, or a pass, says little about the kernel."""


class Needless(Frozen):
    """What of a reference is not needed, by operator, each with its position among the executed operators."""

    operators: int
    dead: tuple[str, ...] = ()
    no_effect: tuple[str, ...] = ()
    """Handing the input through changes no output bit, on the task's inputs and on all others that were tried."""
    no_effect_on_own_inputs: tuple[str, ...] = ()
    """The same on the task's own inputs only: they never exercise the operator."""
    reduced_products: tuple[str, ...] = ()
    """A sum or mean takes only linear steps after a product: it could be done on the product's operands."""
    untried: int = 0
    """Operators that were not tried for want of time."""


class LintFinding(Frozen):
    """One thing that is wrong with, or special about, a task."""

    code: FindingCode
    message: str
    """What was seen, with its numbers."""


LATE_NOTE = "the later stages ran out of time"
DEAD_NOTE = "the process that runs the reference died or ran out of time"
"""What a report notes where a stage could not say so itself."""


class LintReport(Frozen):
    """The lint of one task."""

    task: str
    kind: str
    verdict: LintVerdict
    findings: tuple[LintFinding, ...] = ()
    shipped: Shipped | None = None
    ours: dict[str, OursEvidence] = Field(default_factory=dict)
    """Null candidate -> what our judge says to it."""
    check_sizes: int = 0
    """Check sizes that the reference accepts."""
    needless: Needless | None = None
    cost: Cost | None = None
    """At the full size."""
    sol_us: float | None = None
    """Speed of light on the device, µs."""
    notes: tuple[str, ...] = ()
    """What could not be done, and why; sizes that were reduced."""
    seconds: float = 0.0

    @property
    def set_aside(self) -> bool:
        """Whether the task is scored apart."""
        return self.verdict != "judgeable" or any(finding.code in SETS_ASIDE for finding in self.findings)


class LintRequest(Frozen):
    """One task to check."""

    task: TaskSpec
    device: DeviceSpec
    """The card for the speed of light."""
    on_gpu: bool = False
    """Run the reference on the GPU, at the full size."""
    tolerance: Tolerance | None = None
    """As shipped; None: the task's own (native), KernelBench's 1e-4."""
    budget_s: float = Field(60.0, gt=0)
    done: LintReport | None = None
    """An earlier report of the task: only the stages that it lacks are done."""
