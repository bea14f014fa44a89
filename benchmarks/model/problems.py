"""What a measured kernel is: a problem with its arrays, and a variant that solves it.

Variants of one problem do the same work and may be ranked against each other. Arrays are only as random as the kernels need
(their time does not depend on the values): one random block, repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

KERNELS = Path(__file__).resolve().parent / "kernels"
ONE_WAVE = 132 * 8
"""Blocks of 256 threads that fill an H200 once (132 multiprocessors of 2048 threads)."""

Fill = Literal["zero", "normal", "permutation", "near_permutation", "bins", "skewed_bins"]
BLOCK = 1 << 20
"""Random values that are repeated to fill a longer array."""
NEAR = 4096
"""Elements that a near permutation mixes with each other."""


def _near_permutation(rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    groups = np.argsort(rng.random((size // NEAR, NEAR), np.float32), axis=1)
    return (groups + np.arange(0, size, NEAR)[:, None]).reshape(-1)


def _skewed_bins(rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    count = min(size, BLOCK)
    return np.where(rng.random(count) < 0.9, 7, rng.integers(0, 256, count))


FILLS: dict[str, Callable[[np.random.Generator, int], NDArray[Any]]] = {
    "normal": lambda rng, size: rng.standard_normal(min(size, BLOCK), np.float32),
    "permutation": lambda rng, size: rng.permutation(size),
    "near_permutation": _near_permutation,
    "bins": lambda rng, size: rng.integers(0, 256, min(size, BLOCK)),
    "skewed_bins": _skewed_bins,
}


@dataclass(frozen=True)
class Array:
    """One global array of a problem."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    fill: Fill = "normal"

    def build(self, rng: np.random.Generator) -> NDArray[np.generic]:
        """The array, 512-byte aligned as CuPy's allocator gives it."""
        dtype = np.dtype(self.dtype)
        size = int(np.prod(self.shape))
        raw = np.zeros(size * dtype.itemsize + 512, np.uint8)
        start = -raw.ctypes.data % 512
        array = raw[start : start + size * dtype.itemsize].view(dtype)
        if self.fill != "zero":
            values = FILLS[self.fill](rng, size)
            whole = size // values.size
            array[: whole * values.size].reshape(whole, values.size)[...] = values
            array[whole * values.size :] = values[: size - whole * values.size]
        return array.reshape(self.shape)


@dataclass(frozen=True)
class Problem:
    """One computation at the sizes that were measured."""

    name: str
    sizes: dict[str, int]
    arrays: dict[str, Array]

    def build(self) -> dict[str, NDArray[np.generic]]:
        """All arrays, the same on every call."""
        rng = np.random.default_rng(2026)
        return {name: array.build(rng) for name, array in self.arrays.items()}


@dataclass(frozen=True)
class Variant:
    """One kernel of `kernels/*.cu` and its launch."""

    kernel: str
    family: str
    problem: Problem
    arguments: tuple[str, ...]
    """Array and size names in the kernel's order; sizes are passed as 32-bit integers."""
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    note: str

    @property
    def source(self) -> str:
        """CUDA C text of the file that holds the kernel."""
        return (KERNELS / f"{self.family}.cu").read_text()
