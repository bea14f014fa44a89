"""Kinds of metamorphic relations: what further calls to make, and what their outputs must then be, given the earlier ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.oracle import Problem
from evaluator.trees import Leaf, round_to

Array = NDArray[Any]
Outputs = Sequence[Array]
"""The output arrays of one call, in double precision."""
SHIFT, FACTOR = 0.75, 4.0


class Relation(ABC):
    """One relation on the named inputs."""

    inputs: tuple[str, ...]
    calls = 2
    """Calls it takes, the first one included."""

    @property
    @abstractmethod
    def title(self) -> str:
        """One line."""

    @abstractmethod
    def next_problem(self, first: Problem, outputs: Sequence[Outputs], seed: int) -> Problem:
        """The problem of the call after those that gave `outputs`. Raises ValueError where there is none."""

    @abstractmethod
    def wanted(self, first: Problem, outputs: Sequence[Outputs], seed: int) -> Outputs:
        """What the last call must give; `outputs` are those of the calls before it."""

    def error(self, allowed: Sequence[Outputs], seed: int) -> Outputs:
        """What the errors that the calls before the last may have make of `wanted`."""
        return allowed[0]

    def seen(self, array: Array) -> Array:
        """What of an output is compared."""
        return array


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
        order = np.random.default_rng([seed, array.shape[axis]]).permutation(array.shape[axis])
        return np.take(array, order, axis=axis)

    return permute


def _first_rows(array: Array, seed: int) -> Array:
    return array[: max(1, array.shape[0] // 2)]


def _same(array: Array, seed: int) -> Array:
    return array


def _scaled(array: Array, seed: int) -> Array:
    return array * FACTOR


def _transposed(array: Array, seed: int) -> Array:
    return np.ascontiguousarray(array.T)


UNCHANGED = Change("{x} stays", _same, _same)
PERMUTED_ROWS = Change("the rows of {x} are permuted", _permuted(0), _permuted(0))
PERMUTED_COLUMNS = Change("the columns of {x} are permuted", _permuted(-1), _permuted(-1))
SHIFTED = Change(f"{SHIFT} is added to {{x}}", lambda array, _: array + SHIFT, _same)
SCALED = Change(f"{{x}} is multiplied by {FACTOR:g}", _scaled, _scaled)
NEGATED = Change("{x} is negated", lambda array, _: -array, _same)
FEWER_ROWS = Change("only the first half of the rows of {x} is given", _first_rows, _first_rows)
TRANSPOSED = Change("{x} is transposed", _transposed, _transposed)
EFFECTS: dict[Change, tuple[Change, ...]] = {
    PERMUTED_ROWS: (PERMUTED_ROWS, PERMUTED_COLUMNS, UNCHANGED),
    PERMUTED_COLUMNS: (UNCHANGED, PERMUTED_COLUMNS, PERMUTED_ROWS),
    SHIFTED: (UNCHANGED, SHIFTED), SCALED: (SCALED, UNCHANGED), NEGATED: (NEGATED, UNCHANGED), FEWER_ROWS: (FEWER_ROWS,),
    TRANSPOSED: (TRANSPOSED, UNCHANGED),
}
"""What may become of the outputs when that is done to inputs."""


@dataclass(frozen=True)
class Changed(Relation):
    """`cause` on the inputs has `effect` on every output."""

    inputs: tuple[str, ...]
    cause: Change
    effect: Change

    @property
    def title(self) -> str:
        """Cause and effect."""
        return f"{self.cause.text.format(x=' and '.join(self.inputs))}: {self.effect.text.format(x='the result')}"

    def next_problem(self, first: Problem, outputs: Sequence[Outputs], seed: int) -> Problem:
        """The first problem with the cause applied."""
        return _with(first, self.inputs, lambda values: self.cause.apply(values, seed))

    def wanted(self, first: Problem, outputs: Sequence[Outputs], seed: int) -> Outputs:
        """The effect on the first outputs."""
        return [self.effect.apply(array, seed) for array in outputs[0]]

    def error(self, allowed: Sequence[Outputs], seed: int) -> Outputs:
        """The effect on the allowed errors."""
        return [self.effect.error(array, seed) for array in allowed[0]]


@dataclass(frozen=True)
class Additive(Relation):
    """f(x) + f(y) = f(x + y)."""

    inputs: tuple[str, ...]
    calls = 3

    @property
    def title(self) -> str:
        """The law."""
        return f"linear in {self.inputs[0]}: the results of two inputs add up to the result of their sum"

    def next_problem(self, first: Problem, outputs: Sequence[Outputs], seed: int) -> Problem:
        """y, then x + y."""
        def other(values: Array) -> Array:
            return np.random.default_rng([seed, 7]).integers(-64, 64, values.shape) / 16.0

        return _with(first, self.inputs, other if len(outputs) == 1 else lambda values: values + other(values))

    def wanted(self, first: Problem, outputs: Sequence[Outputs], seed: int) -> Outputs:
        """The sum."""
        return [a + b for a, b in zip(*outputs, strict=True)]

    def error(self, allowed: Sequence[Outputs], seed: int) -> Outputs:
        """The sum of both."""
        return [a + b for a, b in zip(*allowed, strict=True)]


@dataclass(frozen=True)
class Twice(Relation):
    """f(f(x)) = f(x), or f(f(x)) = x where `back`."""

    inputs: tuple[str, ...]
    back: bool

    @property
    def title(self) -> str:
        """The law."""
        return f"applied twice it gives {self.inputs[0] + ' back' if self.back else 'the same as once'}"

    def next_problem(self, first: Problem, outputs: Sequence[Outputs], seed: int) -> Problem:
        """The result as input."""
        if len(outputs[0]) != 1:
            raise ValueError("several outputs")
        return _with(first, self.inputs, lambda values: outputs[0][0])

    def wanted(self, first: Problem, outputs: Sequence[Outputs], seed: int) -> Outputs:
        """The result, or the input."""
        return [first.inputs[self.inputs[0]].as_float64()] if self.back else outputs[0]

    def error(self, allowed: Sequence[Outputs], seed: int) -> Outputs:
        """Those of the first result, however they lie in it."""
        return [np.asarray(array.max(initial=0.0)) for array in allowed[0]]


@dataclass(frozen=True)
class RowSums(Relation):
    """Every row of the result has the same known sum."""

    inputs: tuple[str, ...]
    total: float
    calls = 1

    @property
    def title(self) -> str:
        """The law."""
        return f"every row of the result sums to {self.total:g}"

    def next_problem(self, first: Problem, outputs: Sequence[Outputs], seed: int) -> Problem:
        """There is no further call."""
        raise ValueError("one call")

    def wanted(self, first: Problem, outputs: Sequence[Outputs], seed: int) -> Outputs:
        """That sum."""
        return [np.asarray(self.total)]

    def error(self, allowed: Sequence[Outputs], seed: int) -> Outputs:
        """None but the last call's own."""
        return [np.asarray(0.0)]

    def seen(self, array: Array) -> Array:
        """The sums of rows."""
        return np.asarray(array.sum(axis=-1))


def candidates(inputs: tuple[str, ...], alone: bool, resize: bool) -> list[list[Relation]]:
    """Groups of relations, of each of which at most one is wanted: the first that the reference has."""
    groups: list[list[Relation]] = [
        [Changed(inputs, cause, effect) for effect in effects]
        for cause, effects in EFFECTS.items() if resize or cause not in (FEWER_ROWS, TRANSPOSED)]
    if alone:
        groups += [[Additive(inputs)], [Twice(inputs, back) for back in (False, True)],
                   [RowSums(inputs, total) for total in (1.0, 0.0)]]
    return groups


def _with(problem: Problem, names: tuple[str, ...], change: Callable[[Array], Array]) -> Problem:
    """The problem with `change` made of the named inputs, rounded to their dtypes."""
    inputs = dict(problem.inputs)
    for name in names:
        leaf = inputs[name]
        values = np.ascontiguousarray(change(leaf.as_float64()))
        inputs[name] = Leaf(round_to(values, leaf.dtype), leaf.dtype, leaf.source)
    return Problem(inputs, problem.init, problem.state)
