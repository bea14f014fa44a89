"""Values that cross from one process to the other: trees of arrays and plain numbers, as JSON plus raw bytes.

Nothing is unpickled, so a process that runs untrusted code can only hand over data. bfloat16, which NumPy lacks,
travels as uint16 bit patterns under its own dtype name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FLOAT_DTYPES = frozenset({"float16", "bfloat16", "float32", "float64"})
DTYPES = FLOAT_DTYPES | {
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "complex64", "complex128",
}


class WireError(ValueError):
    """The other process sent something that is no tree of arrays."""


@dataclass(frozen=True)
class Leaf:
    """One array with the dtype it has in its own library."""

    values: Array
    dtype: str
    """`float32`, `bfloat16`, `int64`, ...; bfloat16 is held as uint16 bits."""
    source: str = "numpy"
    """Library that held it: `numpy`, `cupy`, `torch`, or `python` for a plain number."""
    order: tuple[int, ...] | None = field(default=None, kw_only=True)
    """Of a dense array that does not lie in C order where it was made (a transposed one): its axes, the slowest first."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent per axis."""
        return tuple(self.values.shape)

    @property
    def is_float(self) -> bool:
        """Real floating point."""
        return self.dtype in FLOAT_DTYPES

    def as_float64(self) -> NDArray[np.float64]:
        """The values in double precision (exact for every float dtype)."""
        if self.dtype == "bfloat16":
            return (self.values.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return self.values.astype(np.float64)

    @classmethod
    def of(cls, value: Any, source: str = "numpy") -> Leaf:
        """Wraps a NumPy array or number; raises WireError for a dtype that kernels do not have."""
        array = np.asarray(value)
        if array.dtype.name not in DTYPES:
            raise WireError(f"dtype {array.dtype} has no counterpart in a CUDA kernel")
        return cls(array, array.dtype.name, source, order=axis_order(array.shape, array.strides, array.itemsize))


def axis_order(shape: Sequence[int], strides: Sequence[int], itemsize: int = 1) -> tuple[int, ...] | None:
    """The axes of a dense array, the slowest first, where that is not C order; None for C order and for what has gaps.

    `strides` are in bytes for an `itemsize` in bytes, else in elements.
    """
    long = [axis for axis, extent in enumerate(shape) if extent > 1]
    order = sorted(long, key=lambda axis: (-strides[axis], axis))
    if order == long:
        return None
    step = itemsize
    for axis in reversed(order):
        if strides[axis] != step:
            return None
        step *= shape[axis]
    return (*(axis for axis in range(len(shape)) if axis not in long), *order)


def round_to(values: NDArray[np.float64], dtype: str) -> Array:
    """Rounds doubles to `dtype`'s storage (bfloat16: uint16 bits, to nearest even); overflow gives infinity."""
    if dtype != "bfloat16":
        with np.errstate(over="ignore"):
            return values.astype(dtype)
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def leaves(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    """(`out[1]`, leaf) of every leaf; dicts in insertion order."""
    if isinstance(tree, Mapping):
        for key, child in tree.items():
            yield from leaves(child, f"{path}[{key!r}]")
    elif isinstance(tree, (tuple, list)):
        for position, child in enumerate(tree):
            yield from leaves(child, f"{path}[{position}]")
    else:
        yield path, tree


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same tree with `function` applied to every leaf; named tuples become tuples."""
    if isinstance(tree, Mapping):
        return {key: map_leaves(function, child) for key, child in tree.items()}
    if isinstance(tree, (tuple, list)):
        children = [map_leaves(function, child) for child in tree]
        return children if isinstance(tree, list) else tuple(children)
    return function(tree)


def total_bytes(tree: Any) -> int:
    """Bytes of all arrays in the tree."""
    return sum(leaf.values.nbytes for _, leaf in leaves(tree, "") if isinstance(leaf, Leaf))


def pack(tree: Any) -> tuple[Any, list[Array]]:
    """JSON-able description and the arrays it refers to, in order.

    Leaves may be `Leaf`, None, bool, int, float or str; raises WireError otherwise.
    """
    arrays: list[Array] = []

    def describe(node: Any) -> Any:
        if isinstance(node, Leaf):
            array = np.ascontiguousarray(node.values).reshape(node.values.shape)
            arrays.append(array)
            order = [list(node.order)] if node.order else []
            return {"leaf": [array.dtype.name, node.dtype, list(array.shape), node.source, *order]}
        if isinstance(node, Mapping):
            return {"map": [[str(key), describe(child)] for key, child in node.items()]}
        if isinstance(node, (tuple, list)):
            return {"list" if isinstance(node, list) else "tuple": [describe(child) for child in node]}
        if node is None or isinstance(node, (bool, int, float, str)):
            return {"plain": node}
        raise WireError(f"a value of type {type(node).__name__} cannot be sent")

    return describe(tree), arrays


def payload_bytes(description: Any) -> int:
    """Bytes that the arrays of a description take; raises WireError when it is malformed."""
    return sum(_leaf_bytes(*leaf) for leaf in _described(description))


def unpack(description: Any, payload: bytes | bytearray | memoryview) -> Any:
    """Inverse of `pack`. `payload` holds the arrays' bytes back to back; the arrays are writable when it is."""
    view, offset = memoryview(payload), 0

    def build(node: Any) -> Any:
        nonlocal offset
        (kind, value), = node.items()
        if kind == "leaf":
            storage, dtype, shape, source, *order = value
            size = _leaf_bytes(storage, dtype, shape, source, *order)
            array = np.frombuffer(view[offset:offset + size], dtype=storage).reshape(shape)
            offset += size
            return Leaf(array, dtype, source, order=tuple(order[0]) if order else None)
        if kind == "map":
            return {key: build(child) for key, child in value}
        if kind in ("list", "tuple"):
            children = [build(child) for child in value]
            return children if kind == "list" else tuple(children)
        return value

    return build(description)


def _described(node: Any) -> Iterator[list[Any]]:
    if not (isinstance(node, dict) and len(node) == 1):
        raise WireError("malformed tree")
    (kind, value), = node.items()
    if kind == "leaf":
        yield value
    elif kind == "map":
        for _, child in value:
            yield from _described(child)
    elif kind in ("list", "tuple"):
        for child in value:
            yield from _described(child)
    elif kind != "plain":
        raise WireError(f"malformed tree: {kind!r}")


def _leaf_bytes(storage: str, dtype: str, shape: list[int], source: str, order: list[int] | None = None) -> int:
    bits_of_bfloat16 = dtype == "bfloat16" and storage == "uint16"
    if dtype not in DTYPES or (storage != dtype and not bits_of_bfloat16) or not isinstance(source, str):
        raise WireError(f"malformed leaf: {storage!r} as {dtype!r}")
    if not all(type(extent) is int and 0 <= extent < 1 << 48 for extent in shape):
        raise WireError(f"malformed leaf: shape {shape!r}")
    if order is not None and (not all(type(axis) is int for axis in order) or sorted(order) != list(range(len(shape)))):
        raise WireError(f"malformed leaf: order {order!r}")
    return int(np.dtype(storage).itemsize) * math.prod(shape)
