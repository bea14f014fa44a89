"""What must hold of every example, one function a scenario; a fault is raised as `Violation`, one class a property.

Hypothesis tells faults apart by their class, so a single search finds and shrinks several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from hypothesis.errors import UnsatisfiedAssumption

from evaluator.checking.lab import Answer, Excluded, Lab, Posed, case_of
from evaluator.checking.types import TITLES, Example
from evaluator.checking.values import SPECIAL
from evaluator.comparison import compare
from evaluator.conditions import APART, Conditions
from evaluator.failures import summary
from evaluator.inputs import TASK
from evaluator.solutions import How
from evaluator.trees import Leaf, leaves
from evaluator.types import Finding, Mismatch, Status
from evaluator.verify import FRESH_FLOAT, FRESH_INTEGER

OF_FINDING: dict[str, str] = {
    "out_of_bounds": "bounds", "misaligned": "bounds", "null_pointer": "bounds", "shared_race": "synchronisation",
    "uninitialised_shared": "synchronisation", "divergent_barrier": "synchronisation", "deadlock": "synchronisation",
    "shuffle_outside_mask": "synchronisation", "input_modified": "inputs",
}
"""The property that a finding speaks of; others stop the call: `runs`."""
ILLEGAL = ("IllegalAddress", "illegal memory access", "MisalignedAddress", "misaligned address")
"""How CUDA names an access outside of every allocation."""
NEAR = 16.0
"""Times the allowed error: up to there its estimate is looked at again."""
OTHER_BYTE = 0x3C
"""Beside NaN, what fresh memory is filled with: 0x3C3C3C3C is 0.0115 as float32, 1.06 as float16."""


OVERWRITTEN = "the second call changed what the first one had returned: both results share memory"


class Step(NamedTuple):
    """One call of a scenario."""

    posed: Posed
    how: How = "fresh"
    conditions: Conditions | None = None


class Violation(Exception):
    """A property does not hold for an example."""

    property = ""

    def __init__(
        self, message: str, steps: Sequence[Step], mismatch: Mismatch | None = None, finding: Finding | None = None,
        got: Any = None,
    ) -> None:
        super().__init__(message)
        self.message, self.steps, self.mismatch, self.finding, self.got = message, tuple(steps), mismatch, finding, got


VIOLATIONS: dict[str, type[Violation]] = {
    name: type(f"{name.title().replace('_', '')}Violation", (Violation,), {"property": name}) for name in TITLES
}


@dataclass(frozen=True)
class Trial:
    """The lab and what is known of the solution."""

    lab: Lab
    float_atomics: bool
    gpu: bool

    def posed(self, example: Example) -> Posed:
        """The example with its expectation; Hypothesis drops examples that the task excludes."""
        try:
            return self.lab.pose(example)
        except Excluded:
            raise UnsatisfiedAssumption from None

    def perform(self, steps: Sequence[Step]) -> Answer:
        """Performs the steps; the last one's answer. Raises Violation where one fails."""
        answer = Answer()
        for position, step in enumerate(steps):
            answer = self.lab.call(step.posed, step.how, step.conditions)
            if answer.failure is not None:
                raise _failed(answer, steps[:position + 1])
        return answer

    def right(self, example: Example) -> tuple[Posed, Answer]:
        """The example and a plain call's answer; Hypothesis drops those on which that is wrong: another property's matter."""
        posed = self.posed(example)
        answer = self.lab.call(posed)
        if answer.failure is not None or compare(posed.expected, answer.outputs, case_of(example)):
            raise UnsatisfiedAssumption
        return posed, answer

    def judge(self, steps: Sequence[Step], answer: Answer, name: str = "") -> None:
        """Raises Violation of `name` (or what the values make it) where the last step's answer is wrong."""
        example = steps[-1].posed.example
        verdict = compare(steps[-1].posed.expected, answer.outputs, case_of(example))
        if verdict is not None and _near(verdict.mismatch):
            verdict = compare(self.lab.second_look(steps[-1].posed), answer.outputs, case_of(example))
        if verdict is None:
            return
        fallback = "special_values" if example.values in SPECIAL else "agreement"
        name = name or ("written" if self._unwritten(steps[-1].posed, answer, verdict.mismatch) else fallback)
        raise VIOLATIONS[name](verdict.message, steps, verdict.mismatch, got=answer.outputs)

    def _unwritten(self, posed: Posed, answer: Answer, mismatch: Mismatch) -> bool:
        """Whether the first wrong element holds whatever fresh memory is filled with."""
        fresh = FRESH_FLOAT if _bytes_at(answer.outputs, mismatch)[1] else FRESH_INTEGER
        if _bytes_at(answer.outputs, mismatch)[0] != {fresh}:
            return False
        again = self.lab.call(posed, "fresh", Conditions(fresh_byte=OTHER_BYTE))
        return again.failure is None and _bytes_at(again.outputs, mismatch)[0] == {OTHER_BYTE}

    def same(self, first: Answer, again: Answer, steps: Sequence[Step], name: str, what: str) -> None:
        """Raises Violation of `name` where the answers differ: in any bit, or with float atomics beyond the tolerance."""
        if self.float_atomics:
            return self.judge(steps, again, name)
        for (path, before), (_, now) in zip(leaves(first.outputs, "out"), leaves(again.outputs, "out"), strict=True):
            index = _first_difference(before, now)
            if index is not None:
                raise VIOLATIONS[name](*_difference(path, before, now, index, steps, what))
        return None


