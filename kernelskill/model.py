"""Frozen values that the whole of kernelskill speaks in. The evaluator's words are in `evaluator.types`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from evaluator.library import unknown_entry
from evaluator.types import Evaluation, Frozen, Shapes, TaskSpec
from kernelskill.errors import TaskError

LOWER_CLASSES = ("tf32", "bf16", "fp16")
"""Precision classes that a task must permit."""
Value = bool | int | float | str
Provenance = Literal[
    "ncu", "cuda_event", "cupti", "launched", "nvml", "ptxas", "sass", "source", "simulated", "modelled", "task", "history",
    "device_card", "writer", "experience", "verification",
]


class Fact(Frozen):
    """One thing known about a solution, its task, the device or the run. What is not known has no Fact."""

    name: str
    value: bool | int | float | str
    unit: str = ""
    provenance: Provenance


class MethodApplication(Frozen):
    """An optimisation as a tiny value: which method, with which parameters."""

    method: str
    params: dict[str, bool | int | float | str] = Field(default_factory=dict)

    def __str__(self) -> str:
        inner = ", ".join(f"{k}={v}" for k, v in sorted(self.params.items()))
        return f"{self.method}({inner})" if inner else self.method


class FiredRule(Frozen):
    """A rule that fired: which conjunction of its condition, and the facts that matched."""

    rule: str
    variant: int
    matched: dict[str, bool | int | float | str]
    effects: tuple[str, ...] = ()
    """What followed, e.g. `derive bottleneck.dram`, `propose vectorized_access`, `prefer a over b`."""
    because: str = ""
    source: str = ""
    location: str = ""


class Candidate(Frozen):
    """A method that at least one rule proposed, and its fate."""

    method: str
    proposed_by: tuple[str, ...]
    priority: int
    expected_gain: float
    """Ratio of times, >= 1, after the cap by headroom."""
    params: dict[str, bool | int | float | str] = Field(default_factory=dict)
    fate: Literal["chosen", "vetoed", "beaten", "outranked", "stopped"]
    fate_reason: str
    """e.g. `vetoed by failed_here (failed_here.launch_tuning = 1)`."""


class Decision(Frozen):
    """Facts in, rules fired, the one method chosen or the stop, and why every other lost. Self-contained and versioned."""

    version: Literal[1] = 1
    outcome: Literal["method", "stop"]
    chosen: MethodApplication | None = None
    """The method, with the parameters that its rule decides; what the writer adds is the attempt's."""
    stop_reason: str = ""
    """e.g. `near_speed_of_light`; empty when a method was chosen."""
    reason: str
    """One sentence."""
    facts: dict[str, Fact]
    derived: dict[str, bool | int | float | str] = Field(default_factory=dict)
    fired: tuple[FiredRule, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    replacements: tuple[str, ...] = ()
    """Rules of a later folder that stand in for an earlier rule and touched this decision, a sentence each."""
    rules_digest: str = ""

@dataclass(frozen=True)
class Task:
    """A loaded task: what the evaluator needs (`spec`) and what kernelskill knows besides."""

    spec: TaskSpec
    root: Path
    """Folder of the task; files of the task are below it."""
    start_source: str
    """The starting solution: a Python module, native form (`run`) or KernelBench form (`ModelNew`); "" where there is none."""
    family: str = ""
    """Declared or recognised: `elementwise`, `row_reduction`, `transpose`, `matmul`; "" unknown."""
    operation: str = ""
    """Within the family, e.g. `softmax`; for element-wise chains the expression (see writers/template)."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """Operation's details: input names, shapes as size names, dtype, constants."""
    flops: str = ""
    """Expression over size names; "" where unknown."""
    allow: frozenset[str] = frozenset()
    """Precision classes the task permits beyond fp32, e.g. {"tf32"}."""

    @property
    def name(self) -> str:
        """The task's name."""
        return self.spec.name

    def with_start(self, source: str) -> Task:
        """The same task with another starting solution."""
        return replace(self, start_source=source)

    def permitting(self, classes: Iterable[str]) -> Task:
        """The same task with more precision classes permitted. Raises TaskError for what is none."""
        added = frozenset(classes)
        for wrong in sorted(added - set(LOWER_CLASSES)):
            raise TaskError(f"--allow: no precision class is called {wrong!r} (there are: {', '.join(LOWER_CLASSES)})")
        spec = self.spec.model_copy(update={"allow_tf32": self.spec.allow_tf32 or "tf32" in added})
        return replace(self, spec=spec, allow=self.allow | added)

    def judged_on(self, shapes: Shapes) -> Task:
        """The same task, its solutions judged on other sizes too (`general`) or on its own alone (`exact`)."""
        return replace(self, spec=self.spec.model_copy(update={"shapes": shapes}))

    def allowing(self, operators: Iterable[str]) -> Task:
        """The same task with more operators that may stay library code. Raises TaskError for what names none."""
        added = tuple(operators)
        for wrong in filter(None, map(unknown_entry, added)):
            raise TaskError(f"--allow-library: {wrong}")
        return replace(self, spec=self.spec.model_copy(update={"allow_library": (*self.spec.allow_library, *added)}))


class ModelCall(Frozen):
    """One question to a language model."""

    role: str
    model: str
    digest: str
    """Of the question; the transcript lies under it in the run's store."""
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cost: float | None = None
    """US dollars; None where no price is known."""
    tries: int = 0
    """Calls it took."""
    seconds: float = 0.0
    cached: bool = False
    """The answer was in the store."""
    fault: str = ""
    """Why the answer held no module: `truncated`, `empty`, `refused`, `no_code`, `not_python`, `no_entry`."""


class Usage(Frozen):
    """What the language models of a run used up."""

    calls: int = 0
    retries: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cost: float = 0.0
    """US dollars, of the calls whose price is known."""
    unpriced: int = 0
    """Calls whose price is not known."""
    faults: dict[str, int] = Field(default_factory=dict)
    """Answers without a module, by what was wrong."""

    @property
    def tokens(self) -> int:
        """Of prompts and replies."""
        return self.prompt_tokens + self.reply_tokens

    @classmethod
    def of(cls, calls: Sequence[ModelCall]) -> Usage:
        """The sum."""
        made = [call for call in calls if not call.cached]
        return cls(
            calls=len(made), retries=sum(max(call.tries - 1, 0) for call in made), cached=len(calls) - len(made),
            prompt_tokens=sum(call.prompt_tokens for call in made), reply_tokens=sum(call.reply_tokens for call in made),
            cost=sum(call.cost or 0.0 for call in made), unpriced=sum(call.cost is None for call in made),
            faults=dict(Counter(call.fault for call in calls if call.fault)))


Part = Literal["kernels", "launch", "host"]
"""A part of a solution that a step may change: kernels' text, grid and block of the launches, what the host calls besides."""
DiagnosisKind = Literal["compile", "shape", "numerical", "precision", "memory", "synchronisation", "launch", "timeout",
                        "rejected", "runtime", "unsupported", "off_method", "not_written"]
"""What is wrong with an attempt."""


class Diagnosis(Frozen):
    """Why an attempt failed, with the evidence."""

    kind: DiagnosisKind
    summary: str
    """One sentence: what, where, by how much."""
    evidence: tuple[str, ...] = ()
    log: str = ""
    """The compiler's output, where that says it."""
    key: str = ""
    """The same for the same fault, whatever the values and lines: a repair that ends in a key seen before is the last one."""


Outcome = Literal["improved", "equal", "regressed", "failed", "off_method", "duplicate", "not_written"]
"""What came of an attempt."""


class Attempt(Frozen):
    """One edge of the attempt graph."""

    round: int
    parent: str
    """Digest of the parent solution."""
    child: str
    """Digest of the child; "" when the writer produced none."""
    method: MethodApplication
    outcome: Outcome
    gain: float | None = None
    """Parent's time / child's time, same provenance; None when the child has no time."""
    message: str = ""
    evaluation: Evaluation | None = None
    diagnosis: Diagnosis | None = None
    """Set for what failed, was off-method or was not written."""
    repair: int = 0
    """0: the method's own attempt; n: the nth repair in its round, `parent` is then the solution that failed."""
    asked: str = ""
    """The method that was asked for, where the code turned out to be another one's attempt."""
    opens: tuple[str, ...] = ()
    """A coupled edit: the methods of which one has to follow before this step is judged."""
