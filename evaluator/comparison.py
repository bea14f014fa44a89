"""Compares a solution's outputs with the expected ones: same tree, shape, dtype, non-finite elements, and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.inputs import Case
from evaluator.precision import Yardstick
from evaluator.trees import Leaf, leaves, round_to
from evaluator.types import Mismatch, Status


@dataclass(frozen=True)
class Expected:
    """One expected output array."""

    values: NDArray[Any]
    """float64 for floating-point dtypes; the exact values for integers, bools and complex numbers."""
    dtype: str
    """What the reference returns for the task's own input dtypes."""
    allowed: NDArray[np.float64]
    """Largest permitted absolute error per element."""
    yardstick: Yardstick | None = None
    """Floating-point outputs: what the precision class is measured with."""
    free: NDArray[np.bool_] | None = None
    """Elements that may hold anything; None: all are judged."""


@dataclass(frozen=True)
class Verdict:
    """The first difference found."""

    status: Status
    message: str
    mismatch: Mismatch


def compare(expected: Any, got: Any, case: Case) -> Verdict | None:
    """None where every output agrees. `expected` is a tree of Expected, `got` a tree of Leaf (`trees.unpack`)."""
    structure = _structure_difference(expected, got, "out")
    if structure:
        path, message = structure
        return Verdict(Status.INCORRECT_SHAPE, message, Mismatch(output=path, case=str(case), sizes=case.sizes))
    found = dict(leaves(got, "out"))
    verdicts = (_compare_array(want, found[path], path, case) for path, want in leaves(expected, "out"))
    return next((verdict for verdict in verdicts if verdict), None)


def _structure_difference(expected: Any, got: Any, path: str) -> tuple[str, str] | None:
    want, have = _kind(expected), _kind(got)
    if want != have:
        return path, f"{path}: the reference returns {want}, the solution {have}."
    if isinstance(expected, Mapping):
        if set(expected) != set(got):
            return path, f"{path}: the reference returns the keys {sorted(expected)}, the solution {sorted(got)}."
        pairs = [(expected[key], got[key], f"{path}[{key!r}]") for key in expected]
    elif isinstance(expected, (tuple, list)):
        pairs = [(e, g, f"{path}[{i}]") for i, (e, g) in enumerate(zip(expected, got, strict=True))]
    else:
        return None
    return next((found for e, g, p in pairs if (found := _structure_difference(e, g, p))), None)


def _kind(node: Any) -> str:
    if isinstance(node, Mapping):
        return "a dict"
    if isinstance(node, (tuple, list)):
        return f"a tuple of {len(node)}"
    return "an array" if isinstance(node, (Leaf, Expected)) else type(node).__name__


def _compare_array(want: Expected, have: Leaf, path: str, case: Case) -> Verdict | None:
    base = {
        "output": path, "case": str(case), "sizes": case.sizes, "expected_shape": want.values.shape, "got_shape": have.shape,
        "expected_dtype": want.dtype, "got_dtype": have.dtype,
    }
    if want.values.shape != have.shape:
        message = f"{path}: shape {have.shape}, the reference gives {want.values.shape}."
        return Verdict(Status.INCORRECT_SHAPE, message, Mismatch(**base))
    if want.dtype != have.dtype:
        message = f"{path}: dtype {have.dtype}, the reference gives {want.dtype} for the task's inputs."
        return Verdict(Status.INCORRECT_DTYPE, message, Mismatch(**base))
    wrong, error = _wrong_elements(want, have)
    if want.free is not None:
        wrong = wrong & ~want.free
    if not wrong.any():
        return None
    return _numerical(want, have, wrong, error, path, base)


def _wrong_elements(want: Expected, have: Leaf) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which elements are wrong, and the absolute errors (NaN where either side is not finite)."""
    if not have.is_float:
        wrong = np.asarray(want.values != have.values)
        with np.errstate(invalid="ignore"):
            error = np.abs(have.values.astype(np.complex128) - want.values.astype(np.complex128))
        if have.dtype.startswith("complex"):
            wrong = ~(error <= want.allowed)
        return wrong, error
    got = have.as_float64()
    # Overflow to infinity in the output's dtype is the right answer where double precision still has a number.
    expected = Leaf(round_to(want.values, want.dtype), want.dtype).as_float64()
    finite = np.isfinite(expected)
    same_special = np.where(np.isnan(expected), np.isnan(got), got == expected)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got - want.values)
        wrong = np.where(finite, ~(error <= want.allowed), ~same_special)
    return np.asarray(wrong), error


def _numerical(
    want: Expected, have: Leaf, wrong: NDArray[np.bool_], error: NDArray[np.float64], path: str, base: dict[str, Any]
) -> Verdict:
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    expected, got = _number(want.values[index]), _number(_values(have)[index])
    finite = error[np.isfinite(error)]
    mismatch = Mismatch(
        **base, index=index, expected=expected, got=got, max_abs_error=float(finite.max()) if finite.size else None,
        allowed_error=float(want.allowed[index]), wrong_elements=int(wrong.sum()), total_elements=int(wrong.size),
    )
    where = f"{path}[{', '.join(map(str, index))}]" if index else path
    sizes = ", ".join(f"{key}={value}" for key, value in mismatch.sizes.items())
    message = (
        f"{where} is {got:.9g}, expected {expected:.9g} (allowed error {want.allowed[index]:.3g}); "
        f"{mismatch.wrong_elements} of {mismatch.total_elements} elements are wrong. Inputs: {mismatch.case}, {sizes}."
    )
    return Verdict(Status.INCORRECT_NUMERICAL, message, mismatch)


def _values(leaf: Leaf) -> NDArray[Any]:
    return leaf.as_float64() if leaf.is_float else leaf.values


def _number(value: Any) -> float:
    return float(np.abs(value)) if np.iscomplexobj(value) else float(value)
