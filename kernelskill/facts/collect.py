"""`collect`: every fact of one solution that was measured, counted, modelled, compiled or read; nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.types import DeviceSpec, Evaluation, KernelResources, LaunchRecord
from kernelskill.facts.profile import add_profile_facts, target_launch
from kernelskill.facts.resources import add_resource_facts
from kernelskill.facts.static import add_source_facts, solution_kernels
from kernelskill.facts.table import FactTable
from kernelskill.facts.task import add_speed_of_light, add_task_facts
from kernelskill.model import Fact, Task


def collect(task: Task, source: str, evaluation: Evaluation, device: DeviceSpec) -> Mapping[str, Fact]:
    """Facts of the solution `source` of `task` after `evaluation` on `device`, by name.

    Kernel facts describe the target kernel: the one with the largest share of the time; without launches, the
    solution's only kernel. What is unknown has no entry. Raises FactError when a source contradicts the vocabulary.
    """
    table = FactTable()
    add_task_facts(table, task, evaluation)
    add_device_facts(table, device)
    launch = target_launch(evaluation.launches)
    kernel = _target_kernel(source, launch)
    resources = _resources(evaluation, kernel)
    if resources is not None:
        add_resource_facts(table, resources)
    table.add("precision_class", evaluation.precision_class, "verification")
    table.add("precision_error_ratio", evaluation.precision_ratio, "verification")
    add_profile_facts(table, evaluation, launch, device, resources)
    add_speed_of_light(table, task, device)
    add_source_facts(table, source, kernel, launch, task.family)
    return table.facts()


def add_device_facts(table: FactTable, device: DeviceSpec) -> None:
    """The figures of the device card."""
    major, minor = device.compute_capability
    table.add("device_name", device.name, "device_card")
    table.add("device_sm", 10 * major + minor, "device_card")
    table.add("device_sm_count", device.sm_count, "device_card")
    table.add("device_dram_bandwidth", device.dram_bytes_per_s, "device_card")
    table.add("device_fp32_rate", device.fp32_flops_per_s, "device_card")
    table.add("device_l2_bytes", device.l2_bytes, "device_card")
    table.add("device_shared_bytes_per_block", device.shared_bytes_per_block, "device_card")
    table.add("device_shared_bytes_per_sm", device.shared_bytes_per_sm, "device_card")
    table.add("device_registers_per_sm", device.registers_per_sm, "device_card")
    table.add("device_max_threads_per_sm", device.max_threads_per_sm, "device_card")


def _target_kernel(source: str, launch: LaunchRecord | None) -> str:
    """The target's name as launched; "" when there were no launches and the source does not decide."""
    if launch is not None:
        return launch.kernel
    kernels = solution_kernels(source)
    return kernels[0] if len(kernels) == 1 else ""


def _resources(evaluation: Evaluation, kernel: str) -> KernelResources | None:
    """The compiler's report of the kernel, matched by full name, else by the name before template arguments."""
    by_name = {r.kernel: r for r in evaluation.resources}
    if kernel in by_name:
        return by_name[kernel]
    same = [r for r in evaluation.resources if _base(r.kernel) == _base(kernel)]
    return same[0] if kernel and len(same) == 1 else None


def _base(kernel: str) -> str:
    return kernel.split("<", 1)[0].strip()