def one_call(trial: Trial, example: Example) -> None:
    """A single call: it runs, stays in its buffers, leaves its inputs alone, writes everything, and is right."""
    steps = [Step(trial.posed(example), "fresh", Conditions(bands=trial.gpu))]
    answer = trial.perform(steps)
    trial.judge(steps, answer)
    if answer.modified:
        raise VIOLATIONS["inputs"](f"the call changed its inputs, first {answer.modified[0]}", steps)


def special_call(trial: Trial, example: Example) -> None:
    """A single call on special values; a fault is one where a call on the task's own values is right."""
    try:
        one_call(trial, example)
    except Violation:
        trial.right(example.model_copy(update={"values": TASK}))
        raise


def other_memory(trial: Trial, example: Example) -> None:
    """The same call where fresh memory holds other bytes."""
    posed, first = trial.right(example)
    steps = [Step(posed, "fresh", Conditions(fresh_byte=OTHER_BYTE))]
    trial.same(first, trial.perform(steps), steps, "memory", f"fresh memory holds {OTHER_BYTE:#x} bytes in place of NaN")


def repeated(trial: Trial, example: Example) -> None:
    """The same call again, several times on a GPU."""
    posed, first = trial.right(example)
    for _ in range(4 if trial.gpu else 1):
        steps = [Step(posed), Step(posed, "repeat")]
        again = trial.perform(steps[1:])
        trial.same(first, again, steps, "repeatable", "the same call is made once more")


def other_order(trial: Trial, example: Example) -> None:
    """Blocks backwards, or in a random order where the example's seed is odd; then all at once."""
    posed, first = trial.right(example)
    other = (example.seed, "blocks run in a random order") if example.seed % 2 else (-1, "blocks run backwards")
    for order, what in (other, (APART, "all blocks run at once: none sees what another one writes")):
        steps = [Step(posed, "fresh", Conditions(block_order=order))]
        try:
            answer = trial.perform(steps)
        except Violation as stuck:
            raise VIOLATIONS["block_order"](f"{stuck.message} ({what})", steps, None, stuck.finding) from None
        trial.same(first, answer, steps, "block_order", what)


def after_other_calls(trial: Trial, pair: tuple[Example, Example]) -> None:
    """After a call on another shape; then with new data in other buffers, and in the same ones."""
    posed, first = trial.right(pair[0])
    other, _ = trial.right(pair[1])
    steps = [Step(posed), Step(other), Step(posed)]
    trial.same(first, trial.perform(steps[2:]), steps, "calls", "a call on another shape came in between")
    after_call(trial, posed.example, posed.example.model_copy(update={"seed": posed.example.seed + 1}))
    if trial.lab.oracle.spec.kind == "kernelbench":
        return
    refilled = trial.posed(posed.example.model_copy(update={"seed": posed.example.seed + 2}))
    steps = [Step(posed), Step(refilled, "refill")]
    trial.judge(steps, trial.perform(steps), "calls")


