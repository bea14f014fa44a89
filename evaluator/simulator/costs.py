"""What each PTX instruction costs a multiprocessor: issue slots, latency, pipe, and how ptxas changes it.

Figures are for compute capability 8 and 9 (cycles of one scheduler's quarter: a pipe of 16 lanes takes 2 for a warp). Latencies
and pipe widths are documented or published microbenchmarks; instruction counts of divisions and square roots are those of
NVRTC's code. What only the machine code shows (registers, wide shared loads, merged atomics, the instruction ratio) comes from
SASS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluator.simulator.constants import Rates
from evaluator.simulator.ptx_code import ATOMIC_OP_SHIFT, ATOMIC_TYPE_SHIFT, GENERIC, NONE, SHARED, KernelCode, op_table
from evaluator.simulator.schedule import CONTROL, windows
from evaluator.types import KernelResources

REGISTER_BYTES = 128
"""A 32-bit register of a warp; a 64-bit one takes two."""
COST = np.dtype([("issue", "f4"), ("latency", "f4"), ("pipe_cycles", "f4"), ("pipe", "i4"), ("kind", "i4"), ("sources", "i4"),
                 ("targets", "i4"), ("first_register", "i4"), ("joined_bytes", "i4"), ("merged", "i4"), ("window", "i4"),
                 ("holds", "i4")])
"""`InstructionCost` of csrc/timing_types.h."""


class Pipe(IntEnum):
    """Execution pipes (csrc/timing_types.h)."""

    NONE = 0
    FMA = 1
    ALU = 2
    XU = 3
    TENSOR = 4


class Kind(IntEnum):
    """What an instruction means for a warp's clock (csrc/timing_types.h)."""

    PLAIN = 0
    MEMORY = 1
    BRANCH = 2
    BARRIER = 3
    COPY_GROUP = 4
    COPY_DRAIN = 5


class Cost(NamedTuple):
    """Of one PTX instruction."""

    issue: float
    """Machine instructions that it becomes."""
    latency: float
    pipe: Pipe = Pipe.NONE
    pipe_cycles: float = 0
    kind: Kind = Kind.PLAIN


SPECIAL = {
    "LOAD": Cost(1, 4, kind=Kind.MEMORY), "STORE": Cost(1, 4, kind=Kind.MEMORY), "ATOMIC": Cost(1, 4, kind=Kind.MEMORY),
    "COPY_ASYNC": Cost(1, 4, kind=Kind.MEMORY), "LOAD_MATRIX": Cost(1, 4, kind=Kind.MEMORY),
    "STORE_MATRIX": Cost(1, 4, kind=Kind.MEMORY), "FRAGMENT_LOAD": Cost(2, 4, kind=Kind.MEMORY),
    "FRAGMENT_STORE": Cost(4, 4, kind=Kind.MEMORY),
    "COPY_COMMIT": Cost(.3, 1, kind=Kind.COPY_GROUP), "COPY_WAIT": Cost(.3, 1, kind=Kind.COPY_DRAIN),
    "NOP": Cost(.3, 1), "TO_GENERIC": Cost(.3, 2), "FROM_GENERIC": Cost(.3, 2), "IS_SPACE": Cost(1, 4, Pipe.ALU, 2),
    "INSERT_BITS": Cost(.5, 4, Pipe.ALU, 1), "PACK": Cost(.5, 4, Pipe.ALU, 1), "UNPACK": Cost(.5, 4, Pipe.ALU, 1),
    "SHUFFLE": Cost(1, 24, Pipe.ALU, 4), "VOTE": Cost(1, 14, Pipe.ALU, 4), "MATCH": Cost(1, 14, Pipe.ALU, 4),
    "REDUX": Cost(1, 14, Pipe.ALU, 4), "ELECT": Cost(1, 14, Pipe.ALU, 4),
    "BRANCH": Cost(1, 1, kind=Kind.BRANCH), "BRANCH_TABLE": Cost(2, 1, kind=Kind.BRANCH), "EXIT": Cost(1, 1, kind=Kind.BRANCH),
    "CALL": Cost(1, 1, kind=Kind.BRANCH), "RETURN": Cost(1, 1, kind=Kind.BRANCH), "WARP_SYNC": Cost(.5, 1, kind=Kind.BRANCH),
    "BARRIER": Cost(1, 1, kind=Kind.BARRIER),
}
MATRIX_OPERAND_MASK, MATRIX_TF32, MATRIX_S8, MATRIX_U8 = 7, 2, 3, 4
"""`MatrixType` of csrc/instruction.h."""
WMMA_ISSUES, MMA_LATENCY = 2, 33
"""A wmma of 16x16x16 is two HMMA instructions; result latency of one (published, Hopper)."""
OTHER = Cost(.5, 1)


