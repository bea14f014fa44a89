"""Facts from the profiled run: the launches with their counts and times, and the solution's time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from evaluator.simulator.occupancy import occupancy
from evaluator.simulator.time_facts import limiter
from evaluator.types import DeviceSpec, Evaluation, KernelResources, LaunchRecord
from kernelskill.facts.nsight import add_nsight_facts, add_solution_counters, profile_of
from kernelskill.facts.table import FactError, FactTable
from kernelskill.model import Provenance
from kernelskill.vocabulary import lookup

_WARP = 32
_NOT_FACTS = {"l2_bytes"}
"""Counts of a launch that only enter a solution's sums."""
_REASON_CHARACTERS = 300


def target_launch(launches: Sequence[LaunchRecord]) -> LaunchRecord | None:
    """The longest launch of the solution's own kernel with the largest share of time; without times, that with most threads."""
    launches = [launch for launch in launches if not launch.library]
    if not launches:
        return None
    if any(launch.time_us is None for launch in launches):
        return max(launches, key=lambda launch: prod(launch.grid) * prod(launch.block))
    share: dict[str, float] = {}
    for launch in launches:
        share[launch.kernel] = share.get(launch.kernel, 0.0) + (launch.time_us or 0.0)
    kernel = max(share, key=lambda name: share[name])
    return max((la for la in launches if la.kernel == kernel), key=lambda la: la.time_us or 0.0)


def add_profile_facts(table: FactTable, evaluation: Evaluation, target: LaunchRecord | None, device: DeviceSpec,
                      resources: KernelResources | None) -> None:
    """Time of the solution, counts of the target kernel, and sums over all launches. Needs the task facts in `table`."""
    if evaluation.time is not None:
        table.add("time_us", evaluation.time.time_us, _time_provenance(evaluation))
    if evaluation.environment.simulated:
        _add_simulated(table, evaluation, target, device, resources)
    else:
        _add_measured(table, evaluation, target, device, resources)


def _add_simulated(table: FactTable, evaluation: Evaluation, target: LaunchRecord | None, device: DeviceSpec,
                   resources: KernelResources | None) -> None:
    if target is None:
        return
    _add_geometry(table, target, device, resources, "simulated")
    for name in sorted(target.counts.keys() - _NOT_FACTS):
        table.add(name, target.counts[name], count_provenance(name))
    table.add("time_limiter", limiter(target.terms_us), "modelled")
    for name, word in target.text.items():
        table.add(name, word, count_provenance(name))
    table.add("kernel_launches", len(evaluation.launches), "simulated")
    table.add("library_launches", sum(launch.library for launch in evaluation.launches), "simulated")
    _add_times(table, evaluation, target)
    _add_traffic(table, evaluation.launches)


def _add_measured(table: FactTable, evaluation: Evaluation, target: LaunchRecord | None, device: DeviceSpec,
                  resources: KernelResources | None) -> None:
    """On a GPU: the launches, the hardware counters, and CUPTI's times, which win over those of replayed kernels."""
    launches, line = evaluation.launches, evaluation.timeline
    table.add("counters_unavailable", evaluation.unavailable.get("ncu", "")[:_REASON_CHARACTERS] or None, "ncu")
    if target is not None:
        _add_geometry(table, target, device, resources, "launched")
        profile = profile_of(target, evaluation.profiles)
        if profile is not None:
            add_nsight_facts(table, profile)
        add_solution_counters(table, launches, evaluation.profiles)
    if line is None:
        table.add("kernel_launches", len(launches) or None, "launched")
        return
    table.add("kernel_launches", len(launches), "cupti")
    table.add("library_launches", sum(launch.library for launch in launches), "cupti")
    if line.span_us > 0:
        table.add("device_busy_pct", 100.0 * line.busy_us / line.span_us, "cupti")
    table.add("longest_gap_us", line.longest_gap_us, "cupti")
    if evaluation.time is not None and evaluation.time.time_us > 0:
        idle = max(0.0, evaluation.time.time_us - line.busy_us)
        table.add("launch_overhead_pct", 100.0 * idle / evaluation.time.time_us, "cupti")
    _add_shares(table, launches, target)


