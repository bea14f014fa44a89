"""Inputs to verify with: the task's own, and other value distributions of the same shapes and dtypes.

A task's own inputs often hide faults: every KernelBench level-1 problem draws only from U[0, 1), so a `return x` passes
as ReLU and a softmax without max-subtraction never overflows. Only floating-point arrays change; integers, bools and
plain numbers stay as the task made them (an index must stay valid). Structure that the task gives its arrays
(zero pattern, symmetry, a handful of distinct values) is kept, because a kernel may rely on it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluator.trees import Leaf, leaves, map_leaves, round_to

Rng = np.random.Generator
Shape = tuple[int, ...]
TASK = "task"
DISTRIBUTIONS: dict[str, Callable[[Rng, Shape], NDArray[Any]]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.uniform(-1.0, 1.0, shape),
    # Largest magnitude at which squares, cubes and dot products of some thousand elements stay far inside float16's
    # and float32's range where a sane kernel computes them, while exp(x) without max-subtraction overflows float32.
    "large": lambda rng, shape: 100.0 * rng.standard_normal(shape),
    # Squares (1e-8) are still normal numbers in float32, which CuPy compiles with denormals flushed to zero.
    "tiny": lambda rng, shape: 1e-4 * rng.standard_normal(shape),
    # Repeated values are quarters: their sums are exact in float32. Rounding errors of equal terms would all point the same
    # way, which no bound below n u covers.
    "alternating": lambda rng, shape: (1.0 - 2.0 * (np.arange(math.prod(shape)) % 2)).reshape(shape) * rng.integers(2, 8) / 4,
    "negative": lambda rng, shape: -rng.uniform(0.1, 2.0, shape),  # a maximum that starts from 0 is wrong here only
    "constant": lambda rng, shape: np.full(shape, rng.integers(1, 8) / 4),
    "zeros": lambda rng, shape: np.zeros(shape),
}
FEW_VALUES = 8
"""An array of 2 to this many distinct values (and at least 8 times as many elements) holds labels, not magnitudes."""


class Case(NamedTuple):
    """One verification input: reproducible from the three."""

    sizes: dict[str, int]
    distribution: str
    seed: int

    def __str__(self) -> str:
        return f"{self.distribution} seed {self.seed}"


def vary(own: Any, distribution: str, seed: int) -> Any:
    """The tree `own` with its floating-point arrays redrawn from a distribution named in DISTRIBUTIONS.

    Deterministic in (own, distribution, seed); each array has its own stream, so equal shapes get different values.
    """
    paths = {id(leaf): path for path, leaf in leaves(own, "")}

    def redraw(leaf: Any) -> Any:
        if not isinstance(leaf, Leaf) or not leaf.is_float or not leaf.shape or is_labels(leaf):
            return leaf
        rng = np.random.default_rng([seed, zlib.crc32(paths[id(leaf)].encode())])
        values = _keep_structure(leaf, DISTRIBUTIONS[distribution](rng, leaf.shape))
        return Leaf(round_to(values, leaf.dtype), leaf.dtype, leaf.source, order=leaf.order)

    return map_leaves(redraw, own)


def vary_constants(parameters: dict[str, Leaf], seed: int) -> dict[str, Leaf]:
    """Model parameters in which constant floating-point arrays (a fresh norm's weight 1 and bias 0) get other values.

    A kernel that ignores such a parameter is right for its initial value only.
    """
    changed = {}
    for name, leaf in parameters.items():
        constant = leaf.is_float and leaf.values.size > 1 and bool((leaf.values == leaf.values.flat[0]).all())
        if constant:
            rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
            # Never negative where it was positive: running variances must stay valid.
            values = leaf.as_float64() + rng.uniform(0.0, 0.5, leaf.shape)
            leaf = Leaf(round_to(values, leaf.dtype), leaf.dtype, leaf.source)
        changed[name] = leaf
    return changed


def is_labels(leaf: Leaf) -> bool:
    """Whether the array holds a handful of distinct values: labels, or a mask."""
    size = leaf.values.size
    if size < 8 * FEW_VALUES:
        return False
    if len(np.unique(leaf.values.reshape(-1)[:4096])) > FEW_VALUES:
        return False
    return 2 <= len(np.unique(leaf.values)) <= FEW_VALUES


def _keep_structure(leaf: Leaf, values: NDArray[np.float64]) -> NDArray[np.float64]:
    own = leaf.values
    square = own.ndim == 2 and own.shape[0] == own.shape[1] > 1
    if square and bool((own == own.T).all()) and bool((own != own.flat[0]).any()):
        values = np.triu(values) + np.triu(values, 1).T
    zero = leaf.as_float64() == 0
    # A few zeros happen by chance or by rounding; a pattern is a large part of the array.
    return np.where(zero, 0.0, values) if 0.05 < zero.mean() < 1 else values
