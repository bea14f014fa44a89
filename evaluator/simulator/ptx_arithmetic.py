"""Lane-wise instructions: names are matched against the core's table, modifiers included."""

from __future__ import annotations

import re

from evaluator.simulator.ptx_code import LaneOp, op_table
from evaluator.simulator.ptx_instruction import Op, integer
from evaluator.simulator.ptx_lowering import Lowering, lowers
from evaluator.simulator.ptx_module import type_bytes

UNTYPED = {"mov", "selp", "not", "and", "or", "xor", "cnot"}
"""Operations on bits: .u32, .s32 and .f32 are one."""
PLAIN = ("add", "sub", "mul", "mad", "mul24", "mad24", "sad", "div", "rem", "abs", "neg", "min", "max", "fma", "rcp",
         "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "testp", "copysign", "popc", "clz", "bfind", "brev", "bfe",
         "shf", "prmt", "szext", "dp4a", "dp2a", "bmsk", "fns", "shl", "shr", "not", "and", "or", "xor", "cnot", "selp", "set",
         "cvt", "vabsdiff2", "vabsdiff4")
_TYPE = re.compile(r"^(?:[usfb]|bf|tf|e\dm)\d+(?:x2)?$")


def lane_operands(low: Lowering, op: Op, operation: LaneOp, sources: list[str]) -> list[int]:
    """Offsets of the sources in the widths that the core's operation reads."""
    if len(sources) != len(operation.sources):
        raise op.refuse(f"{len(sources)} source operands, {len(operation.sources)} expected")
    return [low.predicate_operand(text) if kind == "pred" else _sized(low, text, kind)
            for text, kind in zip(sources, operation.sources, strict=True)]


def _sized(low: Lowering, text: str, kind: str) -> int:
    """A source in the width of its type. A wider register is cut (PTX ISA: Operand Size Exceeding Instruction-Type Size):
    read as it is, each lane would see a part of another lane's value."""
    width = 8 if kind.endswith("64") else 4
    register = low.find_register(text)
    if register is None or register.width <= width:
        return low.operand(text, width, kind)
    cut = low.slot(width)
    low.lane("cvt.u32.u64", cut, [register.offset])
    return cut


def finish(low: Lowering, op: Op, key: str, destination: str, sources: list[str], imm: int = 0) -> None:
    """Emits `key` if the core has it; refuses the instruction by name otherwise."""
    operation = op_table().lane.get(key)
    if operation is None:
        raise op.refuse()
    op.modifiers.clear()
    operands = lane_operands(low, op, operation, sources)
    if destination == "_":
        low.lane(key, low.slot(8), operands, imm)
        return
    target = low.register(destination)
    if target.width == 8 and op.opcode == "cvt" and not operation.destination.endswith("64"):
        short = low.slot(4)
        low.lane(key, short, operands, imm)
        low.lane(f"cvt.{'s64.s32' if operation.destination.startswith('s') else 'u64.u32'}", target.offset, [short])
        return
    low.lane(key, target.offset, operands, imm)


def key_of(op: Op) -> str:
    """The name under which the core knows the operation."""
    parts = list(op.modifiers)
    if op.opcode in UNTYPED and parts and parts[-1] != "pred":
        parts[-1] = "b" + re.sub(r"\D", "", parts[-1].replace("x2", ""))
        if op.opcode == "mov" and op.type.endswith("x2"):
            parts[-1] = "b32"
    return ".".join((op.opcode, *parts))


@lowers(*PLAIN)
def plain(low: Lowering, op: Op) -> None:
    """Everything whose name, after the type's normalisation, is in the table."""
    if op.take("cc"):
        carry_chain(low, op)
        return
    if op.opcode == "cvt":
        _convert(low, op)
        return
    if op.opcode == "shl":
        op.modifiers[-1] = "b" + op.modifiers[-1][1:]
    finish(low, op, key_of(op), op.operands[0], op.operands[1:])


@lowers("lop3")
def lop3(low: Lowering, op: Op) -> None:
    """Any function of three bits; the table is the fifth operand."""
    op.expect(5)
    finish(low, op, key_of(op), op.operands[0], op.operands[1:4], integer(op.operands[4]))


def _convert(low: Lowering, op: Op) -> None:
    types = [m for m in op.modifiers if _TYPE.match(m)]
    modes = [m for m in op.modifiers if not _TYPE.match(m)]
    if len(types) != 2:
        raise op.refuse()
    if types[0] == types[1] and not modes:
        finish(low, op, f"mov.b{8 * max(2, type_bytes(types[0]))}", op.operands[0], op.operands[1:])
        return
    finish(low, op, ".".join(("cvt", *modes, *types)), op.operands[0], op.operands[1:])


