"""Large draws of torch as tiled tensors (see tiles.py). Imported only where a task uses PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from evaluator import tiles
from evaluator.simulator.standin.torch_operators import computes
from evaluator.trees import leaves

BY_SHAPE = (torch.rand, torch.randn, torch.zeros, torch.ones, torch.empty)
BY_SIZE_ARGUMENT = (torch.randint, torch.full)
TORCH_STORAGE = {torch.bool: np.dtype(np.bool_), torch.bfloat16: np.dtype(np.uint16)}


class _Tiling(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
    """Sees every torch call of this thread."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in BY_SHAPE or func in BY_SIZE_ARGUMENT:
            shape, dtype = _what(func, tuple(args), kwargs)
            if shape.numel() * dtype.itemsize >= tiles.TILED_FROM:
                return tiled(_tile(func, tuple(args), kwargs, dtype), shape)
        elif computes(getattr(func, "__name__", "")) and any(is_tiled(value) for _, value in leaves((*args,), "")):
            raise MemoryError(f"{func.__name__} of a tensor that is too large to hold")
        return func(*args, **kwargs)


def tiling_mode() -> Any:
    """The context in which large draws are tiled."""
    return _Tiling()


def _what(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[torch.Size, torch.dtype]:
    kept = {name: value for name, value in kwargs.items() if name not in ("device", "generator", "out", "pin_memory")}
    made = func(*args, **kept, device="meta")
    return made.shape, made.dtype


def _tile(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype) -> torch.Tensor:
    """A tile drawn as the whole would have been."""
    count = (tiles.TILE_BYTES // dtype.itemsize,)
    if "size" in kwargs:
        kwargs = {**kwargs, "size": count}
    elif func in BY_SHAPE:
        args = (count,)
    else:
        args = tuple(count if isinstance(arg, (tuple, list)) else arg for arg in args)
    drawn: torch.Tensor = func(*args, **kwargs)
    return drawn


def tiled(tile: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """A tensor of `shape` that repeats `tile`."""
    raw = tiles.spread(tile.view(torch.uint8).numpy(), int(np.prod(shape, dtype=object)) * tile.element_size())
    return torch.from_numpy(raw).view(tile.dtype).reshape(tuple(shape))


def is_tiled(value: Any) -> bool:
    """A tensor over the whole of a tiled array."""
    return isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.is_contiguous() and (
        tiles.TILES.pattern(value.data_ptr(), value.nbytes) is not None)
