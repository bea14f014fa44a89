"""What a kernel's text shows of a reduction: accumulators, how partial results meet, passes over the input."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelskill.facts.c_expressions import evaluate
from kernelskill.facts.global_access import FAR, Access, GlobalAccesses, Thread
from kernelskill.facts.kernel_scope import KernelScope
from kernelskill.facts.memory_features import barrier_pattern
from kernelskill.facts.statements import Loop, find_branches, trip_count
from kernelskill.facts.table import FactTable

_SHUFFLE = re.compile(r"\b__shfl(?:_xor|_down|_up)?_sync\s*\(|\b__reduce_\w+_sync\s*\(|\.\s*shfl(?:_xor|_down|_up)?\s*\("
                      r"|\bcg::reduce\s*\(")
_FOLDING_CALL = re.compile(r"\b(?:f?(?:max|min)f?|__h(?:max|min|fma)\w*|__fmaf?_\w+|fmaf?)\s*\(")
_TENSOR_FOLD = re.compile(r"\bmma_sync\s*\(")
_ATOMIC = re.compile(r"\batomic[A-Z]\w*\s*\(")
_PLACE = r"([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)"
_UPDATE = re.compile(rf"(?<![\w.\]]){_PLACE}(?:\.\w+\s*)?([-+*/|&^]?=)(?!=)\s*([^;]*)")
_EXPONENTIAL = r"(?:__)?exp(?:2|10)?f?\s*\("
_HALVING = re.compile(r"(?:>>=|/=|<<=|\*=)\s*\w+|=\s*\w+\s*(?:>>|/|\*|<<)\s*[12]")
_PROBE = (256, 4, 1)
_NEIGHBOURS = (Thread((0, 0, 0), _PROBE, (2, 1, 1)), Thread((0, 0, 0), _PROBE, (1, 2, 1)), Thread((1, 0, 0), _PROBE),
               Thread((0, 1, 0), _PROBE))
"""The next blocks and threads: they read another row where the kernel gives rows to blocks or threads."""
_OTHER_PLACES = (*_NEIGHBOURS, Thread((255, 3, 0), _PROBE), Thread((0, 0, 0), _PROBE, (900_000, 1, 1)),
                 Thread((0, 0, 0), _PROBE, (1, 60_000, 1)))
"""Also threads far away: they read other data unless it is the same for all, as a bias is."""


@dataclass(frozen=True)
class Accumulation:
    """A statement in a loop that changes a variable declared outside that loop."""

    name: str
    operator: str
    value: str
    position: int


def add_reduction_features(table: FactTable, scope: KernelScope, accesses: GlobalAccesses, block: tuple[int, int, int] | None,
                           family: str) -> None:
    """Reduction facts of the kernel; `block` is the launched block's shape where it is known."""
    shuffles = bool(_SHUFFLE.search(scope.text))
    loop = _has_reduction_loop(scope, accesses)
    style = _style(scope, shuffles, loop)
    table.add("uses_warp_shuffle", shuffles, "source")
    table.add("source_atomics", len(_ATOMIC.findall(scope.written)), "source")
    table.add("reduction_loop", loop, "source")
    table.add("reduction_style", style, "source")
    table.add("uses_online_reduction", any(_is_online(scope, each) for each in scope.loops), "source")
    table.add("register_tile_elements", _register_tile(scope, loop), "source")
    if style == "none" or family in ("elementwise", "transpose"):
        return
    loads = [a for a in accesses.all if a.kind == "load"]
    reads = [a for a in loads if _moves(accesses, a, _OTHER_PLACES)]
    table.add("input_passes", _passes(scope, accesses, reads) if reads else None, "source")
    if family in ("row_reduction", "") and block is not None:
        rows = [a for a in loads if _moves(accesses, a, _NEIGHBOURS)]
        table.add("threads_per_row", _threads_per_row(accesses, rows, block), "source")


