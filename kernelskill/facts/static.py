"""The feature extractor: what a solution's source shows, without compiling or running it."""

from __future__ import annotations

from evaluator.types import LaunchRecord
from kernelskill.facts.access_features import add_access_features
from kernelskill.facts.global_access import GlobalAccesses
from kernelskill.facts.hardware_features import add_hardware_features, add_host_features
from kernelskill.facts.kernel_scope import KernelScope
from kernelskill.facts.memory_features import add_memory_features
from kernelskill.facts.reduction_features import add_reduction_features
from kernelskill.facts.solution_source import read_solution
from kernelskill.facts.table import FactTable
from kernelskill.tasks.cuda_text import CudaText


def solution_kernels(source: str) -> list[str]:
    """Names of the `__global__` functions in the solution's CUDA text; [] when it is not Python."""
    solution = read_solution(source)
    return list(CudaText(solution.cuda).kernels) if solution else []


def add_source_facts(table: FactTable, source: str, kernel: str, launch: LaunchRecord | None, family: str) -> None:
    """Facts of the solution's source: of the module, and of the target `kernel` ("" when it is not known).

    What the scanner cannot decide is left out.
    """
    solution = read_solution(source)
    if solution is None:
        return
    cuda = CudaText(solution.cuda)
    table.add("source_kernels", len(cuda.kernels), "source")
    table.add("library_calls", solution.library_calls, "source")
    add_host_features(table, source)
    if table.value("block_threads") is None:
        table.add("block_threads", solution.block_threads, "source")
    if kernel.split("<", 1)[0].strip() in cuda.kernels:
        block = launch.block if launch else (solution.block_threads, 1, 1) if solution.block_threads else None
        add_kernel_features(table, cuda, kernel, solution.options, block, family)


def add_kernel_features(table: FactTable, cuda: CudaText, kernel: str, options: tuple[str, ...] = (),
                        block: tuple[int, int, int] | None = None, family: str = "") -> None:
    """Facts of one kernel's text; `kernel` may carry template arguments, `block` is the launched shape where known."""
    scope = KernelScope(cuda, kernel)
    accesses = GlobalAccesses(scope)
    add_memory_features(table, scope)
    add_access_features(table, scope, accesses, options, block)
    add_reduction_features(table, scope, accesses, block, family)
    add_hardware_features(table, scope, accesses)
