"""The few array operations that the lint needs, on NumPy arrays and torch tensors alike.

Full-size outputs take gigabytes, so comparisons go through them piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

PIECE, PIECE_ON_GPU = 1 << 17, 1 << 26
"""Elements compared at once: what a core's cache holds, what keeps a GPU busy."""


def is_float(array: Any) -> bool:
    """Real floating point."""
    return bool(array.dtype.is_floating_point) if _is_tensor(array) else array.dtype.kind == "f"


def filled(array: Any, value: float) -> Any:
    """An array of the same shape, dtype and device with one value; integers get it truncated."""
    number: Any = value if is_float(array) else int(value)
    if not _is_tensor(array):
        return np.full_like(array, number)
    import torch

    return torch.full_like(array, number)


def cast(array: Any, like: Any) -> Any:
    """The values in `like`'s dtype."""
    return array.to(like.dtype) if _is_tensor(array) else array.astype(like.dtype)


def mean(array: Any) -> float:
    """Mean of all elements; 0 for none."""
    count = size(array)
    return sum(float(_double(piece).sum()) for (piece,) in pieces(array)) / count if count else 0.0


def slope(x: Any, y: Any) -> float:
    """The a that fits y = a*x best (least squares); 0 where x is zero."""
    products = [(float((_double(a) * _double(b)).sum()), float((_double(a) ** 2).sum())) for a, b in pieces(x, y)]
    squares = sum(square for _, square in products)
    return sum(product for product, _ in products) / squares if squares > 0 else 0.0


def sum_of_squares(array: Any) -> float:
    """Of all finite elements."""
    return sum(float((finite**2).sum()) for (piece,) in pieces(array) for finite in [_finite(_double(piece))])


def size(array: Any) -> int:
    """Number of elements."""
    return int(array.numel()) if _is_tensor(array) else int(array.size)


def nbytes(array: Any) -> int:
    """Bytes of all elements."""
    return int(array.nbytes)


def pieces(*arrays: Any) -> Iterator[tuple[Any, ...]]:
    """The flattened arrays side by side, some elements at a time."""
    flat = [array.reshape(-1) for array in arrays]
    step = PIECE_ON_GPU if _is_tensor(flat[0]) and flat[0].is_cuda else PIECE
    for start in range(0, size(flat[0]), step):
        yield tuple(array[start:start + step] for array in flat)


def worst(expected: Any, got: Any, tolerances: Sequence[tuple[float, float]]) -> tuple[list[float], float]:
    """(share of elements with `|got - expected| > atol + rtol*|expected|` for each (atol, rtol), largest `|got - expected|`).

    A NaN or infinity agrees with itself only. Integers and bools must be equal.
    """
    wrong, largest = [0] * len(tolerances), 0.0
    allowed = tolerances if is_float(expected) else [(0.0, 0.0)] * len(tolerances)
    for want, have in pieces(expected, got):
        with np.errstate(invalid="ignore", over="ignore"):
            counts, peak = _piece(_double(want), _double(have), allowed)
        wrong = [total + count for total, count in zip(wrong, counts, strict=True)]
        largest = max(largest, peak)
    return [count / max(size(expected), 1) for count in wrong], largest


def _piece(a: Any, b: Any, tolerances: Sequence[tuple[float, float]]) -> tuple[list[int], float]:
    """(number of wrong elements by tolerance, largest finite error) of two pieces in double precision."""
    error = abs(b - a)
    peak = float(error.max())
    special = None if peak < float("inf") else (a == b) | ((a != a) & (b != b))
    wrong = []
    for atol, rtol in tolerances:
        fine = error <= atol + rtol * abs(a)
        if special is not None:
            fine = special | (fine & (abs(a) < float("inf")))
        wrong.append(size(fine) - int(fine.sum()))
    return wrong, peak if special is None else _peak(error)


def _peak(error: Any) -> float:
    finite = error[error < float("inf")]
    return float(finite.max()) if size(finite) else 0.0


def share_of_one_value(array: Any) -> float:
    """Share of the elements that equal the smallest, the largest, or zero: clipped, saturated or empty outputs."""
    if size(array) < 2:
        return 0.0
    low, high = array.min(), array.max()
    return max(sum(int((piece == value).sum()) for (piece,) in pieces(array)) for value in (low, high, 0 * low)) / size(array)


def structure(array: Any) -> str:
    """`triangular`, `diagonal` or `symmetric` for a square matrix of that kind; "" otherwise."""
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] < 3 or not is_float(array):
        return ""
    if not bool((array != 0).any()):
        return ""
    upper, lower = (bool((_triangle(array, side) == 0).all()) for side in ("upper", "lower"))
    if upper or lower:
        return "diagonal" if upper and lower else "triangular"
    return "symmetric" if bool((array == array.T).all()) else ""


def _triangle(array: Any, side: str) -> Any:
    """The part strictly above or below the diagonal."""
    if _is_tensor(array):
        return array.triu(1) if side == "upper" else array.tril(-1)
    return np.triu(array, 1) if side == "upper" else np.tril(array, -1)


def _finite(array: Any) -> Any:
    return array[abs(array) < float("inf")]


def _double(array: Any) -> Any:
    return array.double() if _is_tensor(array) else array.astype(np.float64)


def _is_tensor(array: Any) -> bool:
    return type(array).__module__.split(".")[0] == "torch"
