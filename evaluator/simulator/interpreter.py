"""Runs CUDA kernels on the CPU: PTX in, results in the caller's memory, findings and counts out.

Global memory is the caller's own: a kernel may touch the given buffers and the module's variables, nothing else. Addresses
are host addresses, so arrays are passed without copies.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluator.simulator.build import library
from evaluator.simulator.interpreter_counts import COUNTS, KernelCounts
from evaluator.simulator.interpreter_findings import FindingRecord, RawFinding, decode_finding, finding_buffer
from evaluator.simulator.interpreter_memory import Buffer, ModuleMemory, buffer_table, fill_constants
from evaluator.simulator.ptx_code import KernelCode
from evaluator.simulator.ptx_lowering import lower_kernel
from evaluator.simulator.ptx_module import Function, Unsupported, Variable, parameter_offsets, parse_module

__all__ = ["Buffer", "KernelCounts", "Module", "Parameter", "PreparedLaunch", "RawFinding", "RunResult", "Unsupported",
           "decode_finding", "finding_buffer", "prepare", "run"]

FINDING_LIMIT = 64
DEFAULT_BUDGET = 20_000_000
"""Warp instructions that one warp may execute: seconds of simulation, far above any honest kernel at verification sizes."""

GRID_WORKSPACE_BYTES = 256
MOST_COOPERATIVE = 8192
"""Blocks that may be resident at once; above what the largest GPU holds."""
MOST_SHARED, MOST_LOCAL = 1 << 20, 512 << 10
"""Bytes; far above what a GPU accepts, so that sizes stay in the core's range."""


class Parameter(NamedTuple):
    """A kernel parameter as the packed argument block holds it; bytes."""

    name: str
    offset: int
    size: int
    align: int
    is_pointer: bool


class Module:
    """Parsed PTX of one NVRTC result, with storage for its variables. Raises Unsupported for text that is not PTX."""

    def __init__(self, ptx: str) -> None:
        self._parsed = parse_module(ptx)
        self._memory = ModuleMemory(self._parsed)
        self._codes: dict[str, KernelCode] = {}

    @property
    def entries(self) -> Mapping[str, Function]:
        """The kernels by mangled name."""
        return MappingProxyType(self._parsed.entries)

    def _entry(self, name: str) -> Function:
        if name not in self._parsed.entries:
            raise KeyError(f"no kernel {name} in the module; it has {', '.join(sorted(self._parsed.entries)) or 'none'}")
        return self._parsed.entries[name]

    def parameters(self, name: str) -> list[Parameter]:
        """The kernel's parameters in order. Raises KeyError for an unknown kernel."""
        entry = self._entry(name)
        offsets = parameter_offsets(entry.parameters)
        return [Parameter(p.name, offsets[p.name], p.nbytes, p.align, _is_pointer(entry, p)) for p in entry.parameters]

    def global_address(self, name: str) -> tuple[int, int]:
        """Address and size in bytes of a `__device__` or `__constant__` variable. Raises KeyError."""
        return self._memory.place(name)

    @property
    def memory(self) -> ModuleMemory:
        """Storage of the module's variables."""
        return self._memory

    def code(self, name: str) -> KernelCode:
        """The kernel lowered for the core, once. Raises Unsupported, KeyError."""
        if name not in self._codes:
            self._entry(name)
            self._codes[name] = lower_kernel(self._parsed, name)
        return self._codes[name]


def _is_pointer(entry: Function, parameter: Variable) -> bool:
    """Declared as one, or its value is converted to a global address or used as one."""
    if parameter.nbytes != 8 or parameter.pointer:
        return parameter.pointer
    loads = re.findall(rf"ld\.param\.\w+\s+(%\w+),\s*\[{re.escape(parameter.name)}\]", entry.body)
    return any(re.search(rf"cvta\.to\.\w+\.u64\s+%\w+,\s*{register}\b|\[{register}[+\]]", entry.body) for register in loads)


class LaunchRecord(ctypes.Structure):
    """csrc/machine.h `Launch`."""

    _fields_ = (
        ("code", ctypes.c_void_p), ("ext", ctypes.c_void_p), ("constants_end", ctypes.c_void_p), ("buffers", ctypes.c_void_p),
        ("code_length", ctypes.c_int32), ("buffer_count", ctypes.c_int32), ("register_bytes", ctypes.c_int32),
        ("shared_bytes", ctypes.c_int32), ("local_bytes", ctypes.c_int32), ("shared_granule", ctypes.c_int32),
        ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("special_registers", ctypes.c_int32 * 16),
        ("checks", ctypes.c_int32), ("threads", ctypes.c_int32), ("budget", ctypes.c_uint64), ("gaps", ctypes.c_void_p),
        ("gap_count", ctypes.c_int32), ("parameters_id", ctypes.c_int32),
        ("cluster", ctypes.c_uint32 * 3), ("cooperative", ctypes.c_int32), ("clustered", ctypes.c_int32))


