"""Inputs that do not lie in memory as a fresh array does: as the task made them (a transposed array), views of a larger
allocation, and reversed axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from evaluator.trees import Leaf


class Device(Protocol):
    """What of a solution's library is needed."""

    def to_device(self, leaf: Leaf) -> Any:
        """A fresh device array with the leaf's values."""

    def elements(self, count: int, like: Any) -> Any:
        """A one-dimensional device array of `count` elements of `like`'s dtype, holding NaN or a large pattern."""

    def with_axes(self, array: Any, axes: Sequence[int]) -> Any:
        """A view with the axes in the given order."""


def arranged(device: Device, leaf: Leaf, layout: str) -> Any:
    """A device array with the leaf's values in the given layout; scalars and empty arrays are as `to_device` makes them.

    Where the layout is `contiguous`, an array that the task made in another order of its axes lies in that one.
    """
    made = device.to_device(leaf)
    if (layout == "contiguous" and leaf.order is None) or not leaf.shape or not leaf.values.size:
        return made
    if layout == "contiguous":
        view = in_order(device, device.elements(math.prod(leaf.shape), made), leaf.shape, leaf.order or ())
    elif layout == "offset":
        view = device.elements(math.prod(leaf.shape) + 1, made)[1:].reshape(leaf.shape)
    elif layout == "strided":
        *outer, last = leaf.shape
        view = device.elements(2 * math.prod(leaf.shape), made).reshape((*outer, 2 * last))[..., ::2]
    else:
        backwards = tuple(reversed(range(len(leaf.shape))))
        view = in_order(device, device.elements(math.prod(leaf.shape), made), leaf.shape, backwards)
    view[...] = made
    return view


def in_order(device: Device, flat: Any, shape: Sequence[int], order: Sequence[int]) -> Any:
    """One-dimensional memory as an array of `shape` whose axes lie in `order`, the slowest first."""
    lying = flat.reshape(tuple(shape[axis] for axis in order))
    return device.with_axes(lying, [order.index(axis) for axis in range(len(shape))])
