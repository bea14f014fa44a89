"""Features of the machine that a kernel's text uses beyond plain loads, stores and arithmetic, and what the host side does."""

from __future__ import annotations

import ast
import re

from kernelskill.facts.c_expressions import evaluate
from kernelskill.facts.global_access import Access, GlobalAccesses
from kernelskill.facts.kernel_scope import KernelScope
from kernelskill.facts.table import FactTable

_WORD = re.compile(r"[A-Za-z_]\w*")
_MODULO = re.compile(r"(?<!%)%=?\s*(\(|[\w.]+)")
_CONSTANT_ARRAY = re.compile(r"__constant__\s+(?:const\s+)?(?:\w+\s+)*?(\w+)\s*(?:\[|=|;)")
_NAMED_BARRIER = re.compile(r"\bbar(?:rier)?\.(?:sync|arrive)(?:\.aligned)?\s+(?:%\d+|[1-9]\d*)\s*,")
IN_TEXT = {
    "uses_texture": re.compile(r"\b(?:tex[123]D(?:fetch|Lod|Layered|gather)?|surf[123]Dread)\s*[<(]"),
    "uses_cache_hints": re.compile(r"\b__(?:ldcs|ldcg|ldlu|ldcv|stcs|stcg|stwt)\s*\("),
    "uses_prefetch": re.compile(r"\b__builtin_prefetch\s*\("),
    "uses_warp_vote": re.compile(r"\b__(?:ballot|any|all|match_any|match_all)_sync\s*\(|\b__activemask\s*\("),
    "uses_grid_sync": re.compile(r"\bthis_grid\s*\(|\bgrid_group\b"),
    "uses_clusters": re.compile(r"\bthis_cluster\s*\(|\bcluster_group\b"),
    "uses_bulk_copy": re.compile(r"\bmemcpy_async_tx\s*\(|\bcp_async_bulk\w*\s*\("),
    "uses_mbarrier": re.compile(r"\bcuda::barrier\s*<|\bmbarrier_\w+\s*\("),
}
"""Fact -> what shows it in the masked text."""
IN_PTX = {
    "uses_cache_hints": re.compile(r"\bcreatepolicy\.|\bL[12]::(?:evict|no_allocate|cache_hint)|\b(?:ld|st)\.global\.c[sg]\b"),
    "uses_prefetch": re.compile(r"\bprefetch\.(?:global|L[12])|\bL2::(?:64|128|256)B\b"),
    "uses_clusters": re.compile(r"\bbarrier\.cluster\.|\bmapa\."),
    "uses_bulk_copy": re.compile(r"\bcp\.async\.bulk\b"),
    "uses_mbarrier": re.compile(rf"\bmbarrier\.|{_NAMED_BARRIER.pattern}"),
    "uses_wgmma": re.compile(r"\bwgmma\."),
    "uses_dependent_launch": re.compile(r"\bgriddepcontrol\."),
}
"""Fact -> what shows it in inline PTX."""
IN_SIGNATURE = {"uses_launch_bounds": r"__(?:launch_bounds|maxnreg)__", "uses_clusters": r"__cluster_dims__"}
_DEPENDENT_CALL = re.compile(r"\bcuda(?:GridDependencySynchronize|TriggerProgrammaticLaunchCompletion)\s*\(")
_GRAPH = {"begin_capture", "end_capture", "CUDAGraph", "make_graphed_callables", "graph_launch"}
_STREAMS = {"Stream", "ExternalStream"}
_CACHES = {"lru_cache", "cache", "cached_property"}


def add_hardware_features(table: FactTable, scope: KernelScope, accesses: GlobalAccesses) -> None:
    """Facts of the kernel's text: memory paths, votes, clusters, barriers, index arithmetic."""
    found = {name for name, pattern in IN_TEXT.items() if pattern.search(scope.written)}
    found |= {name for name, pattern in IN_PTX.items() if pattern.search(scope.inline_ptx)}
    found |= {name for name, word in IN_SIGNATURE.items() if _carries(scope, word)}
    if _DEPENDENT_CALL.search(scope.written):
        found.add("uses_dependent_launch")
    for name in (*IN_TEXT, *IN_PTX, *IN_SIGNATURE):
        table.add(name, name in found, "source")
    table.add("uses_constant_memory", _reads_constants(scope), "source")
    divisors = _MODULO.findall(scope.written)
    table.add("modulo_operations", sum(not _is_power_of_two(scope, divisor) for divisor in divisors), "source")
    table.add("indirect_access", any(_is_indirect(scope, accesses, access) for access in accesses.all), "source")


def _is_power_of_two(scope: KernelScope, divisor: str) -> bool:
    """Whether the compiler sees a constant power of two, for which `%` is a mask."""
    value = evaluate(divisor, scope.constants.get)
    return value is not None and value > 0 and value & (value - 1) == 0


def add_host_features(table: FactTable, source: str) -> None:
    """Facts of the Python side: streams, graphs, results kept between calls. `source` is a Python module."""
    names = [_called(node) for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.Call, ast.FunctionDef))]
    called = {name for group in names for name in group}
    table.add("source_streams", sum(bool(_STREAMS & set(group)) for group in names), "source")
    table.add("uses_graph", bool(_GRAPH & called), "source")
    table.add("keeps_results", bool(_CACHES & called) or _fills_a_module_dictionary(source), "source")


def _called(node: ast.Call | ast.FunctionDef) -> list[str]:
    """Last names of what the node calls, or of a function's decorators."""
    nodes = node.decorator_list if isinstance(node, ast.FunctionDef) else [node.func]
    plain = [n.func if isinstance(n, ast.Call) else n for n in nodes]
    return [n.attr if isinstance(n, ast.Attribute) else n.id for n in plain if isinstance(n, (ast.Attribute, ast.Name))]


def _fills_a_module_dictionary(source: str) -> bool:
    """Whether a function stores into a dictionary that the module starts empty."""
    module = ast.parse(source)
    empty = {t.id for n in module.body if isinstance(n, (ast.Assign, ast.AnnAssign)) and isinstance(n.value, ast.Dict)
             and not n.value.keys for t in (n.targets if isinstance(n, ast.Assign) else [n.target]) if isinstance(t, ast.Name)}
    return any(isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name)
               and n.value.id in empty for n in ast.walk(module))


def _carries(scope: KernelScope, attribute: str) -> bool:
    """Whether the kernel's signature has the attribute."""
    name = re.escape(scope.kernel.name)
    return bool(re.search(rf"{attribute}\s*\([^()]*\)\s*(?:\w+(?:\([^()]*\))?\s+)*{name}\s*\(", scope.cuda.masked))


def _reads_constants(scope: KernelScope) -> bool:
    arrays = set(_CONSTANT_ARRAY.findall(scope.cuda.masked))
    return bool(arrays & set(_WORD.findall(scope.written)))


def _is_indirect(scope: KernelScope, accesses: GlobalAccesses, access: Access) -> bool:
    """Whether the index holds a value loaded from global memory, directly or by one local variable."""
    loaded = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, accesses.pointers))})\s*\[")
    if loaded.search(access.index):
        return True
    sources = (scope.declared(word, access.start) for word in set(_WORD.findall(access.index)))
    return any(d is not None and not d.is_pointer and not d.is_float and loaded.search(d.value) for d in sources)
