"""Modelled time of one kernel launch, from the interpreter on sampled blocks. Never a measurement.

Two passes run a few blocks of the full-size problem with its real arguments:

1. the sharing pass (`sharing.py`) finds what share of the memory that blocks touch must come from DRAM;
2. the timed pass (`csrc/timing_observer.h`) runs the blocks that one multiprocessor would get, as many at once as fit, with a
   scoreboard for each warp, an L1 cache and pipes of limited throughput. Waiting, barriers, occupancy and waves come out of it;
   there is no separate formula for them.

`combine` adds what all multiprocessors share: L2, DRAM, and atomics that meet on one line.

The constants (`constants.py`) were fitted on an H200 only. On other cards documented quantities are scaled, so rankings there
are less certain and absolute times more so. How well the model agrees with an H200: `benchmarks/model/agreement.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evaluator.simulator.constants import H200_FITTED, SCHEDULERS, Constants, Rates
from evaluator.simulator.costs import describe
from evaluator.simulator.interpreter import Buffer, Module, PreparedLaunch, prepare
from evaluator.simulator.occupancy import RESERVED_SHARED, Occupancy, occupancy
from evaluator.simulator.sharing import GRANULE_BYTES, READ, UPDATE, USES, WRITE, Sharing
from evaluator.simulator.time_facts import facts, limiter
from evaluator.simulator.timed_pass import TimedPass, run_sharing, run_timed
from evaluator.types import DeviceSpec, KernelResources

SAMPLES = 12
"""Blocks whose memory, and whose neighbours', the sharing pass follows."""
BUDGET = 1_500_000
"""Warp instructions after which either pass stops, once it has seen enough."""
GENERATIONS = 8
"""Times that a multiprocessor's resident blocks are replaced in the timed pass, at most."""
LEAST_BLOCKS = 64
"""Blocks that the timed pass runs where the multiprocessor gets so many and the budget allows."""


@dataclass(frozen=True)
class Estimate:
    """What the model says of one launch. Terms are not additive: several overlap, see `combine`."""

    time_us: float
    terms_us: dict[str, float]
    """sm (one multiprocessor's blocks), of which issue, fma, alu, xu, tensor, l1, shared (busy time of each pipe), latency (no
    pipe is the limit: waiting) and tail (blocks do not divide evenly); l2, dram, atomics (all multiprocessors); launch."""
    limiter: str | None
    """The dominating term (`time_facts.limiter`)."""
    counts: dict[str, float]
    """Vocabulary facts of the launch, scaled to the whole grid."""
    text_facts: dict[str, str] = field(default_factory=dict)
    sampled_blocks: int = 0
    blocks_per_sm: int = 1


@dataclass(frozen=True)
class Sample:
    """The two passes' results for one launch: everything that `combine` needs."""

    grid_blocks: int
    threads: int
    occupancy: Occupancy
    sharing: Sharing
    timed: TimedPass
    instructions: int
    """PTX instructions of the kernel's text."""


def estimate(
    module: Module, kernel: str, resources: KernelResources, grid: Sequence[int], block: Sequence[int], packed_args: bytes,
    buffers: Sequence[Buffer], *, dynamic_shared: int = 0, device: DeviceSpec, cold: bool = True,
    constants: Constants = H200_FITTED,
) -> Estimate:
    """Modelled time and counts of one launch.

    `packed_args` and `buffers` as for `interpreter.run`, at full size and with real data (sampled blocks do write to the
    buffers). `cold`: L2 holds other data at the start, partly dirty. Raises `Unsupported` and, for a fatal finding in a sampled
    block, `timed_pass.SampledBlockFailed`.
    """
    launch = prepare(module, kernel, grid, block, packed_args, buffers, dynamic_shared=dynamic_shared, checks=False,
                     sm_count=device.sm_count)
    rates = Rates(device, constants)
    return combine(take_sample(launch, resources, dynamic_shared, rates), resources, rates, cold=cold)


