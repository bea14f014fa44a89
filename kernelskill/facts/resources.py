"""Facts of the target kernel from ptxas (registers, spills, shared memory) and from its machine code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from evaluator.types import KernelResources
from kernelskill.facts.table import FactTable

Matches = Callable[[str], bool]
"""Whether an opcode with modifiers, e.g. `LDG.E.128`, is meant."""


def _opcode(pattern: str) -> Matches:
    return re.compile(pattern).match  # type: ignore[return-value]


COUNTS: dict[str, Matches] = {
    "sass_global_loads": _opcode(r"LDG\b"),
    "sass_global_stores": _opcode(r"STG\b"),
    "sass_global_loads_128": _opcode(r"LDG\..*\b128\b"),
    "sass_shared_loads_128": _opcode(r"LDS\..*\b128\b"),
    "sass_async_copies": _opcode(r"LDGSTS\b"),
    "sass_shuffles": _opcode(r"(?:SHFL|REDUX|CREDUX)\b"),
    "sass_barriers": _opcode(r"BAR\b"),
    "sass_atomics": _opcode(r"(?:ATOMG?|REDG?)\b"),
    "sass_mufu": _opcode(r"MUFU\b"),
    "sass_ffma": _opcode(r"FFMA2?\b"),
    "sass_tensor": _opcode(r"(?:[A-Z]MMA|[A-Z]GMMA|UTC[A-Z]*MMA)\b"),
    "sass_shared_atomics": _opcode(r"ATOMS\b"),
    "sass_packed_math": _opcode(r"(?:HFMA2|HADD2|HMUL2|HMNMX2)\b"),
    "sass_local": _opcode(r"(?:LDL|STL)\b"),
    "sass_instructions": _opcode(r"(?!NOP\b)"),
}
_INTEGER = _opcode(r"(?:U?IMAD|U?IADD3?|VIADD|U?LEA|U?SHF|SHL|SHR|U?LOP3|U?ISETP|V?IMNMX|IABS|I2F|F2I|I2I|PRMT|SGXT|BMSK)\b")
_WIDTH = re.compile(r"\.(U8|S8|U16|S16|64|128)\b")
_WIDTH_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
_WORD_BYTES = 4


def add_resource_facts(table: FactTable, resources: KernelResources) -> None:
    """What ptxas reports of the target kernel, and its SASS where it was disassembled."""
    table.add("registers_per_thread", resources.registers, "ptxas")
    table.add("spill_bytes", resources.spill_store_bytes + resources.spill_load_bytes, "ptxas")
    table.add("stack_bytes", resources.stack_bytes, "ptxas")
    table.add("static_shared_bytes", resources.static_shared_bytes, "ptxas")
    if resources.sass:
        _add_sass(table, resources.sass)


def _add_sass(table: FactTable, sass: Mapping[str, int]) -> None:
    for name, matches in COUNTS.items():
        table.add(name, sum(count for opcode, count in sass.items() if matches(opcode)), "sass")
    total = sum(sass.values())
    if total:
        integer = sum(count for opcode, count in sass.items() if _INTEGER(opcode) and not opcode.startswith("IMAD.MOV"))
        table.add("sass_integer_pct", 100.0 * integer / total, "sass")
    table.add("vector_load_bytes", _widest(sass, ("LDG", "LDGSTS")), "sass")
    table.add("vector_store_bytes", _widest(sass, ("STG",)), "sass")


def _widest(sass: Mapping[str, int], families: tuple[str, ...]) -> int | None:
    """Widest access in bytes of one lane over the opcodes; None without such an access."""
    widths = []
    for opcode in sass:
        if opcode.split(".", 1)[0] in families:
            width = _WIDTH.search(opcode)
            widths.append(_WIDTH_BYTES[width[1]] if width else _WORD_BYTES)
    return max(widths, default=None)