def after_call(trial: Trial, earlier: Example, example: Example) -> None:
    """A call is right after another one, and leaves alone what that one returned."""
    steps = [Step(trial.posed(one), "fresh", Conditions(keeps_result=True)) for one in (earlier, example)]
    answer = trial.perform(steps)
    trial.judge(steps, answer, "calls")
    if answer.overwritten:
        raise VIOLATIONS["calls"](OVERWRITTEN, steps)


def late_stream(trial: Trial, example: Example) -> None:
    """On a stream of its own, on which the inputs arrive late."""
    posed, first = trial.right(example)
    steps = [Step(posed, "fresh", Conditions(late_stream=True))]
    what = "the caller's stream is not the default one, and its inputs arrive late"
    trial.same(first, trial.perform(steps), steps, "stream", what)


def other_layout(trial: Trial, example: Example) -> None:
    """The same values in another memory layout. Every fault is the layout's."""
    plain, _ = trial.right(example.model_copy(update={"layout": "contiguous"}))
    steps = [Step(Posed(example, plain.problem, plain.expected))]
    answer = trial.lab.call(steps[0].posed)
    if answer.failure is not None:
        fault = _failed(answer, steps)
        raise VIOLATIONS["layouts"](fault.message, steps, None, fault.finding)
    trial.judge(steps, answer, "layouts")


def _failed(answer: Answer, steps: Sequence[Step]) -> Violation:
    failure = answer.failure
    assert failure is not None
    finding = next((f for f in failure.findings if f.severity == "error"), None)
    text = failure.message if finding is None or failure.status is not Status.RUNTIME_ERROR else (
        f"{summary(finding)}: {finding.message}")
    name = OF_FINDING.get(finding.kind, "runs") if finding else "bounds" if any(w in text for w in ILLEGAL) else "runs"
    return VIOLATIONS[name](text, steps, None, finding)


def _near(mismatch: Mismatch) -> bool:
    """Whether the error is not far from the allowed one."""
    if mismatch.expected is None or mismatch.got is None or not mismatch.allowed_error:
        return False
    return abs(mismatch.got - mismatch.expected) <= NEAR * mismatch.allowed_error


def _bytes_at(outputs: Any, mismatch: Mismatch) -> tuple[set[int], bool]:
    """The distinct bytes of the first wrong element, and whether it is floating point."""
    if mismatch.index is None:
        return set(), False
    leaf: Leaf = dict(leaves(outputs, "out"))[mismatch.output]
    return set(np.asarray(leaf.values[mismatch.index]).tobytes()), leaf.is_float


def _first_difference(before: Leaf, now: Leaf) -> tuple[int, ...] | None:
    if before.shape != now.shape or before.dtype != now.dtype:
        return ()
    a, b = before.values, now.values
    same = (a == b) | ((a != a) & (b != b))
    return None if same.all() else tuple(int(i) for i in np.unravel_index(int(np.argmin(same)), same.shape))


def _difference(
    path: str, before: Leaf, now: Leaf, index: tuple[int, ...], steps: Sequence[Step], what: str
) -> tuple[str, Sequence[Step], Mismatch]:
    example = steps[-1].posed.example
    if before.shape != now.shape:
        message = f"{path}: shape {now.shape} where the plain call gave {before.shape}: {what}"
        return message, steps, Mismatch(output=path, case=str(case_of(example)), sizes=example.sizes)
    old, new = (leaf.as_float64() if leaf.is_float else leaf.values for leaf in (before, now))
    where = f"{path}[{', '.join(map(str, index))}]" if index else path
    mismatch = Mismatch(
        output=path, case=str(case_of(example)), sizes=example.sizes, index=index, expected=float(old[index]),
        got=float(new[index]), expected_shape=before.shape, got_shape=now.shape, expected_dtype=before.dtype,
        got_dtype=now.dtype, allowed_error=0.0, wrong_elements=int((old != new).sum()), total_elements=int(old.size))
    return f"{where} is {new[index]:.9g} where the plain call gave {old[index]:.9g}: {what}", steps, mismatch


Scenario = Callable[[Trial, Any], None]

