"""What an H200 measured for the table's kernels: `measured.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from evaluator.types import DeviceSpec

FILE = Path(__file__).resolve().parent / "measured.json"

H200 = DeviceSpec(
    name="NVIDIA H200", compute_capability=(9, 0), sm_count=132, sm_clock_hz=1.98e9, dram_bytes_per_s=4.8e12,
    measured_dram_bytes_per_s=4.228e12, fp32_flops_per_s=66.9e12, tf32_flops_per_s=494.7e12, fp16_flops_per_s=989.4e12,
    l2_bytes=62914560, l1_shared_bytes_per_sm=262144, shared_bytes_per_sm=233472, shared_bytes_per_block=232448,
)
"""The device of the measurements."""


@dataclass(frozen=True)
class Measured:
    """One kernel's record."""

    cold_us: float
    """Median time with a cold L2."""
    warm_us: float
    registers: int
    blocks_per_sm: int
    ncu: dict[str, float]
    """Nsight Compute counters by short name (see `measure.METRICS`)."""


@lru_cache(maxsize=1)
def load() -> dict[str, Measured]:
    """Kernel name -> record."""
    rows = json.loads(FILE.read_text())["kernels"]
    return {name: Measured(row["cold_us"], row["warm_us"], row["registers"], row["blocks_per_sm"], row.get("ncu", {}))
            for name, row in rows.items()}