@dataclass
class PreparedLaunch:
    """A launch in the core's terms; keeps alive everything that `record` points to."""

    record: LaunchRecord
    code: KernelCode
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    buffers: tuple[Buffer, ...]
    """The caller's buffers, then the argument block and the module's variables; the core names buffers by this index."""
    keep: tuple[NDArray[np.generic], ...]

    @property
    def buffer_bytes(self) -> list[int]:
        """Sizes of `buffers`."""
        return [b.nbytes for b in self.buffers]


def _three(values: Sequence[int], what: str) -> tuple[int, int, int]:
    padded = (*values, 1, 1)[:3]
    if not 1 <= len(values) <= 3 or min(padded) < 1:
        raise ValueError(f"{what} must be one to three positive sizes, not {tuple(values)}")
    return int(padded[0]), int(padded[1]), int(padded[2])


def _checked_buffers(own: Sequence[Buffer], module: NDArray[np.void], buffers: Sequence[Buffer]) -> NDArray[np.void]:
    """All records by address, none empty; ids index `buffers`: the caller's and ours (`own`), then the module's."""
    shifted = module.copy()
    shifted["id"] += len(own)
    table = np.concatenate([buffer_table(own), shifted])
    table = table[table["end"] > table["begin"]]
    table.sort(order="begin")
    clash = np.flatnonzero(table["begin"][1:] < table["end"][:-1])
    if clash.size:
        first, second = (buffers[int(table["id"][clash[0] + k])].label for k in (0, 1))
        raise ValueError(f"buffers `{first}` and `{second}` overlap: pass each allocation once")
    return table


def prepare(
    module: Module, kernel: str, grid: Sequence[int], block: Sequence[int], packed_args: bytes, buffers: Sequence[Buffer], *,
    dynamic_shared: int = 0, checks: bool = True, budget: int = DEFAULT_BUDGET, threads: int = 1, sm_count: int = 132,
    cooperative: bool = False,
) -> PreparedLaunch:
    """Everything but the run. `packed_args` is laid out as `Module.parameters` says.

    `cooperative`: all blocks run at the same time, and the grid may synchronise.

    Raises Unsupported, KeyError (no such kernel), ValueError (sizes that no launch can have).
    """
    code = module.code(kernel)
    grid_size, block_size = _three(grid, "grid"), _three(block, "block")
    if block_size[0] * block_size[1] * block_size[2] > 1024:
        raise ValueError(f"a block has at most 1024 threads, not {block_size}")
    if len(packed_args) != code.parameter_bytes:
        raise ValueError(f"{kernel} takes {code.parameter_bytes} bytes of arguments, {len(packed_args)} were packed")
    arguments = np.zeros(len(packed_args) + 8, np.uint8)
    arguments[:len(packed_args)] = np.frombuffer(packed_args, np.uint8)
    if max(grid_size) >= 2**31 or max(grid_size[1:]) > 65535:
        raise ValueError(f"a grid has at most (2147483647, 65535, 65535) blocks, not {grid_size}")
    if code.shared_bytes + dynamic_shared > MOST_SHARED or not dynamic_shared >= 0 or code.local_bytes > MOST_LOCAL:
        raise ValueError(f"{kernel} asks for {code.static_shared_bytes + dynamic_shared} bytes of shared memory a block and "
                         f"{code.local_bytes} of local memory a thread: more than any GPU has")
    _check_cohort(code, grid_size, cooperative)
    static = (code.shared_bytes + code.dynamic_align - 1) // code.dynamic_align * code.dynamic_align
    workspace = np.zeros(GRID_WORKSPACE_BYTES, np.uint8)
    own = (*buffers, Buffer(arguments.ctypes.data, len(packed_args), "kernel parameters", False),
           *([Buffer(workspace.ctypes.data, workspace.nbytes, "grid barrier", True)] if cooperative else []))
    everything = (*own, *module.memory.buffers)
    table = _checked_buffers(own, module.memory.table, everything)
    specials = _specials(code, grid_size, block_size, dynamic_shared, sm_count)
    specials |= {"%envreg1": workspace.ctypes.data >> 32 if cooperative else 0,
                 "%envreg2": workspace.ctypes.data & 0xFFFFFFFF if cooperative else 0}
    constants, top = fill_constants(code, arguments, static, specials, module.memory)
    gaps = np.array([*code.shared_gaps, (static + dynamic_shared, static + dynamic_shared)], np.int32)
    record = LaunchRecord(
        code.code.ctypes.data, code.ext.ctypes.data, top, table.ctypes.data, len(code.code), len(table), code.register_bytes,
        static + dynamic_shared, code.local_bytes, code.shared_granule, grid_size, block_size,
        tuple(code.special_registers), int(checks), max(1, 1 if code.ordered_atomics or cooperative else threads), budget,
        gaps.ctypes.data, len(gaps), len(buffers), code.cluster, int(cooperative), int(code.clustered))
    keep = (arguments, workspace, table, constants, gaps, code.code, code.ext)
    return PreparedLaunch(record, code, grid_size, block_size, everything, keep)


