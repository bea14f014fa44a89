"""Inputs that do not lie in memory as a fresh array does: views of a larger allocation, and reversed axes."""

from __future__ import annotations

import math
from typing import Any, Protocol

from evaluator.trees import Leaf


class Device(Protocol):
    """What of a solution's library is needed."""

    def to_device(self, leaf: Leaf) -> Any:
        """A fresh device array with the leaf's values."""

    def elements(self, count: int, like: Any) -> Any:
        """A one-dimensional device array of `count` elements of `like`'s dtype, holding NaN or a large pattern."""

    def reversed_axes(self, array: Any) -> Any:
        """A view with the axes in reverse order."""


def arranged(device: Device, leaf: Leaf, layout: str) -> Any:
    """A device array with the leaf's values in the given layout; scalars and empty arrays are as `to_device` makes them."""
    made = device.to_device(leaf)
    if layout == "contiguous" or not leaf.shape or not leaf.values.size:
        return made
    if layout == "offset":
        view = device.elements(math.prod(leaf.shape) + 1, made)[1:].reshape(leaf.shape)
    elif layout == "strided":
        *outer, last = leaf.shape
        view = device.elements(2 * math.prod(leaf.shape), made).reshape((*outer, 2 * last))[..., ::2]
    else:
        view = device.reversed_axes(device.elements(math.prod(leaf.shape), made).reshape(leaf.shape[::-1]))
    view[...] = made
    return view
