"""The time model's constants, each with meaning, unit and origin, and how they follow from a device card.

Origins: **documented** (NVIDIA's guides and white papers, or published microbenchmarks of the architecture), **measured** (read
off one measurement on an H200), **fitted** (chosen so that modelled times agree with the development families of
`benchmarks/model` on an H200). Other devices: documented quantities are taken from their card, fitted ones are scaled as each
comment says; nothing was fitted on them.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.types import DeviceSpec

CLOCK_HZ = 1.98e9
"""Multiprocessor clock at which the latencies below were fitted (H200 under load; measured)."""
SCHEDULERS = 4
"""Schedulers (quarters) of a multiprocessor (documented, Volta to Blackwell)."""
CARVEOUTS_KIB = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
"""Shared-memory sizes that the driver may choose (documented; the ones a device lacks are above its limit)."""


@dataclass(frozen=True)
class Constants:
    """Cycles are those of the multiprocessor's clock; latencies run from issue to use."""

    l1_latency: float = 42
    """Load that hits L1, cycles (fitted; documented: about 33)."""
    l1_line_latency: float = 3.4
    """Added to it for each further 128-byte line of the request, cycles (fitted: one thread a row)."""
    l2_latency: float = 250
    """Load that hits L2, cycles (fitted; published: 200 to 290)."""
    dram_latency: float = 480
    """Load served by an idle DRAM, cycles (measured: one warp a scheduler that waits for every four loads)."""
    dram_queue_latency: float = 630
    """What is added when DRAM is fully busy, cycles (fitted)."""
    shared_latency: float = 23
    """Shared-memory load, cycles (fitted; published: 23 to 30)."""
    barrier_latency: float = 15
    """From the last warp's arrival at a barrier until the others go on, cycles (fitted)."""
    shared_atomic_latency: float = 20
    """Shared integer atomic, for each lane on the same word, cycles (published: native, about 20)."""
    shared_cas_latency: float = 60
    """Shared float atomic, for each lane on the same word: a compare-and-swap loop, cycles (estimated)."""

    block_turnaround: float = 375
    """From a block's end to its successor's first instruction, cycles (fitted)."""
    block_interval: float = 157
    """A multiprocessor starts one block in this many cycles (measured: blocks of 32 to 128 threads)..."""
    block_interval_per_warp: float = 1
    """... plus this for each warp (measured likewise)."""
    warp_interval: float = 20
    """From one warp of a block to the next, cycles (fitted)."""
    results_per_register: float = 2
    """Results that ptxas can have in flight for each free register; most are used up at once (fitted)."""

    l1_request: float = 1
    """Data-pipe cycles of a global request (documented: 128 bytes a cycle)."""
    l1_line: float = 1
    """Data-pipe cycles for each further 128-byte line (measured: strided loads)."""
    shared_wavefront: float = 1
    """Data-pipe cycles of a shared-memory wavefront (documented)."""
    shared_atomic_lane: float = 2
    """Data-pipe cycles for each lane of a shared atomic on the same word (estimated)."""
    atomic_lane: float = 0.25
    """L2-port cycles for each lane of a global atomic (estimated)."""
    l2_port_bytes_per_cycle: float = 64
    """A multiprocessor's port to L2 (documented)."""

    hopper_mma_sync: float = 0.54
    """Share of the dense tensor-core rate that mma.sync reaches on Hopper (fitted; published: 0.6)."""

    partial_store: float = 2.25
    """L2 work of a store to part of a 32-byte sector, in full sectors (fitted)."""
    atomic_sector: float = 2.5
    """L2 work of an atomic, in sectors, for each sector it touches (estimated: read, modify, write)."""
    atomic_integer_ns: float = 0.77
    """Integer atomics on one address, ns each (measured: one atomic a warp on one counter)."""
    atomic_float_ns: float = 1.76
    """Floating-point atomics on one address, ns each (measured)."""
    atomic_sector_ns: float = 3.0
    """Atomics of one warp on several sectors of a line, ns a sector (measured: 256-bin histogram in global memory)."""

    l2_bytes_per_sm_cycle: float = 21.4
    """L2 bandwidth for each multiprocessor and cycle, bytes (fitted: 5.6 TB/s on an H200)."""
    dram_efficiency: float = 0.917
    """DRAM bandwidth that streaming kernels reach, of the datasheet's (fitted: 4.4 of 4.8 TB/s)."""
    page_miss: float = 0.06
    """DRAM work added for each unused granule of a touched page, in granules (measured: random 4-byte reads)."""
    partial_write: float = 5
    """DRAM work of writing a granule back that was not written whole, in granules (measured: random 4-byte writes)."""
    l2_reuse: float = 0.35
    """Share of L2 that one buffer's reuse can count on: both halves keep copies, other traffic passes through (measured:
    random reads of a 64 MB array)."""
    l2_dirty: float = 0.525
    """Share of L2 that holds others' dirty lines at a cold start (measured: cold minus warm times)."""
    l2_keeps: float = 0.32
    """Share of L2 in which a kernel's last writes stay (measured: DRAM bytes below the bytes written)."""

    launch_us: float = 2.2
    """Launch and drain of a kernel, us (fitted; an empty kernel measures 3.4)."""
    bandwidth_norm: float = 8
    """p of the p-norm that joins L2 and DRAM (fitted)."""
    term_norm: float = 2
    """p of the p-norm that joins multiprocessor, bandwidth and atomics (fitted)."""


