"""Facts from Nsight Compute: metrics become the fact that names them, or is computed from them, in the vocabulary.

The estimated speedup of one of NVIDIA's own rules becomes `nsight_<rule>_speedup_pct`. `evaluator.ncu` runs the tool and
reads its pages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from evaluator.launches import base_name
from evaluator.types import KernelProfile, LaunchRecord
from kernelskill.facts.table import FactTable
from kernelskill.vocabulary import VOCABULARY, lookup

Metrics = Mapping[str, float]
BY_METRIC = {spec.ncu: name for name, spec in VOCABULARY.items() if spec.ncu and "ncu" in spec.sources}
"""Nsight Compute metric -> fact of one kernel."""
SHARED_WAVEFRONTS, SHARED_IDEAL = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
"""Counted instruction by instruction; `l1tex__data_pipe_lsu_wavefronts_mem_shared` counts without shared memory too."""
SUMS = {
    "shared_requests": ("sass__inst_executed_shared_loads", "sass__inst_executed_shared_stores"),
    "local_requests": ("sass__inst_executed_local_loads", "sass__inst_executed_local_stores"),
    "shared_bytes_per_block": ("launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic"),
}
"""Fact -> metrics that add up to it (`launch__shared_mem_per_block` has what the driver takes in it)."""
BRANCHES = "smsp__sass_branch_targets.sum"
DIVERGENT_BRANCHES = "smsp__sass_branch_targets_threads_divergent.sum"
DRAM_BYTES = "dram__bytes.sum"
L2_SECTORS = "lts__t_sectors_srcunit_tex.sum"
THREAD_INSTRUCTIONS = "smsp__thread_inst_executed.sum"
SECTOR_BYTES = 32
COUNTERS = (*BY_METRIC, BRANCHES, DIVERGENT_BRANCHES, L2_SECTORS, THREAD_INSTRUCTIONS)
"""What the evaluator is asked to read beside Nsight Compute's full set."""
OCCUPANCY_LIMITS = {"warps": "launch__occupancy_limit_warps", "registers": "launch__occupancy_limit_registers",
                    "shared_memory": "launch__occupancy_limit_shared_mem", "blocks": "launch__occupancy_limit_blocks"}
"""Of equal limits the first counts, as in `evaluator.simulator.occupancy`."""
WEIGHTED = ("sm_throughput_pct", "dram_throughput_pct", "l2_throughput_pct")
"""Facts of a kernel that are also given for the whole solution, weighted by time."""
SOL_RULE = "SOLBottleneck"
_UNIT_NAMED = re.compile(r"identify the (DRAM|L2|L1)\b|analyzing (DRAM|L2|L1)\b")
_SOL_TEXTS = (("Compute is more heavily", "compute"), ("well-balanced", "balanced"), ("latency issues", "latency"),
              ("grid is too small", "latency"))


def bottleneck(profile: KernelProfile) -> str:
    """What SOLBottleneck names: dram, l2, l1, compute, latency, balanced; "" where it is missing or names nothing."""
    text = next((rule.description for rule in profile.rules if rule.rule == SOL_RULE), "")
    unit = _UNIT_NAMED.search(text)
    if unit:
        return (unit[1] or unit[2]).lower()
    return next((word for phrase, word in _SOL_TEXTS if phrase in text), "")


def profile_of(launch: LaunchRecord, profiles: Iterable[KernelProfile]) -> KernelProfile | None:
    """The counters of the launch: same kernel, same shape."""
    return next((p for p in profiles if base_name(p.kernel) == base_name(launch.kernel)
                 and (p.grid, p.block) == (launch.grid, launch.block)), None)