def lane_wise(name: str, fma_cycles: float) -> Cost:
    """Cost of a lane-wise PTX operation such as `mad.lo.s32`."""
    operation, kind = name.split(".")[0], name.split(".")[-1]
    if operation == "mov":
        return Cost(.4 if kind == "b64" else .3, 2)
    if operation in ("div", "sqrt", "rcp", "rem", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"):
        return _transcendental(name, operation, kind)
    if kind == "f64":
        return Cost(1, 8, Pipe.FMA, 2)
    if kind == "f32" and operation in ("add", "sub", "mul", "fma", "mad"):
        return Cost(1, 4, Pipe.FMA, fma_cycles)
    if kind in ("f16x2", "bf16x2", "f16", "bf16"):
        return Cost(1, 5, Pipe.FMA, 1)
    if operation in ("mad", "mul"):
        return Cost(1, 5, Pipe.FMA, 2)
    if kind in ("u64", "s64", "b64") and operation in ("add", "sub", "shl", "and", "or"):
        return Cost(1.5, 6, Pipe.ALU, 3)
    if operation == "cvt":
        return Cost(1, 6, Pipe.ALU, 2) if "f" in name[3:] else Cost(.5, 4, Pipe.ALU, 1)
    if kind == "pred":
        return Cost(.3, 4)
    return Cost(1, 5, Pipe.ALU, 2)


def _transcendental(name: str, operation: str, kind: str) -> Cost:
    if operation in ("div", "rem") and kind in ("u32", "s32"):
        return Cost(18, 90, Pipe.XU, 8)
    if operation in ("div", "rem") and kind in ("u64", "s64"):
        return Cost(60, 300, Pipe.XU, 8)
    if kind == "f64":
        return Cost(12, 100, Pipe.XU, 16)
    if operation == "div" and (".full" in name or ".approx" in name):
        return Cost(3, 30, Pipe.XU, 8)
    if ".rn" in name:
        return Cost(9, 45, Pipe.XU, 8)
    return Cost(1.5, 22, Pipe.XU, 8)


def matrix_product(instruction: Any, name: str, rates: Rates) -> Cost:
    """wmma and mma: the tensor pipe's time for its operations; tf32 takes twice, 8-bit half of what f16 takes."""
    m, n, k = (int(instruction["imm"]) >> shift & 255 for shift in (0, 8, 16))
    element = {MATRIX_TF32: 2.0, MATRIX_S8: .5, MATRIX_U8: .5}.get(int(instruction["flags"]) & MATRIX_OPERAND_MASK, 1.0)
    cycles = 2 * m * n * k * element / rates.mma_flops_per_cycle
    return Cost(WMMA_ISSUES if name == "WMMA" else 1, MMA_LATENCY + (2 if name == "WMMA" else 0), Pipe.TENSOR, cycles)


def cost(instruction: Any, name: str, rates: Rates) -> Cost:
    """Cost of any PTX instruction."""
    if name in ("WMMA", "MMA"):
        return matrix_product(instruction, name, rates)
    if name.isupper():
        return SPECIAL.get(name, OTHER)
    return lane_wise(name, rates.fma_cycles)


def becomes_predicate(code: NDArray[np.void], names: Sequence[str], at: int) -> bool:
    """A short forward branch over plain code: ptxas predicates the skipped instructions, so it ends no basic block."""
    branch = code[at]
    if names[at] != "BRANCH" or branch["predicate"] == NONE or not 0 < branch["target"] - at <= LONGEST_PREDICATED:
        return False
    skipped = range(at + 1, int(branch["target"]))
    return not any(names[i] in ("BARRIER", "CALL", "BRANCH_TABLE") or (names[i] in CONTROL and code[i]["target"] <= at)
                   for i in skipped)


LONGEST_PREDICATED = 10


def joinable_shared_loads(code: NDArray[np.void], names: Sequence[str]) -> Iterator[list[int]]:
    """Groups of four 4-byte shared loads off one base at 16-byte aligned offsets, within a basic block."""
    by_base: dict[int, dict[int, int]] = {}
    used: set[int] = set()
    for i, (ins, name) in enumerate(zip(code, names, strict=True)):
        if name in CONTROL or (name in ("STORE", "ATOMIC", "COPY_ASYNC") and ins["space"] in (SHARED, GENERIC)):
            by_base = {}
        elif name == "LOAD" and ins["space"] == SHARED and ins["size"] == 4 and ins["vec"] == 1:
            offsets = by_base.setdefault(int(ins["a"]), {})
            offsets.setdefault(int(ins["imm"]), i)
            first = int(ins["imm"]) // 16 * 16
            group = [offsets[first + 4 * j] for j in range(4) if first + 4 * j in offsets]
            if len(group) == 4 and not used & set(group):
                used |= set(group)
                yield sorted(group)
        elif ins["d"] >= 0:
            by_base.pop(int(ins["d"]), None)


@dataclass(frozen=True)
class CostTable:
    """Costs by instruction, and the register list that they point into."""

    rows: NDArray[np.void]
    registers: NDArray[np.int32]


MEMORY_SASS = frozenset((
    "LDG", "STG", "LDS", "STS", "LDSM", "RED", "REDG", "ATOM", "ATOMG", "ATOMS", "SHFL", "HMMA", "LDGSTS", "BAR", "MUFU", "LDL",
    "STL"))
MEMORY_PTX = frozenset(("LOAD", "STORE", "ATOMIC", "COPY_ASYNC", "SHUFFLE", "MMA", "LOAD_MATRIX", "BARRIER"))
LEAST_RATIO, MOST_RATIO = .8, 1.45
"""Machine instructions for each estimated one, clipped: beyond these the static counts say little about the hot loop."""


def instruction_ratio(rows: NDArray[np.void], names: Sequence[str], sass: Mapping[str, int]) -> float:
    """SASS instructions for each estimated one, apart from unrolling by ptxas, which multiplies the memory ones too."""
    if not sass:
        return 1.0
    by_opcode = Counter[str]()
    for opcode, count in sass.items():
        by_opcode[opcode.split(".")[0]] += count
    kinds = Counter(name for name, row in zip(names, rows, strict=True) if row["joined_bytes"] >= 0)
    ptx_memory = sum(kinds[name] for name in MEMORY_PTX) + 4 * (kinds["FRAGMENT_LOAD"] + kinds["FRAGMENT_STORE"])
    ptx_memory += 2 * kinds["WMMA"] + int((rows["pipe"] == Pipe.XU).sum())
    unrolled = max(1.0, sum(by_opcode[name] for name in MEMORY_SASS) / max(1, ptx_memory))
    total = sum(by_opcode.values()) - by_opcode["NOP"]
    ratio = total / max(1.0, float(rows["issue"].sum())) / unrolled
    return min(MOST_RATIO, max(LEAST_RATIO, ratio))


def merges_atomics(names: Sequence[str], sass: Mapping[str, int]) -> tuple[bool, bool]:
    """Whether ptxas merges the lanes' integer atomics that share an address: (global, shared).

    Global: it elects a leader lane (FLO), which the PTX does not. Shared: ATOMS.POPC.INC.
    """
    elects = sum(count for opcode, count in sass.items() if opcode.split(".")[0] in ("FLO", "UFLO"))
    own = sum(name.startswith(("bfind", "clz")) for name in names)
    return elects > own, any("POPC.INC" in opcode for opcode in sass)


def describe(kernel: KernelCode, resources: KernelResources, rates: Rates) -> CostTable:
    """The cost of every instruction of a kernel."""
    code, opcodes = kernel.code, op_table().names
    names = [opcodes[int(op)] for op in code["op"]]
    rows, used = np.zeros(len(code), COST), list[int]()
    merged = merges_atomics(names, resources.sass)
    for i, (ins, name) in enumerate(zip(code, names, strict=True)):
        read, written = ([r // REGISTER_BYTES for r in operands if r >= 0] for operands in (kernel.reads[i], kernel.writes[i]))
        row = rows[i]
        row["issue"], row["latency"], row["pipe"], row["pipe_cycles"], row["kind"] = cost(ins, name, rates)
        row["sources"], row["targets"], row["first_register"] = len(read), len(written), len(used)
        used += read + written
        if becomes_predicate(code, names, i):
            row["kind"], row["issue"] = Kind.PLAIN, .3
        row["holds"] = bool(written) and row["issue"] >= .5 and not name.startswith(("setp", "testp"))
        if name == "ATOMIC":
            row["merged"] = merged[1] if ins["space"] == SHARED else merged[0] and _is_integer_reduction(ins)
    wide = sum(count for opcode, count in resources.sass.items() if opcode.startswith("LDS") and ".128" in opcode)
    wide -= sum(name == "LOAD" and ins["space"] == SHARED and ins["size"] * ins["vec"] == 16
                for name, ins in zip(names, code, strict=True))
    for group, _ in zip(joinable_shared_loads(code, names), range(max(0, wide)), strict=False):
        rows["joined_bytes"][group[0]], rows["joined_bytes"][group[1:]], rows["issue"][group[1:]] = 16, -1, .01
    rows["window"] = windows(kernel, names, resources.registers, rates.constants.results_per_register, NONE)
    rows["issue"] *= instruction_ratio(rows, names, resources.sass)
    return CostTable(rows, np.array([*used, 0], np.int32))


FLOAT_TYPES, MERGEABLE = 2, (0, 1, 2, 5, 6, 7)
"""csrc/instruction.h: atomic types from 2 on are floating point; add, min, max, and, or, xor."""


def _is_integer_reduction(ins: Any) -> bool:
    flags = int(ins["flags"])
    return flags >> ATOMIC_TYPE_SHIFT & 15 < FLOAT_TYPES and (flags >> ATOMIC_OP_SHIFT & 15) in MERGEABLE
