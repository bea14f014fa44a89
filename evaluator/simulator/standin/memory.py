"""Simulated device memory: every allocation sits between guard gaps, and a registry knows what is alive.

An access that misses its buffer lands in a gap, which belongs to no buffer, so it is found instead of reading a
neighbour. Memory that came from elsewhere (torch storages) has no gaps of its own; launches run on guarded twins of it
(`staging.py`).
"""

from __future__ import annotations

import bisect
import ctypes
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

GUARD_BYTES = 256 * 1024
ALIGNMENT = 512
"""Alignment of a fresh CUDA allocation."""
INTEGER_POISON = 0xA5
NAN_POISON = 0xFF
"""Every floating-point format (float16 to float64, bfloat16) reads 0xFF bytes as NaN."""


def never() -> bool:
    """The lifetime of memory that the registry hears about when it is freed."""
    return False


@dataclass
class Allocation:
    """A live range of simulated device memory."""

    address: int
    nbytes: int
    label: str
    writable: bool = True
    guarded: bool = True
    module_global: bool = False
    """A `__device__` or `__constant__` variable: the interpreter knows it by itself."""
    expired: Callable[[], bool] = never
    unwritten: bool = False
    """Made uninitialised, and nothing but kernels has written to it since."""


@dataclass
class Registry:
    """All live allocations, by address."""

    _starts: list[int] = field(default_factory=list)
    _live: dict[int, Allocation] = field(default_factory=dict)

    def allocate(self, nbytes: int, label: str) -> NDArray[np.uint8]:
        """Zeroed bytes, aligned as CUDA aligns, with a gap on both sides; freed when the last view of them is gone."""
        raw: NDArray[np.uint8] = np.zeros(max(nbytes, 1) + 2 * GUARD_BYTES + ALIGNMENT, np.uint8)
        offset = GUARD_BYTES + (-(raw.ctypes.data + GUARD_BYTES)) % ALIGNMENT
        allocation = Allocation(raw.ctypes.data + offset, nbytes, label)
        self._enter(allocation)
        weakref.finalize(raw, self._leave, allocation)
        return raw[offset:offset + nbytes]

    def lend(self, address: int, nbytes: int, label: str, expired: Callable[[], bool]) -> None:
        """Registers memory that something else owns, until `expired()`. No effect where the range is known already."""
        known = self.find(address)
        if nbytes and (known is None or known.address + known.nbytes < address + nbytes):
            self._enter(Allocation(address, nbytes, label, guarded=False, expired=expired))

    def enter_global(self, address: int, nbytes: int, name: str) -> None:
        """Registers a module's `__device__` or `__constant__` variable; modules stay loaded."""
        self._enter(Allocation(address, nbytes, name, module_global=True))

    def find(self, address: int) -> Allocation | None:
        """The live allocation that holds `address`."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        allocation = self._live[self._starts[index]]
        if allocation.expired():
            self._leave(allocation)
            return self.find(address)
        return allocation if address < allocation.address + max(allocation.nbytes, 1) else None

    def live(self) -> list[Allocation]:
        """Every live allocation, by address."""
        for allocation in [a for a in self._live.values() if a.expired()]:
            self._leave(allocation)
        return [self._live[start] for start in self._starts]

    def protect(self, address: int) -> None:
        """Makes a kernel's write into the allocation at `address` an error (inputs that must stay as they are)."""
        allocation = self.find(address)
        if allocation is not None:
            allocation.writable = False

    def made_empty(self, address: int) -> None:
        """Notes that the allocation at `address` is fresh and uninitialised."""
        allocation = self.find(address)
        if allocation is not None:
            allocation.unwritten = True

    def written_by_library(self, address: int) -> None:
        """Notes a fill, copy or operator that writes into the allocation at `address`."""
        allocation = self.find(address)
        if allocation is not None:
            allocation.unwritten = False

    def _enter(self, allocation: Allocation) -> None:
        if allocation.address not in self._live:
            bisect.insort(self._starts, allocation.address)
        self._live[allocation.address] = allocation

    def _leave(self, allocation: Allocation) -> None:
        if self._live.get(allocation.address) is allocation:
            del self._live[allocation.address]
            self._starts.remove(allocation.address)


def poison(raw: NDArray[np.uint8], dtype: np.dtype[Any], byte: int | None = None) -> None:
    """Fills `raw` with what nothing may rely on: `byte`, or NaN for floating dtypes and a large pattern for integers."""
    raw[:] = byte if byte is not None else NAN_POISON if dtype.kind in "fcV" else INTEGER_POISON


def bytes_at(address: int, nbytes: int, owner: Any) -> NDArray[np.uint8]:
    """Host view of raw memory; `owner` stays alive as long as the view does."""
    view = (ctypes.c_uint8 * nbytes).from_address(address)
    view._owner = owner  # type: ignore[attr-defined]
    array: NDArray[np.uint8] = np.frombuffer(view, np.uint8)  # type: ignore[call-overload]
    return array


class MemoryPointer:
    """An address in simulated device memory, as `cupy.cuda.MemoryPointer(mem, offset)`."""

    device_id = 0

    def __init__(self, mem: Any, offset: int = 0) -> None:
        self.mem, self.offset = mem, offset
        self.ptr: int = int(mem.ptr) + offset

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.offset + offset)

    def __int__(self) -> int:
        return self.ptr

    __index__ = __int__


class HostMemory:
    """What a MemoryPointer points into: `owner` keeps the bytes alive."""

    device_id = 0

    def __init__(self, ptr: int, size: int, owner: Any) -> None:
        self.ptr, self.size, self.owner = ptr, size, owner
