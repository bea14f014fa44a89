"""Runs a launch on guarded copies of memory that has no guard gaps of its own (torch storages), and copies results back.

Pointers in the parameter block are redirected to the copies; a pointer stored inside device memory is not.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.simulator.standin.memory import Allocation, bytes_at
from evaluator.simulator.standin.state import registry

WORD = 8


@dataclass(frozen=True)
class _Twin:
    original: Allocation
    copy: NDArray[np.uint8]

    def write_back(self) -> None:
        there = bytes_at(self.original.address, self.original.nbytes, None)
        if self.original.writable and not np.array_equal(there, self.copy):
            there[:] = self.copy


@contextmanager
def guarded(packed: bytes) -> Iterator[tuple[bytes, frozenset[int]]]:
    """The parameter block to launch with, and the addresses of the originals that it no longer refers to."""
    block = bytearray(packed)
    twins: dict[int, _Twin] = {}
    for offset in range(0, len(block) - WORD + 1, WORD):
        address = struct.unpack_from("<Q", block, offset)[0]
        allocation = registry.find(address) if address else None
        if allocation is not None and not allocation.guarded:
            twin = twins.setdefault(allocation.address, _twin(allocation))
            moved = twin.copy.ctypes.data + address - allocation.address
            struct.pack_into("<Q", block, offset, moved)
    try:
        yield bytes(block), frozenset(twins)
    finally:
        for twin in twins.values():
            twin.write_back()


def _twin(original: Allocation) -> _Twin:
    copy = registry.allocate(original.nbytes, original.label)
    copy[:] = bytes_at(original.address, original.nbytes, None)
    if not original.writable:
        registry.protect(copy.ctypes.data)
    return _Twin(original, copy)
