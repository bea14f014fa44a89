"""Operations between the lanes of a warp."""

from __future__ import annotations

from evaluator.simulator.ptx_code import NONE
from evaluator.simulator.ptx_instruction import Op
from evaluator.simulator.ptx_lowering import Lowering, lowers
from evaluator.simulator.ptx_module import type_bytes

SHUFFLES = ("up", "down", "bfly", "idx")
VOTES = ("all", "any", "uni", "ballot")
REDUX = {("add", "s"): 0, ("add", "u"): 0, ("min", "u"): 1, ("max", "u"): 2, ("min", "s"): 3, ("max", "s"): 4, ("and", "b"): 5,
         ("or", "b"): 6, ("xor", "b"): 7}


def _pair(low: Lowering, text: str) -> tuple[int, int]:
    """`d|p` -> offsets; the absent one is NONE."""
    first, _, second = (part.strip() for part in text.partition("|"))
    return low.operand(first), low.register(second).offset if second and second != "_" else NONE


def _synchronous(op: Op) -> None:
    if not op.take("sync"):
        raise op.refuse("only the .sync form is executed")


@lowers("shfl")
def shuffle(low: Lowering, op: Op) -> None:
    """shfl.sync."""
    _synchronous(op)
    op.expect(5)
    kind = op.take(*SHUFFLES)
    if op.take_type() != "b32" or not kind:
        raise op.refuse()
    destination, predicate = _pair(low, op.operands[0])
    value, lane, clamp, members = (low.operand(o) for o in op.operands[1:])
    low.emit("SHUFFLE", d=destination if destination != NONE else low.slot(4), a=value, b=lane, c=clamp,
             ext=low.extend([members, predicate]), flags=SHUFFLES.index(kind), reads=[value, lane, clamp, members],
             writes=[destination, predicate])


@lowers("vote")
def vote(low: Lowering, op: Op) -> None:
    """vote.sync."""
    _synchronous(op)
    op.expect(3)
    kind = op.take(*VOTES)
    op.take("pred", "b32")
    text = op.operands[1]
    source = low.predicate_operand(text.lstrip("!"))
    members, destination = low.operand(op.operands[2]), low.register(op.operands[0]).offset
    low.emit("VOTE", d=destination, a=source, b=members, flags=VOTES.index(kind), imm=int(text.startswith("!")),
             reads=[source, members], writes=[destination])


@lowers("activemask")
def active_mask(low: Lowering, op: Op) -> None:
    """activemask."""
    op.take("b32")
    destination = low.register(op.operands[0]).offset
    low.emit("ACTIVE_MASK", d=destination, writes=[destination])


@lowers("redux")
def redux(low: Lowering, op: Op) -> None:
    """redux.sync on integers."""
    _synchronous(op)
    what = op.take("add", "min", "max", "and", "or", "xor")
    kind = op.take_type()
    if kind not in ("u32", "s32", "b32") or (what, kind[0]) not in REDUX:
        raise op.refuse()
    destination, source, members = low.register(op.operands[0]).offset, low.operand(op.operands[1]), low.operand(op.operands[2])
    low.emit("REDUX", d=destination, a=source, b=members, flags=REDUX[what, kind[0]], reads=[source, members],
             writes=[destination])


@lowers("match")
def match(low: Lowering, op: Op) -> None:
    """match.any.sync and match.all.sync."""
    _synchronous(op)
    kind = op.take("any", "all")
    width = type_bytes(op.take_type())
    destination, predicate = _pair(low, op.operands[0])
    source, members = low.operand(op.operands[1], width), low.operand(op.operands[2])
    low.emit("MATCH", d=destination, a=source, b=members, c=predicate, size=width, flags=int(kind == "all"),
             reads=[source, members], writes=[destination, predicate])


@lowers("elect")
def elect(low: Lowering, op: Op) -> None:
    """elect.sync."""
    _synchronous(op)
    destination, predicate = _pair(low, op.operands[0])
    members = low.operand(op.operands[1])
    low.emit("ELECT", d=destination, a=predicate, b=members, reads=[members], writes=[destination, predicate])
