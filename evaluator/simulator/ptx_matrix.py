"""Tensor-core instructions: wmma, mma.sync, ldmatrix, stmatrix."""

from __future__ import annotations

import re

from evaluator.simulator.ptx_code import ADDRESS_64, COLUMN_MAJOR, GENERIC, NONE, ROLE_SHIFT, SHARED, TRANSPOSED
from evaluator.simulator.ptx_instruction import Op
from evaluator.simulator.ptx_lowering import Lowering, lowers
from evaluator.simulator.ptx_memory import note_granule, take_space

TYPES = {"f16": 0, "bf16": 1, "tf32": 2, "s8": 3, "u8": 4, "e4m3": 5, "e5m2": 6, "f64": 7}
HALF_D, HALF_C, B_SHIFT, SATURATE = 8, 16, 5, 256
ROLES = {"a": 0, "b": 1, "c": 2, "d": 2}
TALL = {"m16n16k16": (16, 16, 16), "m32n8k16": (32, 8, 16), "m8n32k16": (8, 32, 16)}
WMMA_SHAPES = {**TALL, "m16n16k8": (16, 16, 8), "m8n8k4": (8, 8, 4)}
INTEGERS, FLOATS_8 = {"s8", "u8"}, {"e4m3", "e5m2"}
MMA_DEPTHS = {"f16": {"m16n8k8", "m16n8k16"}, "bf16": {"m16n8k8", "m16n8k16"}, "tf32": {"m16n8k4", "m16n8k8"},
              "s8": {"m8n8k16", "m16n8k16", "m16n8k32"}, "u8": {"m8n8k16", "m16n8k16", "m16n8k32"},
              "e4m3": {"m16n8k32"}, "e5m2": {"m16n8k32"}, "f64": {"m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"}}
"""mma.sync: the shapes of each operand type."""
FRAGMENT_TYPES = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "s8": 1, "u8": 1, "s32": 4, "f64": 8}


def _accumulators(operand: str) -> set[str]:
    """Types of C and D."""
    if operand in INTEGERS:
        return {"s32"}
    return {"f64"} if operand == "f64" else {"f32", "f16"} if operand == "f16" or operand in FLOATS_8 else {"f32"}


def _type_flags(op: Op, d: str, a: str, b: str, c: str) -> int:
    """The flags of a product of these types; refuses those that do not go together."""
    alike = a == b or {a, b} <= INTEGERS or {a, b} <= FLOATS_8
    if a not in TYPES or not alike or not {d, c} <= _accumulators(a):
        raise op.refuse()
    return (TYPES[a] | TYPES[b] << B_SHIFT | (HALF_D if d == "f16" else 0) | (HALF_C if c == "f16" else 0)
            | (SATURATE if op.take("satfinite") else 0))


def _registers(low: Lowering, text: str) -> list[int]:
    return [low.operand(name) for name in low.vector(text)]


def _padded(registers: list[int]) -> list[int]:
    return registers + [NONE] * (8 - len(registers))


def _product(low: Lowering, op: Op, opcode: str, dims: tuple[int, int, int], flags: int) -> None:
    op.expect(4)
    d, a, b, c = (_registers(low, operand) for operand in op.operands)
    if max(map(len, (d, a, b, c))) > 8:
        raise op.refuse()
    m, n, k = dims
    low.emit(opcode, imm=m | n << 8 | k << 16, flags=flags, ext=low.extend(_padded(d) + _padded(a) + _padded(b) + _padded(c)),
             reads=a + b + c, writes=d)


@lowers("wmma")
def wmma(low: Lowering, op: Op) -> None:
    """wmma.load/store/mma on f16, bf16, tf32, f64 and 8-bit integer fragments."""
    action = op.take("load", "store", "mma")
    op.take("sync")
    op.take("aligned")
    shape = op.take(*WMMA_SHAPES)
    if not action or not shape:
        raise op.refuse()
    if action == "mma":
        _wmma_product(low, op, WMMA_SHAPES[shape])
    else:
        _wmma_memory(low, op, action, WMMA_SHAPES[shape])


