"""What a kernel's text shows of shared memory and barriers."""

from __future__ import annotations

import re

from kernelskill.facts.c_expressions import evaluate
from kernelskill.facts.kernel_scope import KernelScope, SharedArray
from kernelskill.facts.statements import trip_count
from kernelskill.facts.table import FactTable
from kernelskill.tasks.cuda_text import closing

_GROUP = re.compile(r"\b(\w+)\s*=\s*(?:\w+::)*this_thread_block\s*\(\s*\)|\bthread_block\s+(\w+)")
_BARRIER = r"\b__syncthreads(?:_and|_or|_count)?\s*\(|\bthis_thread_block\s*\(\s*\)\s*\.\s*sync\s*\(|\barrive_and_wait\s*\("
_ASYNC_PTX = re.compile(r"\bcp\.async\b")
_ASYNC_CALL = re.compile(r"\b(?:__pipeline_)?memcpy_async\b")
_SMALLEST_TILE_ROW = 8
_BANKS = 32
_MOST_PADDING = 8
_STAGES = range(2, 9)


def add_memory_features(table: FactTable, scope: KernelScope) -> None:
    """Shared-memory and barrier facts of the kernel."""
    arrays = scope.shared_arrays
    barrier = barrier_pattern(scope)
    table.add("uses_shared_memory", bool(arrays), "source")
    table.add("shared_tile_count", len(arrays), "source")
    table.add("shared_tile_padded", _padded(scope, arrays), "source")
    table.add("uses_double_buffer", any(_is_staged(scope, array) for array in arrays), "source")
    table.add("source_barriers", len(barrier.findall(scope.written)), "source")
    table.add("barrier_in_loop", any(barrier.search(scope.text, loop.body_start, loop.end) for loop in scope.loops), "source")
    asynchronous = _ASYNC_PTX.search(scope.inline_ptx) or _ASYNC_CALL.search(scope.written)
    table.add("uses_async_copy", bool(asynchronous), "source")


def barrier_pattern(scope: KernelScope) -> re.Pattern[str]:
    """Matches block-wide barriers, `block.sync()` of a cooperative group of this kernel included."""
    groups = {name for pair in _GROUP.findall(scope.written) for name in pair if name}
    sync = "".join(rf"|\b{g}\s*\.\s*sync\s*\(|\bsync\s*\(\s*{g}\s*\)" for g in sorted(groups))
    return re.compile(_BARRIER + sync)


def _padded(scope: KernelScope, arrays: tuple[SharedArray, ...]) -> bool | None:
    """Whether a tile's inner extent is N + k or odd; None when a tile's extent cannot be read."""
    verdicts = [_inner_is_padded(array.extents[-1], scope) for array in arrays if len(array.extents) >= 2]
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _inner_is_padded(extent: str, scope: KernelScope) -> bool | None:
    if re.search(r"\w\s*\+\s*\w", extent):
        value = evaluate(extent.split("+", 1)[1], scope.constants.get)
        return value != 0
    value = evaluate(extent, scope.constants.get)
    if value is None:
        return None
    beyond = value % _BANKS
    return value >= _SMALLEST_TILE_ROW and (value % 2 == 1 or (value > _BANKS and 0 < beyond <= _MOST_PADDING))


def _is_staged(scope: KernelScope, array: SharedArray) -> bool:
    """Whether the leading extent counts stages: small, and indexed by a variable that no thread index feeds."""
    if len(array.extents) < 2 or evaluate(array.extents[0], scope.constants.get) not in _STAGES:
        return False
    counters = {loop.variable for loop in scope.loops if trip_count(loop, scope.constants.get) is not None}
    for match in re.finditer(rf"(?<![\w.]){array.name}\s*\[", scope.text):
        index = scope.text[match.end() : closing(scope.text, match.end() - 1)]
        words = set(re.findall(r"[A-Za-z_]\w*", index)) - scope.constants.keys()
        declared = re.search(r"__shared__[^;]*$", scope.text[max(0, match.start() - 200) : match.start()])
        if not words or declared or words & counters:
            continue
        if not any(thread_dependent(scope, word, match.start()) for word in words):
            return True
    return False


def thread_dependent(scope: KernelScope, name: str, position: int, depth: int = 0) -> bool:
    """Whether the variable's initialiser goes back to a thread index."""
    if name == "threadIdx":
        return True
    declared = scope.declared(name, position)
    if declared is None or depth > 20:
        return False
    words = re.findall(r"[A-Za-z_]\w*", declared.value)
    return any(thread_dependent(scope, word, declared.start, depth + 1) for word in words if word != name)