def updates(scope: KernelScope, loop: Loop) -> list[Accumulation]:
    """Statements of the loop that change floating-point registers (scalars or local arrays) declared before it."""
    text, found = scope.text, []
    for match in _UPDATE.finditer(text, loop.body_start, loop.end):
        local = scope.declared(match[1], loop.start)
        if local is not None and local.is_float and scope.declared(match[1], match.start()) is local:
            found.append(Accumulation(match[1], match[3], match[4], match.start()))
    return found


def accumulations(scope: KernelScope, loop: Loop) -> list[Accumulation]:
    """The updates that fold a new value into the old one: `s += x`, `m = fmaxf(m, x)`, `s = s * f + x`."""
    return [update for update in updates(scope, loop) if _is_fold(update)]


def _is_fold(update: Accumulation) -> bool:
    if update.operator != "=":
        return update.operator == "+="
    own = re.search(rf"(?<![\w.]){update.name}\b", update.value)
    return bool(own) and ("+" in update.value or bool(_FOLDING_CALL.search(update.value)))


def _has_reduction_loop(scope: KernelScope, accesses: GlobalAccesses) -> bool:
    """A loop of unknown length, or one that reads global memory or a register array, accumulates what is no shuffle."""
    for loop in scope.loops:
        folds = [a for a in accumulations(scope, loop) if not _SHUFFLE.search(a.value)]
        if any(_reads_register_array(scope, fold) for fold in folds):
            return True
        reads = any(a.kind == "load" and loop.body_start <= a.start < loop.end for a in accesses.all)
        open_ended = trip_count(loop, scope.constants.get) is None and not _HALVING.search(loop.step)
        if _TENSOR_FOLD.search(scope.text, loop.body_start, loop.end) or (folds and (reads or open_ended)):
            return True
    return False


def _reads_register_array(scope: KernelScope, fold: Accumulation) -> bool:
    """`sum += cache[j]`: the loop runs over elements that the thread keeps in a local array."""
    declared = [scope.declared(name, fold.position) for name in re.findall(r"([A-Za-z_]\w*)\s*\[", fold.value)]
    return any(d is not None and d.is_float and bool(d.extents) for d in declared)


def _style(scope: KernelScope, shuffles: bool, loop: bool) -> str:
    if shuffles:
        return "warp_shuffle"
    if any(_folds_into_itself(scope.text, array.name) for array in scope.shared_arrays):
        return "shared_tree"
    if _ATOMIC.search(scope.text):
        return "atomic"
    return "serial" if loop else "none"


def _folds_into_itself(text: str, name: str) -> bool:
    """`s[t] += s[t + o]` or `s[t] = max(s[t], s[t + o])`: a tree in shared memory."""
    other = rf"(?<![\w.]){name}\s*\["
    for match in re.finditer(rf"{other}[^\]=;]*\]\s*([-+*]?=)(?!=)\s*([^;]*)", text):
        if len(re.findall(other, match[2])) >= (1 if match[1] != "=" else 2):
            return True
    return False


def _is_online(scope: KernelScope, loop: Loop) -> bool:
    """A running rescale by exp (online softmax), or Welford's running mean."""
    changes = updates(scope, loop)
    rescales = {m[1] for m in re.finditer(rf"\b(\w+)\s*=\s*{_EXPONENTIAL}", scope.text[loop.body_start : loop.end])}
    factor = "|".join([_EXPONENTIAL, *(rf"{name}\b" for name in sorted(rescales))])
    for change in changes:
        if change.operator == "*=" and re.match(factor, change.value):
            return True
        scaled = rf"(?<![\w.]){change.name}\s*\*\s*(?:{factor})|{_EXPONENTIAL}[^;]*\)\s*\*\s*{change.name}\b"
        if re.search(scaled, change.value):
            return True
    return any(_is_welford(change, changes) for change in changes if change.operator == "+=")


def _is_welford(mean: Accumulation, folds: list[Accumulation]) -> bool:
    """`mean += d / n` beside `m2 += d * (x - mean)`."""
    if "/" not in mean.value and "*" not in mean.value:
        return False
    deviation = re.compile(rf"\(\s*[\w.\[\]]+\s*-\s*{mean.name}\s*\)")
    later = [other for other in folds if other.position > mean.position and other.name != mean.name and other.operator == "+="]
    return any(deviation.search(other.value) for other in later)


