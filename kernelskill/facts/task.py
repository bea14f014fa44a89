"""Facts of the task and its speed of light on the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluator.library import is_allowed
from evaluator.types import DeviceSpec, Evaluation
from kernelskill.facts.table import FactTable
from kernelskill.model import Task
from kernelskill.tasks.dtypes import input_dtype
from kernelskill.tasks.expressions import ExpressionError, parse
from kernelskill.tasks.families import family_flops

FEWER_OPERATIONS = 0.9
"""A time below this part of the bound by operations says that the bound's operations are not needed."""
_REDUCTION_LENGTH = {"row_reduction": "cols", "matmul": "k"}


def add_task_facts(table: FactTable, task: Task, evaluation: Evaluation) -> None:
    """What the task file says, and what the evaluation counted at the full sizes."""
    table.add("task_kind", task.spec.kind, "task")
    table.add("task_family", task.family or None, "task")
    table.add("task_operation", task.operation or _convolution(task, evaluation) or None, "task")
    table.add("task_dtype", input_dtype(Path(task.spec.path), task.spec.kind), "task")
    table.add("task_allows_tf32", "tf32" in task.allow, "task")
    table.add("task_allows_library", _allows_library(task), "task")
    table.add("task_allows_half", bool({"fp16", "bf16"} & task.allow), "task")
    for name, value in evaluation.task_facts.items():
        table.add(name, value, "task")
    table.add("task_flops", _evaluate(task, task.flops or _formula(task)), "task")
    table.add("task_reduction_length", _evaluate(task, task.arguments.get(_REDUCTION_LENGTH.get(task.family, ""))), "task")
    if task.family == "row_reduction":
        table.add("task_row_count", _evaluate(task, task.arguments.get("rows")), "task")
    flops, moved = table.number("task_flops"), table.number("task_bytes")
    if flops is not None and moved:
        table.add("task_arithmetic_intensity", flops / moved, "task")


def _convolution(task: Task, evaluation: Evaluation) -> str:
    """What a task without a known family is about, where that is a convolution."""
    return evaluation.task_operator if not task.family and "conv" in evaluation.task_operator else ""


def _allows_library(task: Task) -> bool:
    allowed = task.spec.allow_library
    return is_allowed("matmul", allowed) if task.family == "matmul" else bool(allowed)


def add_speed_of_light(table: FactTable, task: Task, device: DeviceSpec) -> None:
    """`sol_time_us` from bytes, operations and the device's ceilings, and `headroom` where the time is known.

    Bandwidth is what a copy reaches where somebody measured it, else the datasheet's. Without known operations only
    bytes count: still a bound, a lower one. So it is where the solution beats the operations' bound: it computes the same with
    fewer of them.
    """
    moved, flops = table.number("task_bytes"), table.number("task_flops")
    if moved is None:
        return
    bandwidth = device.measured_dram_bytes_per_s or device.dram_bytes_per_s
    time = table.facts().get("time_us")
    computing = (flops or 0.0) / _peak_rate(table, task, device)
    if time is not None and float(time.value) < FEWER_OPERATIONS * computing * 1e6:
        computing = 0.0
    seconds = max(moved / bandwidth, computing)
    if seconds <= 0:
        return
    table.add("sol_time_us", seconds * 1e6, "task")
    if time is not None:
        table.add("headroom", float(time.value) / (seconds * 1e6), time.provenance)


def _peak_rate(table: FactTable, task: Task, device: DeviceSpec) -> float:
    """The rate the task may use: tensor cores only for products whose inputs or permission allow their precision.

    Of an unknown family all counted operations are those of products and convolutions.
    """
    if task.family in ("matmul", ""):
        if table.value("task_dtype") in ("float16", "bfloat16") and device.fp16_flops_per_s:
            return device.fp16_flops_per_s
        if "tf32" in task.allow and device.tf32_flops_per_s:
            return device.tf32_flops_per_s
    return device.fp32_flops_per_s


def _formula(task: Task) -> str:
    try:
        return family_flops(task.family, task.operation, task.arguments)
    except (KeyError, SyntaxError):
        return ""


def _evaluate(task: Task, expression: Any) -> int | None:
    """Value at the full sizes; None where there is no expression or it uses what is no size."""
    if not isinstance(expression, (int, str)) or expression == "":
        return None
    try:
        return parse(expression, task.spec.sizes).value(task.spec.sizes)
    except ExpressionError:
        return None
