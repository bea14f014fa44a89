"""Fact sets of the measured kernels of benchmarks/model: as an H200 and Nsight Compute saw them, and as the time model does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from math import prod
from pathlib import Path

import numpy as np

from benchmarks.model import measured, modelled
from benchmarks.model.problems import Variant
from benchmarks.model.table import VARIANTS
from benchmarks.policy_corpus.facts import FRESH, FactSet, from_facts
from evaluator.compile import compile_cuda
from evaluator.resources import kernel_resources
from evaluator.simulator.occupancy import occupancy
from evaluator.types import KernelProfile, KernelResources, RuleResult
from kernelskill.facts.collect import add_device_facts
from kernelskill.facts.nsight import add_nsight_facts
from kernelskill.facts.profile import count_provenance
from kernelskill.facts.resources import add_resource_facts
from kernelskill.facts.static import add_kernel_features
from kernelskill.facts.table import FactTable
from kernelskill.model import Provenance
from kernelskill.tasks.cuda_text import CudaText
from kernelskill.vocabulary import lookup

RECORDED = Path(__file__).resolve().parent / "nsight" / "h200_profiles.json"
FAMILIES = {"elementwise": "elementwise", "small_blocks": "elementwise", "transpose": "transpose",
            "row_reduction": "row_reduction", "softmax": "row_reduction", "layernorm": "row_reduction",
            "matmul_fp32": "matmul", "matmul_tensor": "matmul"}
"""Family of the table -> what a task would declare; the others are foreign kernels without a family."""
OPERATIONS = {"row_reduction": "sum", "softmax": "softmax", "layernorm": "layer_norm"}
SCRATCH = ("part", "count")


def profiles() -> dict[str, KernelProfile]:
    """Kernel -> its Nsight Compute profile with NVIDIA's rule results (the first 48 kernels)."""
    rows = json.loads(RECORDED.read_text(encoding="utf-8"))
    return {row["kernel"]: KernelProfile(
        kernel=row["kernel"], block=tuple(row["block"]), grid=tuple(row["grid"]), metrics=row["metrics"],
        rules=tuple(RuleResult(rule=name, description=text, speedup_pct=pct) for name, text, pct in row["rules"]),
    ) for row in rows}


def recorded() -> Iterator[FactSet]:
    """Every kernel with the counters and times of the H200."""
    known, times = profiles(), measured.load()
    for variant in VARIANTS:
        table, record = _static(variant), times[variant.kernel]
        if variant.kernel in known:
            add_nsight_facts(table, known[variant.kernel])
        _add_record(table, record.ncu)
        _add_times(table, variant, record.cold_us, "cuda_event")
        yield from_facts(f"h200/{variant.kernel}", "h200", table.facts())


def simulated() -> Iterator[FactSet]:
    """Every kernel with the counts and times of the time model."""
    for result in modelled.model_all(VARIANTS):
        variant, made = result.variant, result.estimate
        table = _static(variant)
        for name, value in made.counts.items():
            if lookup(name) is not None:
                table.add(name, value, count_provenance(name))
        for name, word in made.text_facts.items():
            table.add(name, word, count_provenance(name))
        table.add("time_limiter", made.limiter, "modelled")
        _add_times(table, variant, made.time_us, "modelled")
        if made.counts.get("dram_bytes"):
            table.add("dram_traffic_ratio", made.counts["dram_bytes"] / _moved(variant), "modelled")
        yield from_facts(f"modelled/{variant.kernel}", "modelled", table.facts())