def _register_tile(scope: KernelScope, reduces: bool) -> int | None:
    """Elements of the largest local array that a loop accumulates into; 1 for a scalar accumulator; None without any."""
    sizes = []
    for loop in scope.loops:
        for fold in accumulations(scope, loop):
            elements, declared = 1, scope.declared(fold.name, loop.start)
            for extent in declared.extents if declared else ():
                value = evaluate(extent, scope.constants.get)
                if value is None:
                    return None
                elements *= value
            sizes.append(elements)
    return max(sizes, default=None) if reduces else None


def _moves(accesses: GlobalAccesses, access: Access, places: tuple[Thread, ...]) -> bool:
    """Whether one of the threads reads far from the first; an address the text does not show counts as such."""
    here = accesses.address(access, Thread((0, 0, 0), _PROBE))
    far = [accesses.address(access, place) for place in places]
    return here is None or any(there is None or abs(there - here) >= FAR for there in far)


def _passes(scope: KernelScope, accesses: GlobalAccesses, loads: list[Access]) -> int:
    """Loops that read the input, each counted once; a tail loop that goes on with the same accumulator is no new pass.

    Loops of constant length count only where no other loop reads: beside one they fill a first tile. Code in an `else` is
    another way to do what its `if` does and is not counted.
    """
    otherwise = [(b.body_end, b.else_end) for b in find_branches(scope.text) if b.else_end > b.body_end]
    taken = [load for load in loads if not any(start <= load.start < end for start, end in otherwise)]
    around = [accesses.enclosing(load) for load in taken]
    open_ended = [[loop for loop in loops if trip_count(loop, scope.constants.get) is None] for loops in around]
    passes: list[Loop] = []
    for loop in [loops[-1] for loops in open_ended if loops] or [loops[0] for loops in around if loops]:
        if loop not in passes and not (passes and _continues(scope, passes[-1], loop)):
            passes.append(loop)
    return max(1, len(passes))


def _continues(scope: KernelScope, before: Loop, loop: Loop) -> bool:
    """Whether `loop` is the tail of `before`: same targets, nothing but declarations between them."""
    between = scope.text[before.end : loop.start]
    if loop.start < before.end or barrier_pattern(scope).search(between) or _SHUFFLE.search(between):
        return False
    targets = _targets(scope, before) & _targets(scope, loop)
    return bool(targets) and not any(re.search(rf"(?<![\w.]){name}\s*(?:\[[^\]]*\]\s*)?=(?!=)", between) for name in targets)


def _targets(scope: KernelScope, loop: Loop) -> set[str]:
    """Accumulators and arrays that the loop writes."""
    body = scope.text[loop.body_start : loop.end]
    stored = {m[1] for m in re.finditer(r"(?<![\w.])([A-Za-z_]\w*)\s*\[[^\]]*\]\s*[-+*]?=(?!=)", body)}
    return stored | {a.name for a in accumulations(scope, loop)}


def _threads_per_row(accesses: GlobalAccesses, loads: list[Access], block: tuple[int, int, int]) -> int | None:
    """Threads from the block's first one on that read the same row, the most over all row loads."""
    counts = [c for c in (_sharing(accesses, load, block) for load in loads) if c is not None]
    return max(counts, default=None)


def _sharing(accesses: GlobalAccesses, load: Access, block: tuple[int, int, int]) -> int | None:
    first = accesses.address(load, Thread((0, 0, 0), block))
    if first is None:
        return None
    threads = block[0] * block[1] * block[2]
    for linear in range(1, threads):
        index = (linear % block[0], linear // block[0] % block[1], linear // (block[0] * block[1]))
        there = accesses.address(load, Thread(index, block))
        if there is None:
            return None
        if abs(there - first) >= FAR:
            return linear
    return threads
