"""Kinds of values for a check's inputs, beside the verification's own (`inputs.DISTRIBUTIONS`).

FINITE kinds are judged by the task's tolerance. SPECIAL kinds hold NaN, infinities, denormals or numbers near overflow, and are
judged by what the reference makes of them (`special.py`).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.inputs import DISTRIBUTIONS, TASK, vary, vary_constants
from evaluator.oracle import Problem
from evaluator.tolerance import SMALLEST_NORMAL
from evaluator.trees import Leaf, leaves, map_leaves, round_to

Rng = np.random.Generator
Maker = Callable[[Rng, tuple[int, ...], str], NDArray[Any]]
LARGEST = {"bfloat16": 3.39e38, "float16": 65504.0, "float32": 3.40e38, "float64": 1.79e308}


def _sorted(rng: Rng, shape: tuple[int, ...], _: str) -> NDArray[Any]:
    """Quarters, whose sums are exact: adding them one by one runs far from zero and back, which the bound of tolerance.py, made
    for terms in random order, does not cover. Many are equal, as a kernel that looks for a place must be ready for."""
    return np.sort(np.round(4.0 * rng.standard_normal(math.prod(shape))) / 4.0).reshape(shape)


def _ties(rng: Rng, shape: tuple[int, ...], _: str) -> NDArray[Any]:
    """A handful of values in random order: every extreme is met several times."""
    return rng.integers(-2, 3, shape) / 2.0


def _cancelling(rng: Rng, shape: tuple[int, ...], _: str) -> NDArray[Any]:
    """Large terms of both signs among small ones. In random order: the bound of tolerance.py holds for sums in any order then,
    which it does not where all positive ones come first."""
    return np.asarray(rng.standard_normal(shape) + 1000.0 * rng.integers(-1, 2, shape))


def _shifted(rng: Rng, shape: tuple[int, ...], _: str) -> NDArray[Any]:
    """A mean that is large against the spread: a variance taken as a difference of squares keeps no digit of it."""
    return np.asarray(100.0 + rng.standard_normal(shape))


def _one_hot(rng: Rng, shape: tuple[int, ...], _: str) -> NDArray[Any]:
    values = np.zeros(shape)
    if values.size:
        values.reshape(-1)[rng.integers(values.size)] = 1.0
    return values


def _sprinkled(value: float) -> Maker:
    def make(rng: Rng, shape: tuple[int, ...], _: str) -> NDArray[Any]:
        values = rng.standard_normal(shape)
        if values.size:
            values.reshape(-1)[rng.integers(values.size, size=max(1, values.size // 50))] = value
        return values

    return make


def _signed_zeros(rng: Rng, shape: tuple[int, ...], _: str) -> NDArray[Any]:
    return np.where(rng.integers(0, 2, shape) == 1, 0.0, -0.0)


def _denormal(rng: Rng, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    return rng.uniform(-0.9, 0.9, shape) * SMALLEST_NORMAL[dtype]


def _huge(rng: Rng, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """So that some thousand of them can be added without overflow, but no two multiplied."""
    return rng.uniform(-1.0, 1.0, shape) * LARGEST[dtype] / 1e4


FINITE: Mapping[str, Maker | None] = {
    TASK: None, **dict.fromkeys(DISTRIBUTIONS), "sorted": _sorted, "ties": _ties, "cancelling": _cancelling,
    "shifted": _shifted, "one_hot": _one_hot,
}
"""None: the verification makes them."""
SPECIAL: Mapping[str, Maker] = {
    "nan": _sprinkled(math.nan), "infinity": _sprinkled(math.inf), "minus_infinity": _sprinkled(-math.inf),
    "signed_zeros": _signed_zeros, "denormal": _denormal, "huge": _huge,
}


def valued(own: Problem, kind: str, seed: int) -> Problem:
    """`own` with its floating-point inputs redrawn as `kind`; deterministic in (own, kind, seed)."""
    if kind == TASK:
        return own
    state = vary_constants(dict(own.state), seed)
    if kind in DISTRIBUTIONS:
        return Problem(vary(dict(own.inputs), kind, seed), own.init, state)
    make = FINITE.get(kind) or SPECIAL[kind]
    inputs = dict(own.inputs)
    paths = {id(leaf): path for path, leaf in leaves(inputs, "")}
    chosen = _primary(inputs) if kind in SPECIAL else None

    def redraw(leaf: Any) -> Any:
        if not isinstance(leaf, Leaf) or not leaf.is_float or not leaf.shape or (chosen is not None and leaf is not chosen):
            return leaf
        rng = np.random.default_rng([seed, zlib.crc32(paths[id(leaf)].encode())])
        return Leaf(round_to(make(rng, leaf.shape, leaf.dtype), leaf.dtype), leaf.dtype, leaf.source)

    return Problem(map_leaves(redraw, inputs), own.init, state)


def _primary(inputs: Mapping[str, Any]) -> Leaf | None:
    """The largest floating-point input, the first of equals: special values go into one array, so that the cause is clear."""
    arrays = [leaf for _, leaf in leaves(inputs, "") if isinstance(leaf, Leaf) and leaf.is_float and leaf.shape]
    return max(arrays, key=lambda leaf: leaf.values.size, default=None)


def cast(problem: Problem, dtype: str) -> Problem:
    """The problem with its floating-point inputs in another dtype."""
    def converted(leaf: Any) -> Any:
        if not isinstance(leaf, Leaf) or not leaf.is_float or leaf.dtype == dtype:
            return leaf
        return Leaf(round_to(leaf.as_float64(), dtype), dtype, leaf.source)

    return Problem(map_leaves(converted, problem.inputs), problem.init, problem.state)
