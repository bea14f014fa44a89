"""Runs a launch as if all its blocks started at once: none sees what another one writes.

A GPU may do that, so a kernel whose result differs then has a race between blocks: `y[0] += sum` by one thread of each block,
a read of what a neighbouring block writes. Blocks may speak to each other by atomics (tickets, accumulation), which need the
common memory: a launch that performs any on global memory keeps its ordinary result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from evaluator.simulator.interpreter import RunResult
from evaluator.simulator.standin.memory import Allocation, bytes_at

MOST_BLOCKS, MOST_BYTES = 512, 1 << 26
"""Beyond so many blocks, or blocks times bytes of memory, the ordinary result is kept."""


def run_apart(run: Callable[[Sequence[int] | None], RunResult], blocks: int, memory: Sequence[Allocation]) -> RunResult:
    """The result of `run(None)`; afterwards memory holds what the blocks, run one by one from the same start, make of it."""
    places = [bytes_at(a.address, a.nbytes, None) for a in memory if a.writable and a.nbytes]
    if not 1 < blocks <= MOST_BLOCKS or blocks * sum(place.nbytes for place in places) > MOST_BYTES:
        return run(None)
    before = [place.copy() for place in places]
    whole = run(None)
    if whole.findings or whole.counts.global_atomics.requests:
        return whole
    ordinary, merged = [place.copy() for place in places], [old.copy() for old in before]
    for block in range(blocks):
        _put(places, before)
        if run([block]).fatal:  # it waits for another block, say: they are not free of each other, and need not be
            _put(places, ordinary)
            return whole
        for place, old, new in zip(places, before, merged, strict=True):
            np.copyto(new, place, where=place != old)
    _put(places, merged)
    return whole


def _put(places: Sequence[NDArray[np.uint8]], contents: Sequence[NDArray[np.uint8]]) -> None:
    for place, content in zip(places, contents, strict=True):
        place[:] = content
