"""How far ptxas can move instructions: limited by the registers that are free in each basic block."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evaluator.simulator.ptx_code import KernelCode

CONTROL = frozenset(("BRANCH", "BRANCH_TABLE", "EXIT", "BARRIER", "WARP_SYNC", "CALL", "RETURN"))
"""Instructions that end a basic block."""
RESERVED_REGISTERS = 2
"""Registers that the machine code needs beside the PTX's values (stack pointer, addresses of constants)."""
LEAST_WINDOW, MOST_WINDOW = 12, 500


def block_starts(code: NDArray[np.void], names: Sequence[str], ext: NDArray[np.int32]) -> list[int]:
    """First instructions of the basic blocks, ascending."""
    starts = {0}
    for i, name in enumerate(names):
        if name in CONTROL:
            starts.add(i + 1)
        if name in ("BRANCH", "CALL"):
            starts.add(int(code[i]["target"]))
        if name == "BRANCH_TABLE":
            starts.update(ext[code[i]["ext"] : code[i]["ext"] + code[i]["vec"]].tolist())
    return sorted(s for s in starts if s < len(names))


def _successors(at: int, code: NDArray[np.void], names: Sequence[str], ext: NDArray[np.int32], none: int) -> list[int]:
    name, row = names[at], code[at]
    following = [at + 1] if at + 1 < len(names) else []
    if name == "BRANCH":
        return [int(row["target"])] + (following if row["predicate"] != none else [])
    if name == "CALL":
        return [int(row["target"]), *following]
    if name == "BRANCH_TABLE":
        return [*ext[row["ext"] : row["ext"] + row["vec"]].tolist(), *following]
    if name in ("EXIT", "RETURN") and row["predicate"] == none:
        return []
    return following


def live_at_starts(kernel: KernelCode, names: Sequence[str], none: int) -> dict[int, int]:
    """Block start -> registers whose values are needed from there on (backward data flow)."""
    starts = block_starts(kernel.code, names, kernel.ext)
    ends = dict(zip(starts, [*starts[1:], len(names)], strict=True))
    uses, defines = dict[int, int](), dict[int, int]()
    for start, end in ends.items():
        used = defined = 0
        for i in range(start, end):
            for r in kernel.reads[i]:
                if r >= 0 and not defined >> r // 128 & 1:
                    used |= 1 << r // 128
            if kernel.code[i]["predicate"] == none:
                for r in kernel.writes[i]:
                    defined |= 1 << r // 128
        uses[start], defines[start] = used, defined
    live = dict.fromkeys(starts, 0)
    changed = True
    while changed:
        changed = False
        for start in reversed(starts):
            out = 0
            for following in _successors(ends[start] - 1, kernel.code, names, kernel.ext, none):
                out |= live[following]
            found = uses[start] | (out & ~defines[start])
            changed |= found != live[start]
            live[start] = found
    return {start: bin(mask).count("1") for start, mask in live.items()}


def windows(kernel: KernelCode, names: Sequence[str], registers: int, per_register: float, none: int) -> NDArray[np.int32]:
    """By instruction: how many results before it must be there before it can issue."""
    live = live_at_starts(kernel, names, none)
    starts = [*live, len(names)]
    sizes = np.zeros(len(names), np.int32)
    for start, end in pairwise(starts):
        free = registers - RESERVED_REGISTERS - live[start]
        sizes[start:end] = int(min(MOST_WINDOW, max(LEAST_WINDOW, per_register * free)))
    return sizes
