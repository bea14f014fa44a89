"""Blocks that work together and copies that report to barriers: clusters, mbarrier, cp.async.bulk, st.async."""

from __future__ import annotations

from evaluator.simulator.ptx_code import ADDRESS_64, GLOBAL, NONE, ORDERED, SHARED
from evaluator.simulator.ptx_instruction import Op
from evaluator.simulator.ptx_lowering import Lowering, lowers
from evaluator.simulator.ptx_memory import EVICTION, access, atomic, note_granule, take_order

INIT, INVAL, ARRIVE, DROP, EXPECT_TX, COMPLETE_TX, TEST = range(7)
KIND_SHIFT, PARITY, EXPECT = 16, 32, 64
TARGET_64, SOURCE_64, BARRIER_64 = 2, 4, 8
"""csrc/instruction.h."""
ACTIONS = ("init", "inval", "arrive", "arrive_drop", "complete_tx", "test_wait", "try_wait", "pending_count", "expect_tx")
IN_SHARED = ("shared", "shared::cta", "shared::cluster")
COMPLETES = "mbarrier::complete_tx::bytes"


def _mbarrier(low: Lowering, place: str, kind: int, flags: int = 0, *, to: int = NONE, first: int = NONE,
              second: int = NONE) -> None:
    """`to`: the register that gets the state or predicate; `first`, `second`: operands, as csrc/mbarrier.h reads them."""
    base, offset, is_64 = low.address(place)
    note_granule(low, SHARED, 4)
    low.emit("MBARRIER", a=base, imm=offset, flags=kind << KIND_SHIFT | flags | (ADDRESS_64 if is_64 else 0),
             ext=low.extend([to, first, second]), reads=[base, first, second], writes=[to])


def _cluster_wide(low: Lowering, op: Op) -> None:
    """Consumes the space of a barrier operand: generic, the block's own, or the cluster's."""
    if op.take(*IN_SHARED) == "shared::cluster":
        low.clustered = True


@lowers("mbarrier")
def mbarrier(low: Lowering, op: Op) -> None:
    """mbarrier.init, inval, arrive, arrive_drop, expect_tx, complete_tx, test_wait, try_wait, pending_count."""
    action = op.take(*ACTIONS)
    if action == "pending_count":
        op.take("b64")
        low.lane("cvt.u32.u64", low.register(op.operands[0]).offset, [low.operand(op.operands[1], 8)])
        return
    _cluster_wide(low, op)
    take_order(op)
    op.take("b64")
    if action in ("init", "expect_tx", "complete_tx"):
        op.expect(2)
        kind = {"init": INIT, "expect_tx": EXPECT_TX, "complete_tx": COMPLETE_TX}[action]
        _mbarrier(low, op.operands[0], kind, first=low.operand(op.operands[1]))
    elif action == "inval":
        _mbarrier(low, op.operands[0], INVAL)
    elif action in ("arrive", "arrive_drop"):
        _arrive(low, op, ARRIVE if action == "arrive" else DROP)
    elif action:
        _wait(low, op)
    else:
        raise op.refuse()


def _arrive(low: Lowering, op: Op, kind: int) -> None:
    expects = bool(op.take("expect_tx"))
    op.take("noComplete")
    operands = ["_", *op.operands] if op.operands[0].startswith("[") else op.operands
    state = low.operand(operands[0], 8)
    extra = low.operand(operands[2]) if len(operands) > 2 else NONE
    if expects:
        _mbarrier(low, operands[1], kind, EXPECT, to=state, second=extra)
    else:
        _mbarrier(low, operands[1], kind, to=state, first=extra)


def _wait(low: Lowering, op: Op) -> None:
    parity = bool(op.take("parity"))
    op.expect(3, 4)  # a fourth operand limits how long try_wait may sleep
    asked = low.operand(op.operands[2], 4 if parity else 8)
    _mbarrier(low, op.operands[1], TEST, PARITY if parity else 0, to=low.register(op.operands[0]).offset, first=asked)


@lowers("cp.async.mbarrier")
def copy_arrive(low: Lowering, op: Op) -> None:
    """cp.async.mbarrier.arrive{.noinc}: the thread's copies so far arrive at the barrier."""
    if not op.take("arrive"):
        raise op.refuse()
    noinc = int(bool(op.take("noinc")))
    _cluster_wide(low, op)
    op.take("b64")
    base, offset, is_64 = low.address(op.operands[0])
    low.emit("COPY_ARRIVE", a=base, b=offset, c=noinc, imm=-1, flags=ADDRESS_64 if is_64 else 0, reads=[base])


