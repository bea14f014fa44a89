"""What an H200 measured for the table's kernels: `measured.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from evaluator.types import DeviceSpec

FILE = Path(__file__).resolve().parent / "measured.json"

METRICS = {
    "dram__bytes.sum": "dram_bytes",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": "dram_throughput_pct",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "sm_throughput_pct",
    "l1tex__throughput.avg.pct_of_peak_sustained_active": "l1_throughput_pct",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": "l2_throughput_pct",
    "l1tex__t_sector_hit_rate.pct": "l1_hit_rate_pct",
    "lts__t_sector_hit_rate.pct": "l2_hit_rate_pct",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio": "global_load_sectors_per_request",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio": "global_store_sectors_per_request",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": "shared_bank_conflicts",
    "smsp__inst_executed.sum": "instructions_executed",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "achieved_occupancy_pct",
    "launch__registers_per_thread": "registers_per_thread",
    "launch__occupancy_limit_registers": "occupancy_limit_registers",
    "launch__occupancy_limit_shared_mem": "occupancy_limit_shared_memory",
    "launch__occupancy_limit_warps": "occupancy_limit_warps",
}
"""Nsight Compute's counters and their short names in the records."""
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
    """Nsight Compute counters by short name (see METRICS)."""


@lru_cache(maxsize=1)
def load() -> dict[str, Measured]:
    """Kernel name -> record."""
    rows = json.loads(FILE.read_text())["kernels"]
    return {name: Measured(row["cold_us"], row["warm_us"], row["registers"], row["blocks_per_sm"], row.get("ncu", {}))
            for name, row in rows.items()}
