"""What a check is asked (`CheckRequest`) and what it answers (`CheckReport`), as frozen JSON-able values."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evaluator.types import Environment, Finding, Frozen, Mismatch, Request

Layout = Literal["contiguous", "offset", "strided", "transposed"]
"""How an input lies in memory: fresh; one element behind an aligned address; every other element; axes reversed."""
LAYOUTS: tuple[Layout, ...] = ("contiguous", "offset", "strided", "transposed")

Property = Literal[
    "runs", "agreement", "special_values", "written", "memory", "inputs", "bounds", "synchronisation", "repeatable",
    "block_order", "calls", "stream", "layouts", "relation",
]
TITLES: dict[str, str] = {
    "runs": "runs on every shape",
    "agreement": "agrees with the reference in double precision",
    "special_values": "NaN, infinities and denormals as the reference has them",
    "written": "every output element written",
    "memory": "independent of what memory held before",
    "inputs": "inputs unchanged",
    "bounds": "no access outside its buffers",
    "synchronisation": "no race, no misused barrier",
    "repeatable": "same inputs, same result",
    "block_order": "independent of the order of blocks",
    "calls": "independent of earlier calls",
    "stream": "follows the caller's stream",
    "layouts": "memory layout",
    "relation": "relation of the task",
}
SHARE_DONE = "its share of the work is done"
"""Note of a search that stopped before it had drawn all that was asked for."""
Outcome = Literal["held", "violated", "not_tested", "not_promised"]
"""`not_promised`: tried, and wrong or refused, but neither the task nor the solution's declaration asks for it."""


class Example(Frozen):
    """One drawn input; with the task's file it is reproducible from these alone."""

    sizes: dict[str, int]
    values: str = "task"
    """Kind of values: see evaluator/inputs.py and evaluator/checking/values.py."""
    seed: int = 0
    dtype: str = ""
    """Of the floating-point inputs; "" as the task makes them."""
    layout: Layout = "contiguous"

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        shape = ", ".join(f"{name}={value}" for name, value in self.sizes.items())
        layout = "" if self.layout == "contiguous" else f"{self.layout} inputs"
        more = "".join(f", {word}" for word in (self.dtype, layout) if word)
        return f"{shape}; {self.values} values, seed {self.seed}{more}"


class Declaration(Frozen):
    """What a solution says it supports: its module-level `SUPPORTS = {...}`, a literal. Without one: what the task has."""

    sizes: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Size -> any of `min`, `max`, `multiple_of`. `min = 0` asks for empty inputs too."""
    layouts: tuple[Layout, ...] = ("contiguous",)
    dtypes: tuple[str, ...] = ()
    """Floating-point dtypes that the inputs may have besides the task's own."""
    values: Literal["any", "finite"] = "any"
    """`finite`: NaN and infinities among the inputs are outside what it promises."""
    stated: bool = False


class CheckRequest(Frozen):
    """One check. JSON on the judge's stdin."""

    request: Request
    """Task, solution, device and mode; `timeout_s` bounds the whole check, `seed` is the check's."""
    examples: int = Field(100, ge=1)
    """Random examples of the agreement property, after the systematic ones; other properties get a share."""
    layouts: tuple[Layout, ...] = ()
    """Layouts that count although the solution does not declare them."""
    known: tuple[Example, ...] = ()
    """Examples that failed before: tried first."""
    family: str = ""
    operation: str = ""
    work_limit: int | None = None
    """Largest product of the sizes; None: what the mode handles in a moment."""
    cost: float | None = Field(None, gt=0)
    """Nominal seconds of the whole check (`lab.COST_OF_CALL`); None: what `examples` asks for."""


class Counterexample(Frozen):
    """The smallest example found that shows a fault."""

    example: Example
    scenario: str
    """What was done: `one call`, `the same call once more`, ..."""
    message: str
    inputs: tuple[str, ...] = ()
    """`x: float32[3, 5]` of every input."""
    mismatch: Mismatch | None = None
    finding: Finding | None = None
    first_found: Example | None = None
    """The example as drawn, before shrinking."""
    after: int = 0
    """Examples of this property until the fault showed."""
    reproduction: str = ""
    """A Python program that shows the fault on a GPU with NumPy and cupy (or torch) alone."""
    flaky: bool = False
    """The same example also passed: nondeterminism."""


class Verdict(Frozen):
    """One property."""

    property: Property
    title: str
    outcome: Outcome
    examples: int = 0
    """Examples on which it was judged."""
    note: str = ""
    """Why it was not tested, or what limits the claim."""
    counterexample: Counterexample | None = None


class CheckReport(Frozen):
    """The answer: a verdict for every property."""

    task: str
    solution: str
    outcome: Literal["passed", "failed", "refused"]
    """`refused`: nothing could be checked; `message` says why."""
    message: str
    environment: Environment
    declaration: Declaration = Declaration()
    seed: int = 0
    verdicts: tuple[Verdict, ...] = ()
    warnings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    examples: int = 0
    calls: int = 0
    """Calls of the solution."""
    seconds: float = 0.0
    processor_s: float = 0.0
    """Of the judge and the processes that held the solution; `seconds` is the clock's."""
    dangers: tuple[int, ...] = ()
    """Numbers of the solution's launch code around which sizes were drawn."""

    def violated(self) -> list[Verdict]:
        """The verdicts that make the check fail."""
        return [verdict for verdict in self.verdicts if verdict.outcome == "violated"]

    def to_json(self) -> str:
        """One line of JSON."""
        return self.model_dump_json()
