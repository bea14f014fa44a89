"""The lowered kernel: instruction records, constants and sizes, as the C++ core reads them (csrc/instruction.h)."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluator.simulator.build import library

NONE = -(2**31)
"""A register operand that is absent."""
FIELDS = ("op", "d", "a", "b", "c", "predicate", "predicate_negated", "target", "size", "vec", "space", "flags", "ext", "line")
INSTRUCTION = np.dtype([(name, "i4") for name in FIELDS] + [("imm", "i8")])
GLOBAL, SHARED, LOCAL, GENERIC = range(4)
SIGNED, ADDRESS_64, NON_COHERENT, VOLATILE, ORDERED, COLUMN_MAJOR, TRANSPOSED = 1, 2, 4, 8, 16, 32, 32
WIDE_SHIFT, ATOMIC_OP_SHIFT, ATOMIC_TYPE_SHIFT, ROLE_SHIFT = 8, 16, 20, 16
SPECIAL_REGISTERS = ("%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%warpid", "%cluster_ctaid.x",
                     "%cluster_ctaid.y", "%cluster_ctaid.z", "%cluster_ctarank", "%clusterid.x", "%clusterid.y", "%clusterid.z")
"""Those that differ from block to block; csrc/machine.h has the same order."""


class LaneOp(NamedTuple):
    """A lane-wise operation of the core: its opcode and the lane types of destination and sources."""

    opcode: int
    destination: str
    sources: tuple[str, ...]


class OpTable(NamedTuple):
    """The core's opcodes by name."""

    lane: Mapping[str, LaneOp]
    other: Mapping[str, int]
    """Special and control opcodes, e.g. `LOAD`, `BRANCH`."""
    names: Mapping[int, str]
    """Opcode -> name, all of them."""
    findings: Mapping[int, str]


@functools.cache
def op_table() -> OpTable:
    """Reads the tables out of the library. Raises build.BuildError."""
    describe = library().ptx_describe
    describe.restype = ctypes.c_char_p
    lane: dict[str, LaneOp] = {}
    other: dict[str, int] = {}
    findings: dict[int, str] = {}
    for line in describe().decode().splitlines():
        kind, number, name, *types = line.split()
        if kind == "alu":
            destination, sources = types[0].split(":")
            lane[name] = LaneOp(int(number), destination, tuple(sources.split(",")))
        elif kind == "finding":
            findings[int(number)] = name
        else:
            other[name] = int(number)
    names = {op.opcode: name for name, op in lane.items()} | {number: name for name, number in other.items()}
    return OpTable(lane, other, names, findings)


class Constant(NamedTuple):
    """A value that all lanes read, filled in at launch. `kind`: value, lanes, parameter, special, global, dynamic_shared,
    parameter_address."""

    kind: str
    value: Any
    width: int
    """Bytes a lane: 4 or 8."""


@dataclass
class KernelCode:
    """One kernel, ready to launch."""

    name: str
    code: NDArray[np.void]
    """INSTRUCTION records."""
    ext: NDArray[np.int32]
    constants: dict[Constant, int]
    """Constant -> (negative) byte offset."""
    constant_bytes: int
    register_bytes: int
    special_registers: list[int]
    shared_bytes: int
    """Static shared memory, gaps between arrays included."""
    static_shared_bytes: int
    """Without the gaps."""
    shared_gaps: list[tuple[int, int]]
    dynamic_align: int
    local_bytes: int
    shared_granule: int
    parameter_bytes: int
    ordered_atomics: bool
    """The result depends on the order of global atomics: such a kernel runs its blocks on one thread."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    """Blocks of a cluster, as the kernel demands."""
    clustered: bool = False
    """It addresses shared memory of its cluster, or waits for it."""
    grid_wide: bool = False
    """It synchronises the whole grid: only a cooperative launch can run it."""
    reads: list[tuple[int, ...]] = field(default_factory=list)
    """By pc: register offsets the instruction reads (predicates included)."""
    writes: list[tuple[int, ...]] = field(default_factory=list)
