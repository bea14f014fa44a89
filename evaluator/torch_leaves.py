"""Tensors to leaves and back. Imported only where a task or solution uses PyTorch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from evaluator.tiles import TILES, TiledLeaf, tiled_leaf
from evaluator.trees import Leaf, WireError, axis_order


def as_leaf(value: Any) -> Any:
    """A tensor as Leaf (a copy on the CPU; its own memory where it is tiled); numbers, strings and None as they are.

    Raises WireError for anything else.
    """
    if not isinstance(value, torch.Tensor):
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise WireError(f"a value of type {type(value).__name__}")
    tensor = value.detach().to("cpu").contiguous()
    order = axis_order(value.shape, value.stride()) if value.layout == torch.strided else None
    if TILES.pattern(tensor.data_ptr(), tensor.nbytes) is not None:
        bits = tensor.view(torch.int16).numpy().view(np.uint16) if tensor.dtype == torch.bfloat16 else tensor.numpy()
        return tiled_leaf(Leaf(bits, str(tensor.dtype).removeprefix("torch."), "torch"))
    if tensor.dtype == torch.bfloat16:
        return Leaf(tensor.view(torch.int16).numpy().view(np.uint16).copy(), "bfloat16", "torch", order=order)
    return replace(Leaf.of(tensor.numpy().copy(), "torch"), order=order)


def as_tensor(leaf: Any) -> Any:
    """A Leaf as a new CPU tensor (over the same memory where it is tiled); anything else as it is."""
    if not isinstance(leaf, Leaf):
        return leaf
    if isinstance(leaf, TiledLeaf):
        shared = torch.from_numpy(leaf.values.view(np.int16) if leaf.dtype == "bfloat16" else leaf.values)
        return shared.view(torch.bfloat16) if leaf.dtype == "bfloat16" else shared
    if leaf.dtype == "bfloat16":
        return torch.from_numpy(leaf.values.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(leaf.values))
