"""Branches, barriers, calls and exits."""

from __future__ import annotations

import re

from evaluator.simulator.ptx_code import NONE
from evaluator.simulator.ptx_instruction import Op, integer
from evaluator.simulator.ptx_lowering import LOWERINGS, Lowering, lowers
from evaluator.simulator.ptx_memory import call_slot

BARRIER_KINDS = {"": 0, "arrive": 1, "popc": 2, "and": 3, "or": 4}


@lowers("bra")
def branch(low: Lowering, op: Op) -> None:
    """bra; .uni is a promise that changes nothing here."""
    op.take("uni")
    op.expect(1)
    low.jump(low.emit("BRANCH"), op.operands[0])


@lowers("brx")
def branch_table(low: Lowering, op: Op) -> None:
    """brx.idx: a switch."""
    if not op.take("idx"):
        raise op.refuse()
    op.take("uni")
    index = low.operand(op.operands[0])
    function = low.scope.function.name
    labels = low.branch_lists.get((function, op.operands[1]))
    if not labels:
        raise op.refuse("its .branchtargets come later")
    at = low.extend([0] * len(labels))
    low.emit("BRANCH_TABLE", a=index, vec=len(labels), ext=at, reads=[index])
    for i, label in enumerate(labels):
        def resolve(pc: int, place: int = at + i) -> None:
            low.ext[place] = pc
        low.label_uses.append((resolve, low.label(label), low.line))


@lowers("exit")
def exit_thread(low: Lowering, op: Op) -> None:
    """exit."""
    low.emit("EXIT")


@lowers("ret")
def leave(low: Lowering, op: Op) -> None:
    """ret: the entry's ends the thread."""
    op.take("uni")
    function = low.scope.function
    if function.is_entry:
        low.emit("EXIT")
    else:
        slot = low.return_slot(function.name)
        low.emit("RETURN", d=slot, reads=[slot])


@lowers("trap", "brkpt")
def trap(low: Lowering, op: Op) -> None:
    """trap stops the launch where a thread reaches it."""
    if op.opcode == "brkpt":
        raise op.refuse()
    low.emit("TRAP")


@lowers("bar", "barrier")
def barrier(low: Lowering, op: Op) -> None:
    """bar.sync/red/arrive, barrier.sync, bar.warp.sync, barrier.cluster."""
    if op.take("cluster"):
        LOWERINGS["barrier.cluster"](low, op)
        return
    op.take("cta")
    op.take("aligned")
    if op.take("warp"):
        op.take("sync")
        mask = low.operand(op.operands[0])
        low.emit("WARP_SYNC", a=mask, reads=[mask])
        return
    action = op.take("sync", "red", "arrive")
    if not action:
        raise op.refuse()
    operands = list(op.operands)
    kind, fields, reads, writes = action if action == "arrive" else "", dict[str, int](), list[int](), list[int]()
    if action == "red":
        kind = op.take("popc", "and", "or")
        op.take("u32", "pred")
        destination = low.register(operands.pop(0)).offset
        predicate = low.predicate_operand(operands.pop().strip())
        fields |= {"d": destination, "b": predicate}
        reads.append(predicate)
        writes.append(destination)
    constant = re.fullmatch(r"\d+", operands[0])
    number = integer(operands[0]) & 15 if constant else low.operand(operands[0])
    count = low.operand(operands[1]) if len(operands) > 1 else NONE
    low.emit("BARRIER", imm=number, size=int(not constant), a=count, flags=BARRIER_KINDS[kind],
             reads=[*reads, count, *([] if constant else [number])], writes=writes, **fields)


IGNORED_CALLS = {"vprintf"}
"""Device printf: the text is dropped, the call returns 0."""


@lowers("call")
def call(low: Lowering, op: Op) -> None:
    """Direct calls of functions in the module."""
    op.take("uni")
    match = re.match(r"^(?:\(([^)]*)\),)?([\w$%]+)(?:,\(([^)]*)\))?(?:,([\w$]+))?$", re.sub(r"\s", "", ",".join(op.operands)))
    if match is None:
        raise op.refuse("operands not understood")
    returned, name, passed = match[1], match[2], match[3]
    if name == "__assertfail":
        low.emit("TRAP")
        return
    if name in IGNORED_CALLS:
        if returned:
            low.lane("mov.b32", call_slot(low, returned, 0, 4), [low.immediate(0)])
        return
    if name.startswith("%"):
        raise op.refuse("a call through a function pointer")
    if name not in low.module.functions:
        raise op.refuse(f"{name} is not defined in the module")
    _emit_call(low, name, [p for p in (passed or "").split(",") if p], [r for r in (returned or "").split(",") if r])


def _emit_call(low: Lowering, name: str, passed: list[str], returned: list[str]) -> None:
    function = low.module.functions[name]
    formal = low.formal_slots.setdefault(name, {})
    low.callees.setdefault(low.scope.function.name, set()).add(name)
    for parameter, argument in zip(function.parameters, passed, strict=True):
        written = low.scope.call_parameters.get(argument, {})
        pieces = formal.setdefault(parameter.name, {})
        low.call_stores.append((name, parameter.name, set(written), low.line))
        for piece, source in written.items():
            if piece not in pieces:
                pieces[piece] = low.slot(8)
            low.lane("mov.b64" if piece[1] == 8 else "mov.b32", pieces[piece], [source])
    slot = low.return_slot(name)
    record = low.emit("CALL", d=slot, writes=[slot])
    low.jump(record, "", name)
    low.pending.append(name)
    for result, argument in zip(function.returns, returned, strict=True):
        # One register file: the caller's name for the result is the callee's register.
        low.scope.call_parameters[argument] = formal.setdefault(result.name, {})
