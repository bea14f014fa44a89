"""What of a solution a step changed: its kernels, its launches, or what its host code calls."""

from __future__ import annotations

import ast
import re
from collections import Counter

from evaluator.types import Evaluation
from kernelskill.facts.solution_source import FREE_OF_COMPUTATION, read_solution
from kernelskill.model import Part
from kernelskill.tasks.cuda_text import CudaText

LIBRARIES = ("cupy", "cupyx", "torch")
STEPS = frozenset({"Stream", "Event", "Generator"})
"""Of what computes nothing, what is a step of its own."""
AROUND = frozenset({"contiguous", "clone", "copy", "detach", "view", "get_function", "current_stream", "get_current_stream",
                    "MemoryPointer", "UnownedMemory"})
ALLOCATING = (FREE_OF_COMPUTATION | AROUND) - STEPS
"""Calls that any solution may need around its launches: they are no step of their own."""


def changed_parts(before: str, after: str, was: Evaluation, now: Evaluation) -> frozenset[Part]:
    """The parts in which the solution `after` (evaluated as `now`) differs from `before`; what cannot be read is the same."""
    found: set[Part] = set()
    if _kernels(before) != _kernels(after):
        found.add("kernels")
    if was.launches and now.launches and _launches(was) != _launches(now):
        found.add("launch")
    if _host_calls(after) - _host_calls(before):  # a call less is no new step: its work went into a kernel
        found.add("host")
    return frozenset(found)


def _kernels(source: str) -> str:
    """The CUDA text without comments, layout and the names of functions and files."""
    solution = read_solution(source)
    if solution is None:
        return ""
    bare = re.sub(r"/\*.*?\*/|//[^\n]*", " ", solution.cuda, flags=re.DOTALL)
    for number, name in enumerate(CudaText(solution.cuda).kernels):
        bare = re.sub(rf"\b{re.escape(name)}\b", f"kernel_{number}", bare)
    return re.sub(r"\s*([^\w\s])\s*", r"\1", " ".join(bare.split()))


def _launches(evaluation: Evaluation) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
    return [(launch.grid, launch.block, launch.dynamic_shared_bytes) for launch in evaluation.launches]


def _host_calls(source: str) -> Counter[str]:
    """How often the host code names each function or class of an array library, less what every solution needs."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return Counter()
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names
             if _module(node, alias).split(".")[0] in LIBRARIES}
    return Counter(node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call)
                   and isinstance(node.func, ast.Attribute) and node.func.attr not in ALLOCATING and _root(node.func) in names)


def _module(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    return (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