def rule_fact(rule: str) -> str:
    """The fact that holds the rule's estimate, e.g. `nsight_cpi_stall_speedup_pct` for CPIStall."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", rule)
    return f"nsight_{words.lower()}_speedup_pct"


def add_nsight_facts(table: FactTable, profile: KernelProfile) -> None:
    """Facts of the launch; a metric, rule or value that the vocabulary does not know adds nothing."""
    for metric, name in BY_METRIC.items():
        value = profile.metrics.get(metric)
        if value is not None:
            table.add(name, min(value, 100.0) if VOCABULARY[name].unit == "%" else value, "ncu")
    table.add("block_threads", math.prod(profile.block) or None if profile.block else None, "ncu")
    table.add("grid_blocks", math.prod(profile.grid) or None if profile.grid else None, "ncu")
    _add_computed(table, profile.metrics)
    _add_occupancy(table, profile.metrics)
    _add_rules(table, profile)


def add_solution_counters(table: FactTable, launches: Sequence[LaunchRecord], profiles: Sequence[KernelProfile]) -> None:
    """Sums over every launch of the call, each only where every launch has counters. Needs the task facts in `table`."""
    measured = [profile_of(launch, profiles) for launch in launches]
    known = [profile.metrics for profile in measured if profile is not None]
    if not known or len(known) < len(measured):
        return
    moved, outputs = table.number("task_bytes"), table.number("task_output_elements")
    if moved:
        _add_sum(table, "dram_traffic_ratio", known, lambda m: m[DRAM_BYTES], moved)
        _add_sum(table, "l2_traffic_ratio", known, lambda m: SECTOR_BYTES * m[L2_SECTORS], moved)
    if outputs:
        _add_sum(table, "instructions_per_output", known, lambda m: m[THREAD_INSTRUCTIONS], outputs)
    times = [launch.time_us for launch in launches if launch.time_us is not None]
    if len(times) == len(known) and sum(times) > 0:
        for name in WEIGHTED:
            values = [metrics.get(VOCABULARY[name].ncu) for metrics in known]
            if None not in values:
                mean = sum(t * (v or 0.0) for t, v in zip(times, values, strict=True)) / sum(times)
                table.add(f"solution_{name}", min(mean, 100.0), "ncu")


def _add_sum(table: FactTable, name: str, known: Sequence[Metrics], part: Callable[[Metrics], float], over: float) -> None:
    try:
        table.add(name, sum(part(metrics) for metrics in known) / over, "ncu")
    except KeyError:
        return


def _add_computed(table: FactTable, metrics: Metrics) -> None:
    wavefronts, ideal = metrics.get(SHARED_WAVEFRONTS), metrics.get(SHARED_IDEAL)
    if wavefronts and ideal:
        table.add("shared_wavefronts_ratio", wavefronts / ideal, "ncu")
    branches, divergent = metrics.get(BRANCHES), metrics.get(DIVERGENT_BRANCHES)
    if branches and divergent is not None:
        table.add("divergent_branch_pct", min(100.0, 100.0 * divergent / branches), "ncu")
    for name, parts in SUMS.items():
        known = [metrics[part] for part in parts if part in metrics]
        table.add(name, sum(known) if len(known) == len(parts) else None, "ncu")


def _add_occupancy(table: FactTable, metrics: Metrics) -> None:
    limits = {name: metrics[metric] for name, metric in OCCUPANCY_LIMITS.items() if metric in metrics}
    if limits:
        limiter = min(limits, key=lambda name: limits[name])
        table.add("blocks_per_sm", limits[limiter], "ncu")
        if table.value("occupancy_limiter") != "grid":  # the tool does not name a grid that is too small
            table.add("occupancy_limiter", limiter, "ncu")


def _add_rules(table: FactTable, profile: KernelProfile) -> None:
    estimates: dict[str, float] = {}
    for rule in profile.rules:
        name = rule_fact(rule.rule)
        if rule.speedup_pct is not None and name in VOCABULARY:
            estimates[name] = max(rule.speedup_pct, estimates.get(name, 0.0))
    for name, value in estimates.items():
        table.add(name, min(value, 100.0), "ncu")
    table.add("nsight_bottleneck", bottleneck(profile) or None, "ncu")


def unknown_rules(profiles: Iterable[KernelProfile]) -> set[str]:
    """Rules with an estimate for which the vocabulary has no fact."""
    return {rule.rule for profile in profiles for rule in profile.rules
            if rule.speedup_pct is not None and lookup(rule_fact(rule.rule)) is None}