@lowers("mov")
def move(low: Lowering, op: Op) -> None:
    """mov of registers, addresses and clocks; packing and unpacking of vectors."""
    op.expect(2)
    destination, source = op.operands
    if destination.startswith("{") or source.startswith("{"):
        _pack(low, op, destination, source)
    elif source in ("%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo"):
        register = low.register(destination)
        op.modifiers.clear()
        low.emit("CLOCK", d=register.offset, size=register.width, writes=[register.offset])
    else:
        finish(low, op, key_of(op), destination, [source])


def _pack(low: Lowering, op: Op, destination: str, source: str) -> None:
    bits = type_bytes(op.take_type()) * 8
    if bits > 64:
        raise op.refuse()
    parts = low.vector(destination if destination.startswith("{") else source)
    size = bits // 8 // len(parts)
    if size > 4:
        raise op.refuse()
    if destination.startswith("{"):
        whole = low.operand(source, max(4, bits // 8))
        registers = [low.operand(p) for p in parts]
        low.emit("UNPACK", a=whole, size=size, vec=len(parts), ext=low.extend(registers), reads=[whole], writes=registers)
    else:
        registers = [low.operand(p) for p in parts]
        whole = low.register(destination).offset
        low.emit("PACK", d=whole, size=size, vec=len(parts), ext=low.extend(registers), reads=registers, writes=[whole])


@lowers("bfi")
def insert_bits(low: Lowering, op: Op) -> None:
    """bfi.b32/b64 d, value, base, position, length."""
    op.expect(5)
    width = type_bytes(op.take_type())
    sources = [low.operand(op.operands[1], width), low.operand(op.operands[2], width), low.operand(op.operands[3]),
               low.operand(op.operands[4])]
    destination = low.register(op.operands[0]).offset
    low.emit("INSERT_BITS", d=destination, size=width, ext=low.extend(sources), reads=sources, writes=[destination])


@lowers("setp")
def set_predicate(low: Lowering, op: Op) -> None:
    """setp with its combined forms: `p|q`, and a third operand joined by and/or/xor."""
    op.expect(3, 4)
    first, _, second = op.operands[0].partition("|")
    join = op.take("and", "or", "xor")
    key = ".".join(("setp", *op.modifiers))
    operation = op_table().lane.get(key)
    if operation is None or bool(join) != (len(op.operands) == 4):
        raise op.refuse()
    op.modifiers.clear()
    result = low.slot(4) if join or second else low.register(first).offset
    low.lane(key, result, lane_operands(low, op, operation, op.operands[1:3]))
    if not join and not second:
        return
    outputs = [(first.strip(), result)]
    if second:
        inverse = low.slot(4)
        low.lane("not.pred", inverse, [result])
        outputs.append((second.strip(), inverse))
    other = low.predicate_operand(op.operands[3]) if join else 0
    for name, value in outputs:
        if name == "_":
            continue
        if join:
            low.lane(f"{join}.pred", low.register(name).offset, [value, other])
        else:
            low.lane("mov.pred", low.register(name).offset, [value])


@lowers("addc", "subc", "madc")
def with_carry(low: Lowering, op: Op) -> None:
    """The later members of a carry chain."""
    carry_chain(low, op)


def carry_chain(low: Lowering, op: Op) -> None:
    """add.cc, addc, sub.cc, subc, mad.cc, madc: the carry lives in a hidden predicate of the function."""
    carry_in = op.opcode in ("addc", "subc", "madc")
    carry_out = "cc" in op.name.split(".")
    op.take("cc")
    kind = op.take_type()
    width = type_bytes(kind)
    if kind[0] == "f" or width < 4:
        raise op.refuse()
    half = op.take("lo", "hi")
    operands = [low.operand(o, width) for o in op.operands[1:]]
    if op.opcode in ("mad", "madc"):
        product = low.slot(width)
        low.lane(f"mul.{half}.{kind}", product, operands[:2])
        operands = [product, operands[2]]
    base = "sub" if op.opcode.startswith("sub") else "add"
    if low.scope.carry is None:
        low.scope.carry = low.slot(4)
    old = [low.scope.carry] if carry_in else []
    result = low.slot(width)
    name = base + "c" if carry_in else base
    low.lane(f"{name}.{8 * width}" if carry_in else f"{base}.u{8 * width}", result, operands + old)
    if carry_out:
        low.lane(f"carry.{name}.{8 * width}", low.scope.carry, operands + old)
    low.lane(f"mov.b{8 * width}", low.register(op.operands[0]).offset, [result])