def _check_cohort(code: KernelCode, grid: tuple[int, int, int], cooperative: bool) -> None:
    """Refuses a launch whose blocks cannot run together as the kernel needs it."""
    if any(blocks % size for blocks, size in zip(grid, code.cluster, strict=True)):
        raise ValueError(f"{code.name} runs in clusters of {code.cluster} blocks, which do not divide the grid {grid}")
    if code.grid_wide and not cooperative:
        raise ValueError(f"{code.name} synchronises the whole grid: only a cooperative launch can run it "
                         "(CuPy: kernel(..., enable_cooperative_groups=True))")
    if cooperative and code.cluster != (1, 1, 1):
        raise Unsupported("a cooperative launch of clusters")
    if cooperative and grid[0] * grid[1] * grid[2] > MOST_COOPERATIVE:
        raise ValueError(f"a cooperative launch of {grid} blocks: they cannot all be resident on any GPU")


def _specials(
    code: KernelCode, grid: tuple[int, int, int], block: tuple[int, int, int], dynamic: int, sm_count: int,
) -> dict[str, int]:
    values = {f"%ntid.{axis}": block[i] for i, axis in enumerate("xyz")}
    values |= {f"%nctaid.{axis}": grid[i] for i, axis in enumerate("xyz")}
    threads = block[0] * block[1] * block[2]
    return values | {"%nwarpid": (threads + 31) // 32, "%smid": 0, "%nsmid": sm_count, "%gridid": 1,
                     "%cluster_nctarank": code.cluster[0] * code.cluster[1] * code.cluster[2],
                     **{f"%cluster_nctaid.{axis}": code.cluster[i] for i, axis in enumerate("xyz")},
                     **{f"%nclusterid.{axis}": grid[i] // code.cluster[i] for i, axis in enumerate("xyz")},
                     "%dynamic_smem_size": dynamic, "%total_smem_size": code.static_shared_bytes + dynamic}


@dataclass(frozen=True)
class RunResult:
    """What a launch did."""

    findings: list[RawFinding]
    """A fatal finding comes first; then errors, then warnings."""
    counts: KernelCounts
    blocks_run: int
    fatal: bool
    """The first finding stopped the launch; memory holds what the kernel wrote until then."""


def run(
    module: Module, kernel: str, grid: Sequence[int], block: Sequence[int], packed_args: bytes, buffers: Sequence[Buffer], *,
    dynamic_shared: int = 0, checks: bool = True, blocks: Sequence[int] | None = None, budget: int = DEFAULT_BUDGET,
    threads: int = 1, sm_count: int = 132, cooperative: bool = False,
) -> RunResult:
    """Executes a launch, or only the blocks with the given linear indices.

    `checks` looks for races and uninitialised reads of shared memory; bounds are always checked. The result does not depend
    on `threads`. Raises as `prepare`; MemoryError.
    """
    launch = prepare(module, kernel, grid, block, packed_args, buffers, dynamic_shared=dynamic_shared, checks=checks,
                     budget=budget, threads=threads, sm_count=sm_count, cooperative=cooperative)
    chosen = _chosen(launch, blocks, cooperative)
    counts = np.zeros(len(launch.code.code), COUNTS)
    records = (FindingRecord * FINDING_LIMIT)()
    fatal, blocks_run = ctypes.c_int(), ctypes.c_uint64()
    found = library().ptx_run(
        ctypes.byref(launch.record), None if chosen is None else ctypes.c_void_p(chosen.ctypes.data),
        ctypes.c_uint64(0 if chosen is None else chosen.size), ctypes.c_void_p(counts.ctypes.data), records, FINDING_LIMIT,
        ctypes.byref(fatal), ctypes.byref(blocks_run))
    if found < 0:
        raise MemoryError("the simulator could not get memory for the launch")
    sizes = [(b.label, b.nbytes) for b in launch.buffers]
    findings = [decode_finding(records[i], sizes) for i in range(found)]
    return RunResult(findings, KernelCounts(launch.code, counts), int(blocks_run.value), bool(fatal.value))


def _chosen(launch: PreparedLaunch, blocks: Sequence[int] | None, cooperative: bool) -> NDArray[np.uint64] | None:
    """The blocks to run, or the first block of each cluster to run; None for all blocks one by one."""
    sizes, cluster = launch.grid, launch.code.cluster
    total = sizes[0] * sizes[1] * sizes[2]
    if cooperative:
        return np.zeros(1, np.uint64)
    if cluster == (1, 1, 1):
        chosen = None if blocks is None else np.array(blocks, np.uint64)
    else:
        index = np.arange(total, dtype=np.uint64) if blocks is None else np.array(blocks, np.uint64)
        places = (index % sizes[0], index // sizes[0] % sizes[1], index // sizes[0] // sizes[1])
        x, y, z = (place // size * size for place, size in zip(places, cluster, strict=True))
        chosen = np.array(list(dict.fromkeys((x + sizes[0] * (y + sizes[1] * z)).tolist())), np.uint64)
    if chosen is not None and chosen.size and int(chosen.max()) >= total:
        raise ValueError(f"block {int(chosen.max())} of a grid of {total}")
    return chosen