H200_FITTED = Constants()


@dataclass(frozen=True)
class Rates:
    """What the model needs of one device, derived from its card and the constants."""

    device: DeviceSpec
    constants: Constants

    @property
    def warps(self) -> int:
        """Resident warps a multiprocessor."""
        return self.device.max_threads_per_sm // 32

    @property
    def fma_cycles(self) -> float:
        """Cycles of a quarter's FMA pipe for one warp instruction: 1 with 128 lanes a multiprocessor, 2 with 64."""
        device = self.device
        lanes = device.fp32_flops_per_s / (2 * device.sm_count * device.sm_clock_hz)
        return min(4.0, max(1.0, round(128 / max(1.0, lanes))))

    @property
    def mma_flops_per_cycle(self) -> float:
        """Tensor-core operations of one quarter and cycle by mma.sync, half precision.

        From the card's dense rate; Hopper reaches the whole of it only with wgmma. Without tensor cores: the FMA rate.
        """
        device = self.device
        if device.fp16_flops_per_s is None:
            return 64 / self.fma_cycles
        share = self.constants.hopper_mma_sync if device.compute_capability[0] == 9 else 1.0
        return share * device.fp16_flops_per_s / (device.sm_count * device.sm_clock_hz * SCHEDULERS)

    @property
    def clock_ratio(self) -> float:
        """This device's clock over the fitted one: DRAM latency is constant in time, not in cycles."""
        return self.device.sm_clock_hz / CLOCK_HZ

    @property
    def dram_bytes_per_s(self) -> float:
        """DRAM bandwidth that streaming kernels reach: of the datasheet's, or just above a measured copy's."""
        if self.device.measured_dram_bytes_per_s is not None:
            return max(self.device.measured_dram_bytes_per_s, self.constants.dram_efficiency * self.device.dram_bytes_per_s)
        return self.constants.dram_efficiency * self.device.dram_bytes_per_s

    @property
    def l2_bytes_per_s(self) -> float:
        """L2 bandwidth, scaled by multiprocessors and clock."""
        return self.constants.l2_bytes_per_sm_cycle * self.device.sm_count * self.device.sm_clock_hz

    def l1_bytes(self, shared_bytes: int) -> int:
        """L1 cache that the driver leaves when the resident blocks use `shared_bytes`."""
        largest = self.device.shared_bytes_per_sm
        carveout = next((kib * 1024 for kib in CARVEOUTS_KIB if shared_bytes <= kib * 1024 <= largest), largest)
        return max(16 * 1024, self.device.l1_shared_bytes_per_sm - carveout)