def take_sample(launch: PreparedLaunch, resources: KernelResources, dynamic_shared: int, rates: Rates, *,
                samples: int = SAMPLES, generations: int = GENERATIONS) -> Sample:
    """Runs both passes. Fewer samples and generations cost less and say less."""
    device = rates.device
    blocks, threads = (size[0] * size[1] * size[2] for size in (launch.grid, launch.block))
    shared_bytes = resources.static_shared_bytes + dynamic_shared
    fits = occupancy(device, threads, resources.registers, shared_bytes, blocks)
    capacity = rates.constants.l2_reuse * device.l2_bytes
    sharing = run_sharing(launch, samples, BUDGET, capacity, min(blocks, device.sm_count * fits.blocks_per_sm))
    table = describe(launch.code, resources, rates)
    most = max(LEAST_BLOCKS * generations // GENERATIONS, generations * fits.blocks_per_sm)
    mine = np.arange(0, blocks, device.sm_count, dtype=np.uint64)[:most]
    parameters = sm_parameters(rates, fits.blocks_per_sm * (shared_bytes + RESERVED_SHARED), blocks)
    timed = run_timed(launch, table, mine, fits.blocks_per_sm, parameters, sharing.dram_share, BUDGET)
    return Sample(blocks, threads, fits, sharing, timed, len(launch.code.code))


def sm_parameters(rates: Rates, shared_bytes: int, grid_blocks: int) -> dict[str, float]:
    """Values of the timed pass's parameters (`csrc/timing_types.h`), by name."""
    c = rates.constants
    active = min(rates.device.sm_count, grid_blocks)
    named = {name: float(value) for name, value in vars(c).items()}
    return named | {
        "dram_latency": c.dram_latency * rates.clock_ratio,
        "dram_queue_latency": c.dram_queue_latency * rates.clock_ratio,
        "dram_share_bytes_per_cycle": rates.dram_bytes_per_s / rates.device.sm_clock_hz / active,
        "l1_bytes": float(rates.l1_bytes(shared_bytes)),
        "l2_share_granules": c.l2_reuse * rates.device.l2_bytes / GRANULE_BYTES / active,
        "schedulers": float(SCHEDULERS),
    }


def combine(sample: Sample, resources: KernelResources, rates: Rates, *, cold: bool) -> Estimate:
    """Joins the terms: p-norm of multiprocessor, bandwidth (itself a p-norm of L2 and DRAM) and atomics, plus the launch."""
    c = rates.constants
    sm = multiprocessor_terms(sample, rates)
    traffic = memory_traffic(sample, rates, cold=cold)
    spilled = spill_terms(sample, resources, rates)
    terms = {
        **sm,
        "sm": sm["sm"] + spilled["sm"],
        "l2": traffic.l2_us + spilled["l2"],
        "dram": traffic.dram_us + spilled["dram"],
        "atomics": float((sample.timed.line_ns * sample.sharing.visitors).max(initial=0)) * sample.grid_blocks * 1e-3,
        "launch": c.launch_us,
    }
    bandwidth = p_norm(c.bandwidth_norm, terms["l2"], terms["dram"])
    time_us = p_norm(c.term_norm, terms["sm"], bandwidth, terms["atomics"]) + c.launch_us
    counts = facts(sample, rates, terms, time_us, traffic.dram_bytes, resources)
    return Estimate(time_us, terms, limiter(terms), counts, {"occupancy_limiter": sample.occupancy.limiter},
                    sample.timed.blocks, sample.occupancy.blocks_per_sm)


def p_norm(p: float, *values: float) -> float:
    """p = 1: one after the other; p large: all at the same time."""
    return float(sum(value**p for value in values) ** (1 / p))


def all_blocks_cycles(sample: Sample, rates: Rates) -> float:
    """Cycles that the multiprocessor needs for all its blocks, from the ends of those that were timed."""
    ends, resident = sample.timed.ends, sample.occupancy.blocks_per_sm
    timed, active = len(ends), min(rates.device.sm_count, sample.grid_blocks)
    fullest = -(-sample.grid_blocks // rates.device.sm_count)
    if timed >= fullest:
        return float(ends[-1])
    first = min(resident, timed // 2)
    one_block = (ends[-1] - ends[first - 1]) / (timed - first) if first else ends[-1] / timed
    # With few generations the fullest multiprocessor decides; with many, the load evens out.
    blocks = max(sample.grid_blocks / active, resident) if fullest > 3 * resident else fullest
    return float(ends[-1] + (blocks - timed) * one_block)


def multiprocessor_terms(sample: Sample, rates: Rates) -> dict[str, float]:
    """sm and what it consists of, in us: each pipe's busy time, waiting, and the imbalance between multiprocessors."""
    to_us = 1e6 / rates.device.sm_clock_hz
    sm = all_blocks_cycles(sample, rates) * to_us
    totals = sample.timed.totals
    mean_blocks = sample.grid_blocks / min(rates.device.sm_count, sample.grid_blocks)
    a_share = mean_blocks / sample.timed.blocks * to_us
    busy = {name: totals[f"{name}_cycles"] * a_share for name in ("issue", "fma", "alu", "xu", "tensor", "l1", "shared")}
    fullest = -(-sample.grid_blocks // rates.device.sm_count)
    tail = sm * max(0.0, 1 - sample.grid_blocks / (fullest * rates.device.sm_count))
    limit = max(*busy.values(), busy["l1"] + busy["shared"])  # L1 and shared memory are one data pipe
    return {"sm": sm, **busy, "tail": tail, "latency": max(0.0, sm - tail - limit)}


@dataclass(frozen=True)
class Traffic:
    """L2 and DRAM work of the whole grid."""

    l2_us: float
    dram_us: float
    dram_bytes: float


def memory_traffic(sample: Sample, rates: Rates, *, cold: bool) -> Traffic:
    """L2: sectors, partial stores and atomics dearer. DRAM: granules, scattered and partly written ones dearer.

    An atomic fetches the sector it changes, so what it writes back is whole.
    """
    c, totals = rates.constants, sample.timed.totals
    scale = sample.grid_blocks / sample.timed.blocks
    sectors = totals["l2_sectors"] + (c.partial_store - 1) * totals["partial_store_sectors"]
    sectors += (c.atomic_sector - 1) * totals["atomic_sectors"]
    granules = sample.timed.dram_granules * scale
    use = np.arange(len(granules)) % USES
    scattered = 1 + c.page_miss * (1 / sample.sharing.density - 1)
    written = sample.sharing.partial * c.partial_write + (1 - sample.sharing.partial) * scattered
    work = np.where(use == WRITE, written, np.where(use == UPDATE, 2 * scattered, scattered))
    dram_work = GRANULE_BYTES * float((granules * work).sum())
    # A scattered atomic moves one sector each way, a granule in all; dense ones move whole granules each way.
    moved = GRANULE_BYTES * float((granules * np.where(use == UPDATE, 1 + sample.sharing.density, 1)).sum())
    stored = GRANULE_BYTES * float(sample.sharing.distinct_granules[use != READ].sum())
    # A cold run evicts others' dirty lines unless its own writes stay behind instead.
    evicted = max(0.0, min(c.l2_dirty * rates.device.l2_bytes, moved) - min(stored, moved)) if cold else 0.0
    dram_bytes = max(0.0, moved - min(stored, c.l2_keeps * rates.device.l2_bytes))
    l2_us = sectors * scale * 32 / rates.l2_bytes_per_s * 1e6
    return Traffic(l2_us, (dram_work + evicted) / rates.dram_bytes_per_s * 1e6, dram_bytes)


def spill_terms(sample: Sample, resources: KernelResources, rates: Rates) -> dict[str, float]:
    """Register spills, which PTX does not show: what ptxas reports, as often as the mean instruction runs (estimated)."""
    loads, stores = resources.spill_load_bytes / 4, resources.spill_store_bytes / 4
    if not loads + stores:
        return {"sm": 0.0, "l2": 0.0, "dram": 0.0}
    device, active = rates.device, min(rates.device.sm_count, sample.grid_blocks)
    runs = sample.timed.totals["instructions"] / sample.timed.blocks / max(1, sample.instructions) * sample.grid_blocks
    stack = max(1, resources.stack_bytes * sample.threads * sample.occupancy.blocks_per_sm)
    beyond_l1 = (stores + loads * max(0.0, 1 - device.l1_shared_bytes_per_sm / 2 / stack)) * runs * 128
    beyond_l2 = beyond_l1 * max(0.0, 1 - rates.constants.l2_reuse * device.l2_bytes / (stack * active))
    return {"sm": (loads + stores) * runs / active / device.sm_clock_hz * 1e6, "l2": beyond_l1 / rates.l2_bytes_per_s * 1e6,
            "dram": beyond_l2 / rates.dram_bytes_per_s * 1e6}
