"""Tensor-core instructions: wmma, mma.sync, ldmatrix, stmatrix."""

from __future__ import annotations

import re

from evaluator.simulator.ptx_code import ADDRESS_64, COLUMN_MAJOR, GENERIC, NONE, ROLE_SHIFT, SHARED, TRANSPOSED
from evaluator.simulator.ptx_instruction import Op
from evaluator.simulator.ptx_lowering import Lowering, lowers
from evaluator.simulator.ptx_memory import note_granule, take_space

TYPES = {"f16": 0, "bf16": 1, "tf32": 2, "s8": 3, "u8": 4}
HALF_D, HALF_C = 8, 16
ROLES = {"a": 0, "b": 1, "c": 2, "d": 2}
WMMA_SHAPES = {"m16n16k16": (16, 16, 16), "m32n8k16": (32, 8, 16), "m8n32k16": (8, 32, 16), "m16n16k8": (16, 16, 8)}
MMA_SHAPES = {("m16n8k16", "f16"), ("m16n8k8", "f16"), ("m16n8k16", "bf16"), ("m16n8k8", "bf16"), ("m16n8k8", "tf32"),
              ("m16n8k4", "tf32"), ("m16n8k16", "s8"), ("m16n8k32", "s8"), ("m16n8k16", "u8"), ("m16n8k32", "u8")}
FRAGMENT_TYPES = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4}


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
    """wmma.load/store/mma on f16, bf16 and tf32 fragments."""
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
    types = list(op.modifiers)
    op.modifiers.clear()
    if types[:1] and len(types) == 2 and set(types) <= {"f16", "f32"}:  # .dtype.ctype with f16 operands
        kinds, operand = types, "f16"
    elif len(types) == 4 and types[1] == types[2] and types[1] in ("bf16", "tf32", "f16"):
        kinds, operand = [types[0], types[3]], types[1]
    else:
        raise op.refuse()
    flags = TYPES[operand] | (HALF_D if kinds[0] == "f16" else 0) | (HALF_C if kinds[1] == "f16" else 0)
    _product(low, op, "WMMA", dims, flags)


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
    used = registers[:rows * columns * FRAGMENT_TYPES[kind] // 128]
    low.emit("FRAGMENT_LOAD" if action == "load" else "FRAGMENT_STORE", a=base, imm=offset, size=FRAGMENT_TYPES[kind],
             vec=len(used), space=space, flags=flags, ext=low.extend([*used, leading, rows, columns]),
             reads=[base, leading] + ([] if action == "load" else used), writes=used if action == "load" else ())


@lowers("mma")
def mma(low: Lowering, op: Op) -> None:
    """mma.sync.aligned.row.col."""
    op.take("sync")
    op.take("aligned")
    shape = op.take(*{name for name, _ in MMA_SHAPES})
    op.take("row")
    op.take("col")
    if len(op.modifiers) != 4 or not shape:
        raise op.refuse()
    d_type, a_type, b_type, c_type = op.modifiers
    op.modifiers.clear()
    accumulators = {"s32"} if a_type in ("s8", "u8") else {"f32", "f16"} if a_type == "f16" else {"f32"}
    if a_type != b_type or (shape, a_type) not in MMA_SHAPES or not {d_type, c_type} <= accumulators:
        raise op.refuse()
    m, n, k = (int(size) for size in re.findall(r"\d+", shape))
    _product(low, op, "MMA", (m, n, k), TYPES[a_type] | (HALF_D if d_type == "f16" else 0) | (HALF_C if c_type == "f16" else 0))


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
