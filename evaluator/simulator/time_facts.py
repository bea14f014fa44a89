"""The vocabulary's facts of one modelled launch, scaled from the sampled blocks to the whole grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from evaluator.simulator.constants import Rates
from evaluator.types import KernelResources

if TYPE_CHECKING:
    from evaluator.simulator.time_model import Sample


WHOLE_DEVICE = ("sm", "l2", "dram", "atomics", "launch", "library")
"""Terms that bound a launch side by side; all others are parts of `sm`. `library`: all of a library operator's kernel."""


def limiter(terms: Mapping[str, float]) -> str | None:
    """The dominating term; where that is the multiprocessor as a whole, the largest of its parts. None without any term.

    Two steps, because a part (a pipe's busy time, waiting, the imbalance) lies within `sm` and overlaps its other parts:
    compared with l2 or dram at once, a multiprocessor that is busy with several things would lose to a smaller single term.
    """
    whole = {name: time for name, time in terms.items() if name in WHOLE_DEVICE}
    parts = {name: time for name, time in terms.items() if name not in WHOLE_DEVICE}
    largest = max(whole, key=lambda name: whole[name], default=None)
    return max(parts, key=lambda name: parts[name]) if largest == "sm" and parts else largest


def facts(sample: Sample, rates: Rates, terms: Mapping[str, float], time_us: float, dram_bytes: float,
          resources: KernelResources) -> dict[str, float]:
    """Fact name (kernelskill/vocabulary.py) -> value. What has no meaning for the launch (a share of nothing) is left out."""
    scale = sample.grid_blocks / sample.timed.blocks
    totals = {name: value * scale for name, value in sample.timed.totals.items()}
    known = {
        **_times(terms, time_us, dram_bytes, rates),
        **_global_memory(totals, dram_bytes),
        **_shared_memory(totals),
        **_execution(totals, resources),
        **_residency(sample, rates),
    }
    return {name: float(value) for name, value in known.items() if value is not None}


def _percent(part: float, whole: float) -> float | None:
    """None where there is no whole; never above 100."""
    return min(100.0, 100 * part / whole) if whole > 0 else None


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _times(terms: Mapping[str, float], time_us: float, dram_bytes: float, rates: Rates) -> dict[str, float | None]:
    pipes = ("issue", "fma", "alu", "xu", "tensor")
    return {
        "kernel_time_us": time_us,
        "sm_throughput_pct": _percent(max(terms[pipe] for pipe in pipes), time_us),
        "dram_throughput_pct": _percent(dram_bytes / rates.device.dram_bytes_per_s * 1e6, time_us),
        "l1_throughput_pct": _percent(terms["l1"] + terms["shared"], time_us),
        "l2_throughput_pct": _percent(terms["l2"], time_us),
        "shared_throughput_pct": _percent(terms["shared"], time_us),
        "issue_active_pct": _percent(terms["issue"], terms["sm"]),
        **{f"{pipe}_pipe_pct": _percent(terms[pipe], terms["sm"]) for pipe in pipes[1:]},
        "atomics_time_pct": _percent(terms["atomics"], time_us),
        "exposed_latency_pct": _percent(terms["latency"], terms["sm"]),
        "tail_pct": _percent(terms["tail"], time_us),
    }


def _global_memory(totals: Mapping[str, float], dram_bytes: float) -> dict[str, float | None]:
    beyond_l1 = totals["l2_sectors"]
    return {
        "global_load_sectors_per_request": _ratio(totals["load_sectors"], totals["load_requests"]),
        "global_store_sectors_per_request": _ratio(totals["store_sectors"], totals["store_requests"]),
        "global_load_efficiency_pct": _percent(totals["load_bytes"], 32 * totals["load_sectors"]),
        "global_store_efficiency_pct": _percent(totals["store_bytes"], 32 * totals["store_sectors"]),
        "global_load_requests": totals["load_requests"],
        "global_store_requests": totals["store_requests"],
        "global_atomic_requests": totals["atomic_requests"],
        "l1_hit_rate_pct": _percent(totals["l1_hits"], totals["l1_sectors"]),
        "l2_hit_rate_pct": _percent(beyond_l1 - totals["l2_misses"], beyond_l1),
        "dram_bytes": dram_bytes,
        "l2_bytes": 32 * beyond_l1,
        "local_requests": totals["local_requests"],
    }


def _shared_memory(totals: Mapping[str, float]) -> dict[str, float | None]:
    return {
        "shared_requests": totals["shared_requests"],
        "shared_bank_conflicts": totals["shared_wavefronts"] - totals["shared_ideal"],
        "shared_wavefronts_ratio": _ratio(totals["shared_wavefronts"], totals["shared_ideal"]),
    }


def _execution(totals: Mapping[str, float], resources: KernelResources) -> dict[str, float | None]:
    # Machine instructions are known through SASS; without it the PTX instructions stand in.
    instructions = totals["issue_slots"] if resources.sass else totals["instructions"]
    return {
        "instructions_executed": instructions,
        "warp_execution_efficiency_pct": _percent(totals["lanes"], 32 * totals["instructions"]),
        "divergent_branch_pct": _percent(totals["divergent_branches"], totals["branches"]),
        "barriers_per_warp": _ratio(totals["barriers"], totals["warps"]),
    }


def _residency(sample: Sample, rates: Rates) -> dict[str, float | None]:
    fits, totals = sample.occupancy, sample.timed.totals
    wave = fits.blocks_per_sm * rates.device.sm_count
    return {
        "theoretical_occupancy_pct": fits.theoretical_pct,
        "achieved_occupancy_pct": _percent(totals["resident_warp_cycles"], rates.warps * totals["cycles"]),
        "blocks_per_sm": float(fits.blocks_per_sm),
        "waves_per_sm": sample.grid_blocks / wave,
    }