def _wmma_product(low: Lowering, op: Op, dims: tuple[int, int, int]) -> None:
    while op.take("row", "col"):
        pass
    op.take("rn")
    types = [m for m in op.modifiers if m != "satfinite"]
    op.modifiers[:] = [m for m in op.modifiers if m == "satfinite"]
    if len(types) == 2:  # .dtype.ctype with f16 operands
        types = [types[0], "f16", "f16", types[1]]
    if len(types) != 4:
        raise op.refuse()
    d, a, b, c = types
    _product(low, op, "WMMA", dims, _type_flags(op, d, a, b, c))


def _wmma_memory(low: Lowering, op: Op, action: str, dims: tuple[int, int, int]) -> None:
    role = op.take("a", "b", "c", "d")
    column_major = op.take("row", "col") == "col"
    space = take_space(op)
    kind = op.take_type()
    if kind not in FRAGMENT_TYPES or not role:
        raise op.refuse()
    m, n, k = dims
    rows, columns = {"a": (m, k), "b": (k, n)}.get(role, (m, n))
    data, place = op.operands[:2] if action == "load" else (op.operands[1], op.operands[0])
    base, offset, is_64 = low.address(place)
    default_leading = rows if column_major else columns
    leading = low.operand(op.operands[2]) if len(op.operands) > 2 else low.immediate(default_leading)
    registers = _registers(low, data)
    note_granule(low, space, FRAGMENT_TYPES[kind])
    flags = (COLUMN_MAJOR if column_major else 0) | (ADDRESS_64 if is_64 else 0) | ROLES[role] << ROLE_SHIFT
    used = registers[:rows * columns * FRAGMENT_TYPES[kind] // (256 if kind == "f64" else 128)]
    low.emit("FRAGMENT_LOAD" if action == "load" else "FRAGMENT_STORE", a=base, imm=offset, size=FRAGMENT_TYPES[kind],
             vec=len(used), space=space, flags=flags, ext=low.extend([*used, leading, rows, columns]),
             reads=[base, leading] + ([] if action == "load" else used), writes=used if action == "load" else ())


@lowers("mma")
def mma(low: Lowering, op: Op) -> None:
    """mma.sync.aligned.row.col."""
    op.take("sync")
    op.take("aligned")
    shape = op.take(*set().union(*MMA_DEPTHS.values()))
    op.take("row")
    op.take("col")
    op.take("rn")
    types = [m for m in op.modifiers if m != "satfinite"]
    op.modifiers[:] = [m for m in op.modifiers if m == "satfinite"]
    if len(types) != 4 or shape not in MMA_DEPTHS.get(types[1], ()):
        raise op.refuse()
    d, a, b, c = types
    m, n, k = (int(size) for size in re.findall(r"\d+", shape))
    _product(low, op, "MMA", (m, n, k), _type_flags(op, d, a, b, c))


@lowers("movmatrix")
def move_matrix(low: Lowering, op: Op) -> None:
    """movmatrix.sync.aligned.m8n8.trans.b16."""
    if not (op.take("sync") and op.take("aligned") and op.take("m8n8") and op.take("trans") and op.take("b16")):
        raise op.refuse()
    source, destination = low.operand(op.operands[1]), low.register(op.operands[0]).offset
    low.emit("MOVE_MATRIX", d=destination, a=source, reads=[source], writes=[destination])


@lowers("ldmatrix", "stmatrix")
def matrix_rows(low: Lowering, op: Op) -> None:
    """ldmatrix/stmatrix.sync.aligned.m8n8.x{1,2,4}{.trans}.shared.b16."""
    op.take("sync")
    op.take("aligned")
    shape, count, transposed, space = op.take("m8n8"), op.take("x1", "x2", "x4"), op.take("trans"), take_space(op)
    if not shape or not count or space not in (SHARED, GENERIC) or op.take_type() != "b16":
        raise op.refuse()
    load = op.opcode == "ldmatrix"
    data, place = op.operands if load else reversed(op.operands)
    base, offset, is_64 = low.address(place)
    registers = _registers(low, data)
    if len(registers) != int(count[1:]):
        raise op.refuse()
    low.emit("LOAD_MATRIX" if load else "STORE_MATRIX", a=base, imm=offset, vec=len(registers), space=SHARED,
             flags=(TRANSPOSED if transposed else 0) | (ADDRESS_64 if is_64 else 0), ext=low.extend(registers),
             reads=[base] + ([] if load else registers), writes=registers if load else ())
