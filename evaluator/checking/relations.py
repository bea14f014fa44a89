"""Metamorphic relations: what must become of the outputs when the inputs are permuted, shifted, scaled, negated, cut.

Which of them a task has is not assumed: each candidate is tried on the reference in double precision, on several inputs, and
kept where it holds. The solution is then held to it on its own outputs, with no reference in between but the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.checking.lab import Lab
from evaluator.checking.types import Example
from evaluator.oracle import Problem, TaskFault
from evaluator.trees import Leaf, leaves, round_to

Array = NDArray[Any]
SHIFT, FACTOR = 0.75, 4.0
TRIALS = 3
MOST = 8
EXACT = 1e-9
"""Relative: the reference is evaluated in double precision."""


@dataclass(frozen=True)
class Change:
    """Something done to an array; exact in every floating-point dtype for the values that `quantised` gives."""

    text: str
    """`{x} ...` with the array's name in place."""
    apply: Callable[[Array, int], Array]
    """Of the array and a seed."""
    error: Callable[[Array, int], Array]
    """What it makes of the array's allowed errors."""


def _permuted(axis: int) -> Callable[[Array, int], Array]:
    def permute(array: Array, seed: int) -> Array:
        return np.take(array, np.random.default_rng([seed, array.shape[axis]]).permutation(array.shape[axis]), axis=axis)

    return permute


def _first_rows(array: Array, seed: int) -> Array:
    return array[: max(1, array.shape[0] // 2)]


def _same(array: Array, seed: int) -> Array:
    return array


def _scaled(array: Array, seed: int) -> Array:
    return array * FACTOR


UNCHANGED = Change("{x} stays", _same, _same)
PERMUTED_ROWS = Change("the rows of {x} are permuted", _permuted(0), _permuted(0))
PERMUTED_COLUMNS = Change("the columns of {x} are permuted", _permuted(-1), _permuted(-1))
SHIFTED = Change(f"{SHIFT} is added to {{x}}", lambda array, _: array + SHIFT, _same)
SCALED = Change(f"{{x}} is multiplied by {FACTOR:g}", _scaled, _scaled)
NEGATED = Change("{x} is negated", lambda array, _: -array, _same)
FEWER_ROWS = Change("only the first half of the rows of {x} is given", _first_rows, _first_rows)
CAUSES = (PERMUTED_ROWS, PERMUTED_COLUMNS, SHIFTED, SCALED, NEGATED, FEWER_ROWS)
EFFECTS = {
    PERMUTED_ROWS.text: (PERMUTED_ROWS, PERMUTED_COLUMNS, UNCHANGED),
    PERMUTED_COLUMNS.text: (UNCHANGED, PERMUTED_COLUMNS, PERMUTED_ROWS),
    SHIFTED.text: (UNCHANGED, SHIFTED), SCALED.text: (SCALED, UNCHANGED), NEGATED.text: (NEGATED, UNCHANGED),
    FEWER_ROWS.text: (FEWER_ROWS,),
}


@dataclass(frozen=True)
class Relation:
    """`cause` on the named inputs has `effect` on every output."""

    inputs: tuple[str, ...]
    cause: Change
    effect: Change

    @property
    def title(self) -> str:
        """One line."""
        return f"{self.cause.text.format(x=' and '.join(self.inputs))}: {self.effect.text.format(x='the result')}"

    def changed(self, problem: Problem, seed: int) -> Problem:
        """The problem with the cause applied."""
        inputs = {name: _mapped(value, self.cause, seed) if name in self.inputs else value
                  for name, value in problem.inputs.items()}
        return Problem(inputs, problem.init, problem.state)


def relations_of(lab: Lab, examples: list[Example]) -> list[Relation]:
    """The relations that the reference has on all of `examples`. Raises nothing: a task without any has an empty list."""
    posed = [(example.seed, quantised(lab.oracle.own_problem(example.sizes, example.seed))) for example in examples[:TRIALS]]
    if not posed or not _plain(lab, posed[0][1]):
        return []
    found = []
    for inputs in _targets(posed[0][1].inputs):
        for cause in CAUSES:
            holding = [effect for effect in EFFECTS[cause.text] if _holds(lab, Relation(inputs, cause, effect), posed)]
            found += [Relation(inputs, cause, effect) for effect in holding[:1]]
    return found[:MOST]


def quantised(problem: Problem) -> Problem:
    """Floating-point inputs rounded to sixteenths within ±8, so that every change is exact."""
    def rounded(value: Any) -> Any:
        if not isinstance(value, Leaf) or not value.is_float:
            return value
        values = np.clip(np.round(np.nan_to_num(value.as_float64()) * 16) / 16, -8, 8)
        return Leaf(round_to(values, value.dtype), value.dtype, value.source)

    return Problem({name: rounded(value) for name, value in problem.inputs.items()}, problem.init, problem.state)


def _targets(inputs: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The first floating-point array alone, each other one alone, and those that share the first one's first axis together."""
    arrays = [(name, leaf) for name, leaf in inputs.items() if isinstance(leaf, Leaf) and leaf.is_float and leaf.shape]
    for name, _ in arrays[:3]:
        yield (name,)
    together = tuple(name for name, leaf in arrays if leaf.shape[0] == arrays[0][1].shape[0])
    if len(together) > 1:
        yield together


def _plain(lab: Lab, problem: Problem) -> bool:
    """Whether every output is a floating-point array: others have no such relations."""
    try:
        return all(leaf.is_float and leaf.shape for _, leaf in leaves(lab.oracle.precise_outputs(problem), "out"))
    except TaskFault:
        return False


def _holds(lab: Lab, relation: Relation, posed: list[tuple[int, Problem]]) -> bool:
    moved = False
    for seed, problem in posed:
        try:
            changed = relation.changed(problem, seed)
            before = [leaf.as_float64() for _, leaf in leaves(lab.oracle.precise_outputs(problem), "out")]
            after = [leaf.as_float64() for _, leaf in leaves(lab.oracle.precise_outputs(changed), "out")]
            wanted = [relation.effect.apply(array, seed) for array in before]
        except (TaskFault, IndexError, ValueError):
            return False
        if any(a.shape != w.shape or not _close(a, w) for a, w in zip(after, wanted, strict=True)):
            return False
        moved |= any(array.size > 1 and bool(np.ptp(array)) for array in after)
    return moved


def _close(a: Array, b: Array) -> bool:
    scale = max(float(np.abs(b).max(initial=0.0)), 1e-300)
    return bool(np.isfinite(a).all() and np.isfinite(b).all() and (np.abs(a - b) <= EXACT * scale).all())


def _mapped(value: Any, change: Change, seed: int) -> Any:
    if not isinstance(value, Leaf) or not value.is_float:
        return value
    return Leaf(round_to(np.ascontiguousarray(change.apply(value.as_float64(), seed)), value.dtype), value.dtype, value.source)


