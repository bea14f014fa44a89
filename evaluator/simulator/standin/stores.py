"""How many bytes a launch at the full sizes can have stored, and how many output bytes only kernels can have written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evaluator.simulator import interpreter
from evaluator.simulator.standin.arrays import ndarray
from evaluator.simulator.standin.memory import Allocation
from evaluator.simulator.standin.state import registry

SECTOR_BYTES, LANES = 32, 32
SAMPLES = 48
"""Random blocks that run once more where the timed ones stored less than the launch's largest fresh buffer holds."""
BUDGET = 4_000_000
"""Warp instructions after which no further block is sampled, and the most that one of them may take."""
SEED = 1


def modelled_bound(counts: Mapping[str, float]) -> float:
    """Bytes that a launch's counts let it store, atomics at a sector a lane; at least what it stored, if blocks are alike."""
    sectors = counts.get("global_store_requests", 0.0) * counts.get("global_store_sectors_per_request", 0.0)
    stored = sectors * SECTOR_BYTES * counts.get("global_store_efficiency_pct", 100.0) / 100
    return stored + counts.get("global_atomic_requests", 0.0) * LANES * SECTOR_BYTES


def sampled_bound(
    module: interpreter.Module, kernel: str, grid: Sequence[int], block: Sequence[int], packed: bytes,
    buffers: Sequence[interpreter.Buffer], dynamic_shared: int,
) -> float:
    """Bytes that the grid stores if every block stored as much as the busiest of a random sample; inf where that fails.

    The timed blocks are the first ones of the grid; blocks elsewhere may store more.
    """
    blocks = math.prod(grid)
    rng = np.random.default_rng(SEED)
    chosen = [blocks - 1, 0, *rng.integers(0, blocks, SAMPLES).tolist()]
    most, spent = 0, 0
    for index in dict.fromkeys(chosen):
        result = interpreter.run(module, kernel, grid, block, packed, buffers, dynamic_shared=dynamic_shared, checks=False,
                                 blocks=[index], budget=BUDGET)
        if result.fatal:
            return math.inf
        atomics = result.counts.global_atomics
        most = max(most, result.counts.global_stores.nbytes + atomics.requests * LANES * SECTOR_BYTES)
        spent += result.counts.warp_instructions
        if spent > BUDGET:
            break
    return float(most) * blocks


def unwritten_output_bytes(result: Any) -> int:
    """Bytes of the output tree that lie in memory made uninitialised, which no fill, copy or operator wrote since."""
    held: dict[int, tuple[Allocation, int]] = {}
    for array in _arrays(result):
        allocation = registry.find(_address(array))
        if allocation is not None and allocation.unwritten:
            before = held.get(allocation.address, (allocation, 0))[1]
            held[allocation.address] = allocation, min(allocation.nbytes, before + int(array.nbytes))
    return sum(nbytes for _, nbytes in held.values())


def _arrays(result: Any) -> list[Any]:
    if isinstance(result, Mapping):
        return [array for value in result.values() for array in _arrays(value)]
    if isinstance(result, (tuple, list)):
        return [array for value in result for array in _arrays(value)]
    return [result] if hasattr(result, "nbytes") and result.nbytes else []


def _address(array: Any) -> int:
    return int(array.data.ptr if isinstance(array, ndarray) else array.data_ptr())