def _static(variant: Variant) -> FactTable:
    """Task, device, compiler, machine code, source text, launch shape and the empty history."""
    table = FactTable()
    _add_task(table, variant)
    add_device_facts(table, measured.H200)
    resources = _resources(variant)
    add_resource_facts(table, resources)
    threads, blocks = prod(variant.block), prod(variant.grid)
    shared = resources.static_shared_bytes + variant.dynamic_shared
    resident = occupancy(measured.H200, threads, resources.registers, shared, blocks)
    for name, value in (("block_threads", threads), ("grid_blocks", blocks), ("block_warp_remainder", threads % 32),
                        ("shared_bytes_per_block", shared), ("blocks_per_sm", resident.blocks_per_sm),
                        ("theoretical_occupancy_pct", resident.theoretical_pct), ("occupancy_limiter", resident.limiter),
                        ("waves_per_sm", blocks / (resident.blocks_per_sm * measured.H200.sm_count)), ("kernel_launches", 1)):
        table.add(name, value, "simulated")
    text = CudaText(variant.source)
    if variant.kernel in text.kernels:
        add_kernel_features(table, text, variant.kernel, (), variant.block, FAMILIES.get(variant.family, ""))
    for name, value in FRESH.items():
        table.add(name, value, "history")
    return table


def _resources(variant: Variant) -> KernelResources:
    return next(r for r in _file_resources(variant.source) if r.kernel == variant.kernel)


@lru_cache(maxsize=32)
def _file_resources(source: str) -> tuple[KernelResources, ...]:
    return tuple(kernel_resources(compile_cuda(source)))


def _moved(variant: Variant) -> int:
    """Bytes of every input and output once."""
    return sum(prod(a.shape) * np.dtype(a.dtype).itemsize for n, a in variant.problem.arrays.items() if n not in SCRATCH)


def _flops(variant: Variant) -> int:
    sizes = variant.problem.sizes
    if variant.family.startswith("matmul"):
        return 2 * sizes["M"] * sizes["N"] * sizes["K"]
    per_element = {"nbody": 20 * sizes.get("n", 0)}.get(variant.family, 2)
    return per_element * max(prod(a.shape) for a in variant.problem.arrays.values())


def _add_task(table: FactTable, variant: Variant) -> None:
    problem, family = variant.problem, FAMILIES.get(variant.family)
    outputs = [a for n, a in problem.arrays.items() if a.fill == "zero" and n not in SCRATCH]
    dtype = next(a.dtype for a in problem.arrays.values() if a.fill != "zero")
    rows: dict[str, object] = {
        "task_kind": "native", "task_family": family, "task_operation": OPERATIONS.get(variant.family, family),
        "task_dtype": dtype, "task_bytes": _moved(variant), "task_flops": _flops(variant),
        "task_output_elements": sum(prod(a.shape) for a in outputs),
        "task_arithmetic_intensity": _flops(variant) / _moved(variant), "task_allows_tf32": problem.name == "matmul_tf32",
        "task_allows_half": False, "task_allows_library": False}
    if family == "row_reduction":
        rows |= {"task_reduction_length": problem.sizes["cols"], "task_row_count": problem.sizes["rows"]}
    if family == "matmul":
        rows["task_reduction_length"] = problem.sizes["K"]
    for name, value in rows.items():
        table.add(name, value, "task")  # type: ignore[arg-type]


def _add_record(table: FactTable, counters: dict[str, float]) -> None:
    """Counters of measured.json; they carry the facts' names."""
    for name, value in counters.items():
        spec = lookup(name)
        if spec is not None and "ncu" in spec.sources:
            table.add(name, min(value, 100.0) if spec.unit == "%" else value, "ncu")
    if "dram_bytes" in counters:
        table.add("dram_traffic_ratio", counters["dram_bytes"] / float(table.value("task_bytes") or 1), "ncu")


def _add_times(table: FactTable, variant: Variant, time_us: float, provenance: Provenance) -> None:
    device = measured.H200
    rates = {"matmul_half": device.fp16_flops_per_s, "matmul_tf32": device.tf32_flops_per_s}
    rate = rates.get(variant.problem.name) or device.fp32_flops_per_s
    bandwidth = device.measured_dram_bytes_per_s or device.dram_bytes_per_s
    ideal = max(_moved(variant) / bandwidth, _flops(variant) / rate) * 1e6
    table.add("time_us", time_us, provenance)
    table.add("sol_time_us", ideal, "task")
    table.add("headroom", time_us / ideal, provenance)