@lowers("cp.async.bulk")
def bulk_copy(low: Lowering, op: Op) -> None:
    """cp.async.bulk between global and shared memory, its groups and its prefetch. Tensor maps are refused."""
    if op.take("tensor"):
        raise op.refuse("tensor maps are made by the driver")
    if op.take("commit_group", "wait_group"):
        op.take("read")
        low.emit("NOP")
    elif op.take("prefetch"):
        op.take("L2")
        op.take("global")
        op.take("L2::cache_hint")
        low.emit("NOP")
    else:
        _bulk(low, op)


def _bulk(low: Lowering, op: Op) -> None:
    spaces = [m for m in op.modifiers if m in (*IN_SHARED, "global")]
    op.modifiers[:] = [m for m in op.modifiers if m not in spaces]
    multicast, hint = op.take("multicast::cluster"), op.take("L2::cache_hint")
    reports, grouped = op.take(COMPLETES), op.take("bulk_group")
    if len(spaces) != 2 or bool(reports) == bool(grouped) or (spaces[0] == "global") != bool(grouped):
        raise op.refuse()
    operands = op.operands[:-1] if hint else list(op.operands)
    low.clustered |= "shared::cluster" in spaces
    addresses = [low.address(operands[0]), low.address(operands[1]), low.address(operands[3]) if reports else (NONE, 0, False)]
    size, mask = low.operand(operands[2]), low.operand(operands[4]) if multicast else NONE
    flags = sum(bit for bit, (_, _, is_64) in zip((TARGET_64, SOURCE_64, BARRIER_64), addresses, strict=True) if is_64)
    note_granule(low, SHARED, 4)
    (to, to_offset, _), (source, source_offset, _), (barrier, barrier_offset, _) = addresses
    low.emit("BULK_COPY", size=16, space=GLOBAL if spaces[1] == "global" else SHARED, flags=flags,
             ext=low.extend([to, source, size, barrier, mask, to_offset, source_offset, barrier_offset]),
             reads=[to, source, size, barrier, mask])


def _reporting(low: Lowering, op: Op) -> tuple[str, int]:
    """Takes what st.async and red.async have beside a store: the barrier and the bytes each thread reports."""
    if not op.take(COMPLETES):
        raise op.refuse()
    low.clustered = True
    vec = next((int(m[1:]) for m in op.modifiers if m in ("v2", "v4")), 1)
    return op.operands.pop(), vec * int(op.type[1:]) // 8


@lowers("st.async")
def store_async(low: Lowering, op: Op) -> None:
    """st.async: a store into the cluster's shared memory that reports its bytes to a barrier there."""
    barrier, nbytes = _reporting(low, op)
    access(low, op, "STORE", op.operands[1], op.operands[0], ORDERED)
    _mbarrier(low, barrier, COMPLETE_TX, first=low.immediate(nbytes))


@lowers("red.async")
def reduce_async(low: Lowering, op: Op) -> None:
    """red.async: the same with an atomic operation."""
    barrier, nbytes = _reporting(low, op)
    atomic(low, op)
    _mbarrier(low, barrier, COMPLETE_TX, first=low.immediate(nbytes))


@lowers("mapa", "getctarank")
def map_address(low: Lowering, op: Op) -> None:
    """mapa: an address in another block of the cluster; getctarank: whose address it is."""
    op.take("shared::cluster")
    low.clustered = True
    wide = op.take_type() == "u64"
    source = low.operand(op.operands[1], 8 if wide else 4)
    rank = low.operand(op.operands[2]) if op.opcode == "mapa" else NONE
    destination = low.register(op.operands[0]).offset
    low.emit("MAP_ADDRESS", d=destination, a=source, b=rank, size=8 if wide else 4, reads=[source, rank], writes=[destination])


@lowers("barrier.cluster")
def cluster_barrier(low: Lowering, op: Op) -> None:
    """barrier.cluster.arrive and .wait."""
    action = op.take("arrive", "wait")
    op.take("acquire", "release", "relaxed")
    op.take("aligned")
    if not action:
        raise op.refuse()
    low.clustered = True
    low.emit("CLUSTER_ARRIVE" if action == "arrive" else "CLUSTER_WAIT")


@lowers("setmaxnreg")
def register_limit(low: Lowering, op: Op) -> None:
    """setmaxnreg: hands registers between warps, no value changes."""
    op.take("inc", "dec")
    op.take("sync")
    op.take("aligned")
    op.take("u32")
    low.emit("NOP")


@lowers("createpolicy")
def create_policy(low: Lowering, op: Op) -> None:
    """createpolicy: a cache policy is a number that changes no value."""
    op.take("fractional", "range")
    op.take("global")
    while op.take(*EVICTION):
        pass
    op.take("b64")
    destination = low.register(op.operands[0]).offset
    low.lane("mov.b64", destination, [low.immediate(0, 8)])
