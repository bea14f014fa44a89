"""On a GPU: every CuPy allocation of a call lies between bands of known bytes, so a write that misses its array is seen.

The simulator needs none of this: it checks every access. Reads outside an array meet 0xFF bytes, NaN in every float format.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

BAND_BYTES = 4096
"""A multiple of what CUDA aligns allocations to."""
PATTERN = 0xFF


@dataclass
class Bands:
    """The allocations of one call; each is held until they have been looked at, so that none is given out twice."""

    cupy: Any
    broken: list[str] = field(default_factory=list)
    """What was written outside of an array, a sentence each."""
    _held: list[tuple[Any, int]] = field(default_factory=list)

    def allocate(self, size: int) -> Any:
        """An allocator for `cupy.cuda.set_allocator`."""
        whole = self.cupy.get_default_memory_pool().malloc(size + 2 * BAND_BYTES)
        whole.memset(PATTERN, size + 2 * BAND_BYTES)
        self._held.append((whole, size))
        return whole + BAND_BYTES

    def look(self) -> None:
        """Fills `broken`, and lets the allocations go."""
        self.cupy.cuda.runtime.deviceSynchronize()
        for whole, size in self._held:
            for offset, where in ((0, "in front of"), (BAND_BYTES + size, "behind")):
                band = np.empty(BAND_BYTES, np.uint8)
                (whole + offset).copy_to_host(band.ctypes.data, BAND_BYTES)
                changed = np.flatnonzero(band != PATTERN)
                if changed.size:
                    away = BAND_BYTES - int(changed[-1]) if offset == 0 else int(changed[0])
                    self.broken.append(f"{changed.size} bytes {where} an array of {size} bytes were overwritten, "
                                       f"{away} bytes away")
        self._held.clear()


@contextmanager
def banded(active: bool) -> Iterator[Bands | None]:
    """Within it, CuPy allocates between bands; they are looked at when it ends without an exception."""
    if not active:
        yield None
        return
    import cupy

    bands = Bands(cupy)
    cupy.cuda.set_allocator(bands.allocate)
    try:
        yield bands
        bands.look()
    finally:
        cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)
