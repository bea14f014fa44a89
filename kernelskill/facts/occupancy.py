"""Resident blocks an SM, and the resource that caps them (CUDA Occupancy Calculator's rules for compute capability 8 and 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evaluator.types import DeviceSpec

Limiter = Literal["registers", "shared_memory", "warps", "blocks", "grid"]
_WARP = 32
_PARTITIONS = 4
"""Each SM has four sub-partitions with a quarter of the registers; a warp lives in one of them."""
_REGISTERS_A_WARP = 256
"""Registers are handed to warps in units of 256."""
_SHARED_UNIT = 128
_RESERVED_SHARED = 1024
"""Shared memory the system keeps of every block since compute capability 8.0."""


@dataclass(frozen=True)
class Occupancy:
    """Resident blocks an SM, as a share of the SM's warps too."""

    blocks_per_sm: int
    percent: float
    limiter: Limiter


def occupancy(device: DeviceSpec, threads: int, registers: int, shared_bytes: int, grid_blocks: int) -> Occupancy | None:
    """Occupancy of blocks with `threads` threads of `registers` registers and `shared_bytes` of shared memory.

    The limiter is `grid` when the launch has too few blocks to fill the SMs. None when not even one block fits.
    """
    warps = -(-threads // _WARP)
    max_warps = device.max_threads_per_sm // _WARP
    limits: dict[Limiter, int] = {
        "warps": max_warps // warps,
        "blocks": device.max_blocks_per_sm,
        "registers": _warps_by_registers(device, registers, max_warps) // warps,
        "shared_memory": _blocks_by_shared(device, shared_bytes),
    }
    limiter = min(limits, key=lambda name: limits[name])
    blocks = limits[limiter]
    if blocks < 1:
        return None
    percent = 100.0 * min(1.0, blocks * warps / max_warps)
    return Occupancy(blocks, percent, "grid" if grid_blocks < blocks * device.sm_count else limiter)


def _warps_by_registers(device: DeviceSpec, registers: int, max_warps: int) -> int:
    if registers == 0:
        return max_warps
    per_warp = -(-registers * _WARP // _REGISTERS_A_WARP) * _REGISTERS_A_WARP
    return min(max_warps, device.registers_per_sm // _PARTITIONS // per_warp * _PARTITIONS)


def _blocks_by_shared(device: DeviceSpec, shared_bytes: int) -> int:
    if device.compute_capability >= (8, 0):
        shared_bytes += _RESERVED_SHARED
    unit = -(-shared_bytes // _SHARED_UNIT) * _SHARED_UNIT
    return device.shared_bytes_per_sm // unit if unit else device.max_blocks_per_sm
