"""Arrays too large to hold: a few megabytes of drawn values, mapped over and over into one range of addresses.

The time of a kernel at the full sizes is modelled from sampled blocks. They touch a small part of the inputs, and most kernels
take the same time whatever the values are; so a large draw of a task's inputs is drawn once for the length of a tile, and the
tile's pages stand for all of it. Every address can be read and written (a write shows in every copy of the tile). Linux only.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.trees import Array, Leaf, leaves, map_leaves

TILE_BYTES = 4099 * 4096
"""A prime number of pages: rows a power of two apart hold different values."""
TILED_FROM = 512 << 20
"""Bytes of one draw from which on it is tiled; smaller ones are drawn whole."""
LIMIT_BYTES = 256 << 30
"""Tiled bytes of one problem, at most: more than any GPU's memory."""
DRAWS = {"standard_normal": 0, "random": 0, "normal": 2, "uniform": 2, "integers": 2, "standard_exponential": 0}
"""Methods of numpy.random.Generator that are tiled -> position of `size`."""
PROT_NONE, MAP_FIXED, MAP_NORESERVE, MREMAP_MAYMOVE, MREMAP_FIXED = 0, 0x10, 0x4000, 1, 2
FAILED = ctypes.c_void_p(-1).value


@dataclass(frozen=True)
class TiledLeaf(Leaf):
    """A leaf whose `values` repeat `pattern`."""

    pattern: Array = field(default_factory=lambda: np.zeros(0, np.uint8))
    """One tile: one dimension, of the values' storage dtype."""


class Tiles:
    """The tiled arrays that are alive in this process, by address."""

    def __init__(self) -> None:
        self._alive: dict[int, tuple[int, NDArray[np.uint8]]] = {}

    def make(self, pattern: NDArray[np.uint8], nbytes: int) -> NDArray[np.uint8]:
        """`nbytes` writable bytes that repeat `pattern` (TILE_BYTES). Raises MemoryError where no addresses are left."""
        address, mapped = _map(pattern, nbytes)
        memory = (ctypes.c_uint8 * nbytes).from_address(address)
        weakref.finalize(memory, self._unmap, address, mapped)
        self._alive[address] = nbytes, pattern
        array: NDArray[np.uint8] = np.frombuffer(memory, np.uint8)  # type: ignore[call-overload]
        return array

    def pattern(self, address: int, nbytes: int) -> NDArray[np.uint8] | None:
        """The tile of the whole tiled array at `address`; None where there is none of this length."""
        length, pattern = self._alive.get(address, (-1, None))
        return pattern if length == nbytes else None

    def _unmap(self, address: int, mapped: int) -> None:
        self._alive.pop(address, None)
        _libc().munmap(ctypes.c_void_p(address), ctypes.c_size_t(mapped))


TILES = Tiles()


def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
    return libc


def _map(pattern: NDArray[np.uint8], nbytes: int) -> tuple[int, int]:
    """(address, bytes mapped). mremap of zero bytes of a shared mapping maps its pages once more."""
    libc, size = _libc(), ctypes.c_size_t
    whole = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    reserved = libc.mmap(None, size(whole), PROT_NONE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE, -1, size(0))
    if reserved == FAILED:
        raise MemoryError(f"no address range of {whole} bytes is free")
    first = libc.mmap(ctypes.c_void_p(reserved), size(min(TILE_BYTES, whole)), mmap.PROT_READ | mmap.PROT_WRITE,
                      mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | MAP_FIXED, -1, size(0))
    done = first != FAILED
    if done:
        ctypes.memmove(reserved, pattern.ctypes.data, min(pattern.nbytes, whole))
    for at in range(TILE_BYTES, whole, TILE_BYTES):
        there = ctypes.c_void_p(reserved + at)
        done = done and libc.mremap(ctypes.c_void_p(reserved), size(0), size(min(TILE_BYTES, whole - at)),
                                    MREMAP_MAYMOVE | MREMAP_FIXED, there) != FAILED
    if not done:
        libc.munmap(ctypes.c_void_p(reserved), size(whole))
        raise MemoryError(f"a tile cannot be mapped over {whole} bytes: {ctypes.get_errno()}")
    return int(reserved), whole


def available() -> bool:
    """Whether arrays can be tiled here."""
    return sys.platform == "linux" and mmap.PAGESIZE == 4096


def tiled_leaf(leaf: Leaf) -> Leaf:
    """The same leaf, with its pattern where its memory is a tiled array."""
    values = leaf.values
    if not values.flags.c_contiguous or not values.size:
        return leaf
    pattern = TILES.pattern(values.ctypes.data, values.nbytes)
    return leaf if pattern is None else TiledLeaf(values, leaf.dtype, leaf.source, pattern.view(values.dtype))


def tiled_bytes(tree: Any) -> int:
    """Bytes of the tiled arrays in the tree."""
    return sum(leaf.values.nbytes for _, leaf in leaves(tree, "") if isinstance(leaf, TiledLeaf))


def fold(tree: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """What crosses to another process: tiled leaves as one tile, and the shape that each stands for, by path."""
    shapes = {path: list(leaf.shape) for path, leaf in leaves(tree, "") if isinstance(leaf, TiledLeaf)}
    return map_leaves(lambda leaf: Leaf(leaf.pattern, leaf.dtype, leaf.source) if isinstance(leaf, TiledLeaf) else leaf,
                      tree), shapes


def unfold(tree: Mapping[str, Any], shapes: Mapping[str, list[int]]) -> dict[str, Any]:
    """Inverse of `fold`: the tiles mapped over their shapes. Raises MemoryError."""
    tiled = {id(leaf): shapes[path] for path, leaf in leaves(tree, "") if path in shapes}

    def unfolded(leaf: Any) -> Any:
        return _expanded(leaf, tiled[id(leaf)]) if id(leaf) in tiled else leaf

    made: dict[str, Any] = map_leaves(unfolded, tree)
    return made


def _expanded(leaf: Leaf, shape: list[int]) -> Leaf:
    return tiled_leaf(Leaf(spread(leaf.values, shape), leaf.dtype, leaf.source))


def spread(pattern: Array, shape: Any) -> Array:
    """An array of `shape` that repeats `pattern`, TILE_BYTES of any dtype."""
    raw = np.ascontiguousarray(pattern).view(np.uint8)
    nbytes = int(np.prod(shape, dtype=object)) * pattern.itemsize
    array: Array = TILES.make(raw, nbytes).view(pattern.dtype).reshape(shape)
    return array


class TilingGenerator(np.random.Generator):
    """numpy.random.Generator whose large draws are tiled."""


def _tiling(name: str, position: int) -> Callable[..., Any]:
    own = getattr(np.random.Generator, name)

    def draw(self: TilingGenerator, *args: Any, **kwargs: Any) -> Any:
        size, dtype = (kwargs.get(word, args[at] if len(args) > at else default)
                       for word, at, default in (("size", position, None), ("dtype", position + 1, np.float64)))
        if size is None or "out" in kwargs or int(np.prod(size, dtype=object)) * np.dtype(dtype).itemsize < TILED_FROM:
            return own(self, *args, **kwargs)
        count = TILE_BYTES // np.dtype(dtype).itemsize
        if "size" in kwargs:
            return spread(own(self, *args, **{**kwargs, "size": count}), size)
        return spread(own(self, *args[:position], count, *args[position + 1:], **kwargs), size)

    return draw


for _name, _position in DRAWS.items():
    setattr(TilingGenerator, _name, _tiling(_name, _position))
