"""Resident blocks of a multiprocessor, as the CUDA occupancy calculator counts them (compute capability 8 and later)."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.types import DeviceSpec

REGISTER_UNIT = 256
"""Registers are given to a warp in this many."""
SHARED_UNIT = 128
RESERVED_SHARED = 1024
"""Shared memory that the system takes for each block."""
QUARTERS = 4


@dataclass(frozen=True)
class Occupancy:
    """What one multiprocessor holds at once."""

    blocks_per_sm: int
    limiter: str
    """registers, shared_memory, warps, blocks; `grid` where the grid is too small to fill it."""
    theoretical_pct: float


def occupancy(device: DeviceSpec, threads: int, registers: int, shared_bytes: int, grid_blocks: int) -> Occupancy:
    """`shared_bytes`: static and dynamic, of one block; `registers`: of one thread."""
    warps, most_warps = -(-threads // 32), device.max_threads_per_sm // 32
    a_warp = -(-registers * 32 // REGISTER_UNIT) * REGISTER_UNIT
    quarter_warps = device.registers_per_sm // QUARTERS // a_warp if a_warp else most_warps
    a_block = -(-(shared_bytes + RESERVED_SHARED) // SHARED_UNIT) * SHARED_UNIT
    limits = {
        "warps": most_warps // warps,
        "registers": QUARTERS * quarter_warps // warps,
        "shared_memory": device.shared_bytes_per_sm // a_block,
        "blocks": device.max_blocks_per_sm,
    }
    limiter = min(limits, key=lambda name: limits[name])
    blocks = max(1, limits[limiter])
    if grid_blocks < blocks * device.sm_count and -(-grid_blocks // device.sm_count) < blocks:
        limiter = "grid"
    return Occupancy(blocks, limiter, 100 * blocks * warps / most_warps)
