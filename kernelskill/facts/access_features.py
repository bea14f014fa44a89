"""What a kernel's text shows of its global accesses and its index space, and features that a word gives away."""

from __future__ import annotations

import re

from kernelskill.facts.global_access import FAR, Access, GlobalAccesses, Kind, Thread
from kernelskill.facts.kernel_scope import KernelScope
from kernelskill.facts.memory_features import thread_dependent
from kernelskill.facts.statements import Branch, find_branches, trip_count
from kernelskill.facts.table import FactTable

_TRANSCENDENTAL = re.compile(
    r"(?<![\w.])(?:__)?(?:exp|exp2|exp10|expm1|log|log2|log10|log1p|sin|cos|tan|sincos|asin|acos|atan|atan2|sinh|cosh|tanh"
    r"|asinh|acosh|atanh|pow|erf|erfc|erfinv|lgamma|tgamma|normcdf|h2?exp|h2?log|h2?tanh|h2?sin|h2?cos)f?\s*\(")
_FAST = re.compile(r"(?<![\w.])__(?:exp|exp10|log|log2|log10|sin|cos|tan|tanh|sincos|pow|fdivide|saturate)f\s*\(")
_FAST_OPTIONS = ("--use_fast_math", "-use_fast_math")
_FAST_PTX = re.compile(r"\b(?:tanh|ex2|lg2|sin|cos|div|rcp|sqrt|rsqrt)\.approx\b")
_UNROLL = re.compile(r"#\s*pragma\s+unroll\b(?![ \t]*\(?\s*[01]\b)")
_VECTOR = re.compile(r"\b(?:make_)?(?:float[24]|double[24]|u?int[24]|u?longlong2|half2|__half2|__nv_bfloat162|uchar4"
                     r"|short[24])\b")
_TENSOR = re.compile(r"\bwmma::|\bmma_sync\b")
_TENSOR_PTX = re.compile(r"\b(?:mma\.sync|wgmma\.mma_async)\b")
_COMPARE = re.compile(r"(?<![<>=])(?:<=|>=|<|>)(?![<>=])")
_RARE_THREADS = re.compile(r"(?:==\s*0\b|!\s*\w+\s*$|<\s*1\b)")
_BLOCK = (32, 8, 1)


def add_access_features(table: FactTable, scope: KernelScope, accesses: GlobalAccesses, options: tuple[str, ...],
                        block: tuple[int, int, int] | None) -> None:
    """Facts of global accesses, index space and instruction kinds of the kernel."""
    pointers = [p for p in scope.kernel.parameters if p.is_pointer]
    table.add("uses_restrict", all(p.is_restrict for p in pointers) if pointers else None, "source")
    types = " ".join(p.type for p in pointers)
    table.add("uses_vector_types", bool(_VECTOR.search(scope.written) or _VECTOR.search(types)), "source")
    table.add("uses_transcendental", bool(_TRANSCENDENTAL.search(scope.written)), "source")
    fast = _FAST.search(scope.written) or _FAST_PTX.search(scope.inline_ptx) or any(o in _FAST_OPTIONS for o in options)
    table.add("uses_fast_math", bool(fast), "source")
    table.add("uses_tensor_cores", bool(_TENSOR.search(scope.written) or _TENSOR_PTX.search(scope.inline_ptx)), "source")
    table.add("has_unroll_pragma", bool(_UNROLL.search(scope.written)), "source")
    table.add("uses_grid_stride_loop", any(_steps_by_grid(scope, loop.step, loop.start) for loop in scope.loops), "source")
    table.add("has_bounds_check", _has_bounds_check(scope), "source")
    table.add("loop_stride_columns", _strided(accesses, block or _BLOCK), "source")
    if table.value("vector_load_bytes") is None:
        table.add("vector_load_bytes", _widest(accesses, "load"), "source")
    if table.value("vector_store_bytes") is None:
        table.add("vector_store_bytes", _widest(accesses, "store"), "source")
    table.add("elements_per_thread", _elements_per_thread(scope, accesses), "source")


def _steps_by_grid(scope: KernelScope, step: str, position: int, depth: int = 0) -> bool:
    """Whether the loop's step goes back to gridDim."""
    if "gridDim" in step:
        return True
    words = re.findall(r"[A-Za-z_]\w*", step.split("=", 1)[1]) if "=" in step else []
    sources = [d for d in (scope.declared(word, position) for word in words) if d is not None]
    return depth < 10 and any(_steps_by_grid(scope, "=" + d.value, d.start, depth + 1) for d in sources)


def _has_bounds_check(scope: KernelScope) -> bool:
    """An `if` or a `?:` compares with a size parameter (or a value made from one)."""
    sizes = {p.name for p in scope.kernel.parameters if not p.is_pointer}
    locals_ = [d for declared in scope.declarations.values() for d in declared]
    for _ in range(3):
        sizes |= {d.name for d in locals_ if not d.is_float and sizes & set(re.findall(r"[A-Za-z_]\w*", d.value))}
    conditions = [branch.condition for branch in find_branches(scope.text)]
    conditions += [m[1] for m in re.finditer(r"[=(,?]\s*([^=;?{},]*?)\?", scope.text)]
    conditions += [d.value for d in locals_ if d.type.endswith("bool")]
    return any(_COMPARE.search(c) and sizes & set(re.findall(r"[A-Za-z_]\w*", c)) for c in conditions)


def _strided(accesses: GlobalAccesses, block: tuple[int, int, int]) -> bool | None:
    """Whether neighbouring threads of an access are a row apart; None when no address can be read."""
    neighbour = (1, 0, 0) if block[0] > 1 else (0, 1, 0) if block[1] > 1 else (0, 0, 1)
    distances = []
    for access in accesses.all:
        here, there = (accesses.address(access, Thread(index, block)) for index in ((0, 0, 0), neighbour))
        if here is not None and there is not None:
            distances.append(abs(there - here))
    return any(distance >= FAR for distance in distances) if distances else None


def _widest(accesses: GlobalAccesses, kind: Kind) -> int | None:
    """Bytes of the widest access; None without one, or where a type is not known."""
    sizes = [access.lane_bytes for access in accesses.all if access.kind == kind]
    known = [size for size in sizes if size is not None]
    return max(known) if known and len(known) == len(sizes) else None


def _elements_per_thread(scope: KernelScope, accesses: GlobalAccesses) -> int | None:
    """Elements that a thread stores, where loops have constant lengths; None where only picked threads store.

    A store in an `else` is another way to do what its `if` does and is not counted; nor is a tail that few threads do.
    """
    branches, total = find_branches(scope.text), 0
    for store in (a for a in accesses.all if a.kind == "store"):
        if any(b.body_end <= store.start < b.else_end for b in branches):
            continue
        if any(b.body_start <= store.start < b.body_end and _picks_threads(scope, b) for b in branches):
            continue
        count = _repetitions(scope, accesses, store)
        if count is None:
            return None
        total += count * store.width
    return total or None


def _picks_threads(scope: KernelScope, branch: Branch) -> bool:
    """Whether the condition lets only few threads in: `threadIdx.x == 0`, `lane == 0`, the first block."""
    if not _RARE_THREADS.search(branch.condition):
        return False
    words = set(re.findall(r"[A-Za-z_]\w*", branch.condition))
    return "blockIdx" in words or any(thread_dependent(scope, word, branch.start) for word in words)


def _repetitions(scope: KernelScope, accesses: GlobalAccesses, store: Access) -> int | None:
    count = 1
    for loop in accesses.enclosing(store):
        trips = trip_count(loop, scope.constants.get)
        if trips is None:
            return None
        count *= trips
    return count