def _add_shares(table: FactTable, launches: Sequence[LaunchRecord], target: LaunchRecord | None) -> None:
    """Parts of the kernel time, where CUPTI saw every launch."""
    times = [launch.time_us for launch in launches if launch.time_us is not None]
    total = sum(times)
    if len(times) < len(launches) or total <= 0:
        return
    table.add("library_time_share_pct", 100.0 * sum(la.time_us or 0.0 for la in launches if la.library) / total, "cupti")
    if target is not None:
        own = sum(launch.time_us or 0.0 for launch in launches if launch.kernel == target.kernel)
        table.add("kernel_time_us", target.time_us, "cupti")
        table.add("kernel_time_share_pct", 100.0 * own / total, "cupti")


def count_provenance(name: str) -> Provenance:
    """Counts are `simulated`; what depends on time or caches is `modelled`. Raises FactError for what is no fact."""
    spec = lookup(name)
    if spec is None:
        raise FactError(f"the profile counts '{name}', which is no fact", hint="the names are in kernelskill/vocabulary.py")
    return "simulated" if "simulated" in spec.sources else "modelled"


def _time_provenance(evaluation: Evaluation) -> Provenance:
    assert evaluation.time is not None
    return "modelled" if evaluation.time.provenance == "modelled" else "cuda_event"


def _add_geometry(table: FactTable, launch: LaunchRecord, device: DeviceSpec, resources: KernelResources | None,
                  provenance: Provenance) -> None:
    threads, blocks = prod(launch.block), prod(launch.grid)
    table.add("block_threads", threads, provenance)
    table.add("grid_blocks", blocks, provenance)
    table.add("block_warp_remainder", threads % _WARP, provenance)
    if resources is None:
        return
    shared = resources.static_shared_bytes + launch.dynamic_shared_bytes
    table.add("shared_bytes_per_block", shared, provenance)
    resident = occupancy(device, threads, resources.registers, shared, blocks)
    table.add("blocks_per_sm", resident.blocks_per_sm, provenance)
    table.add("theoretical_occupancy_pct", resident.theoretical_pct, provenance)
    table.add("occupancy_limiter", resident.limiter, provenance)
    table.add("waves_per_sm", blocks / (resident.blocks_per_sm * device.sm_count), provenance)


def _add_times(table: FactTable, evaluation: Evaluation, target: LaunchRecord) -> None:
    launches = evaluation.launches
    if target.time_us is None or any(launch.time_us is None for launch in launches):
        return
    table.add("kernel_time_us", target.time_us, "modelled")
    total = sum(launch.time_us or 0.0 for launch in launches)
    own = sum(launch.time_us or 0.0 for launch in launches if launch.kernel == target.kernel)
    if total > 0:
        table.add("kernel_time_share_pct", 100.0 * own / total, "modelled")
        table.add("library_time_share_pct", 100.0 * sum(la.time_us or 0.0 for la in launches if la.library) / total, "modelled")
    overheads = [launch.terms_us["launch"] for launch in launches if "launch" in launch.terms_us]
    if evaluation.time is not None and evaluation.time.time_us > 0 and len(overheads) == len(launches):
        table.add("launch_overhead_pct", min(100.0, 100.0 * sum(overheads) / evaluation.time.time_us), "modelled")


def _add_traffic(table: FactTable, launches: Sequence[LaunchRecord]) -> None:
    """Sums over every launch, each only where every launch knows its part."""
    moved, outputs = table.number("task_bytes"), table.number("task_output_elements")
    dram = _total(launches, lambda c: c["dram_bytes"])
    l2 = _total(launches, lambda c: c["l2_bytes"])
    lanes = _total(launches, lambda c: c["instructions_executed"] * _WARP * c["warp_execution_efficiency_pct"] / 100.0)
    if moved:
        table.add("dram_traffic_ratio", None if dram is None else dram / moved, "modelled")
        table.add("l2_traffic_ratio", None if l2 is None else l2 / moved, "modelled")
    if outputs:
        table.add("instructions_per_output", None if lanes is None else lanes / outputs, "simulated")


def _total(launches: Sequence[LaunchRecord], part: Callable[[Mapping[str, float]], float]) -> float | None:
    try:
        return sum(part(launch.counts) for launch in launches)
    except KeyError:
        return None
