"""Loads, stores, atomics, cp.async and address conversions."""

from __future__ import annotations

from evaluator.simulator.ptx_code import (
    ADDRESS_64,
    ATOMIC_OP_SHIFT,
    ATOMIC_TYPE_SHIFT,
    GENERIC,
    GLOBAL,
    LOCAL,
    NON_COHERENT,
    NONE,
    ORDERED,
    SHARED,
    SIGNED,
    VOLATILE,
    WIDE_SHIFT,
)
from evaluator.simulator.ptx_instruction import Op, integer
from evaluator.simulator.ptx_lowering import LOWERINGS, Lowering, lowers
from evaluator.simulator.ptx_module import Unsupported, type_bytes

SPACES = {"global": GLOBAL, "const": GLOBAL, "shared": SHARED, "shared::cta": SHARED, "local": LOCAL,
          "shared::cluster": SHARED}
SCOPES = ("cta", "cluster", "gpu", "sys")
FENCES = ("proxy", "async", "async::generic", "alias", "mbarrier_init", "sync_restrict::shared::cta",
          "sync_restrict::shared::cluster")
ORDERS = ("relaxed", "acquire", "release", "acq_rel", "sc", "weak")
CACHE_HINTS = ("ca", "cg", "cs", "cv", "lu", "wb", "wt")
EVICTION = ("L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
            "L2::evict_normal", "L2::evict_first", "L2::evict_last", "L2::evict_unchanged")
PREFETCH = ("L2::64B", "L2::128B", "L2::256B")
ATOMIC_OPS = ("add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec")
ATOMIC_TYPES = {"f16": 3, "bf16": 4, "f16x2": 5, "bf16x2": 6}
COMMUTATIVE = {"add", "min", "max", "and", "or", "xor"}


def take_space(op: Op) -> int:
    """The state space; generic without one."""
    return SPACES.get(op.take(*SPACES), GENERIC)


def note_granule(low: Lowering, space: int, nbytes: int) -> None:
    """Narrow accesses to shared memory make the race checks finer."""
    if space in (SHARED, GENERIC):
        low.shared_granule = min(low.shared_granule, nbytes)


def take_order(op: Op) -> int:
    """Flags of memory ordering and volatility."""
    flags = VOLATILE if op.take("volatile") else 0
    order = op.take(*ORDERS)
    op.take(*SCOPES)
    return flags | (ORDERED if order and order != "weak" else 0)


def take_hints(op: Op) -> None:
    """Cache hints change no result; a cache policy comes as a last operand."""
    if op.take("L2::cache_hint"):
        op.operands.pop()
    op.take(*CACHE_HINTS)
    while op.take(*EVICTION, *PREFETCH):
        pass


@lowers("ld", "ldu")
def load(low: Lowering, op: Op) -> None:
    """ld of every space; parameters become register copies."""
    if op.take("param", "param::entry", "param::func"):
        _load_parameter(low, op)
        return
    access(low, op, "LOAD", op.operands[0], op.operands[1])


@lowers("st")
def store(low: Lowering, op: Op) -> None:
    """st of every space."""
    if op.take("async"):
        LOWERINGS["st.async"](low, op)
        return
    if op.take("param", "param::func"):
        _store_parameter(low, op)
        return
    access(low, op, "STORE", op.operands[-1] if "L2::cache_hint" not in op.modifiers else op.operands[-2], op.operands[0])


def access(low: Lowering, op: Op, opcode: str, data: str, place: str, flags: int = 0) -> None:
    """A load into or a store of the registers `data`."""
    low.clustered |= "shared::cluster" in op.modifiers
    space = take_space(op)
    flags |= take_order(op) | (NON_COHERENT if op.take("nc") else 0)
    op.take("uni")
    take_hints(op)
    op.expect(2)
    vec = {"v2": 2, "v4": 4, "v8": 8}.get(op.take("v2", "v4", "v8"), 1)
    kind = op.take_type()
    size = type_bytes(kind)
    names = low.vector(data)
    if size > 8 or len(names) != vec or size * vec > 32:
        raise op.refuse()
    flags |= SIGNED if kind[0] == "s" else 0
    base, offset, is_64 = low.address(place)
    registers = []
    for i, name in enumerate(names):
        register = low.find_register(name)
        wide = register.width == 8 if register else size == 8
        flags |= 1 << WIDE_SHIFT + i if wide else 0
        registers.append(low.operand(name, 8 if wide else 4, kind))
    note_granule(low, space, size * vec)
    loading = opcode == "LOAD"
    low.emit(opcode, a=base, imm=offset, size=size, vec=vec, space=space, flags=flags | (ADDRESS_64 if is_64 else 0),
             ext=low.extend(registers), reads=[base] if loading else [base, *registers], writes=registers if loading else ())


def _parameter_place(op: Op, text: str) -> tuple[str, int]:
    name, _, offset = text.strip("[] ").partition("+")
    return name.strip(), integer(offset.strip() or "0")


def _load_parameter(low: Lowering, op: Op) -> None:
    vec = {"v2": 2, "v4": 4}.get(op.take("v2", "v4"), 1)
    kind = op.take_type()
    size = type_bytes(kind)
    name, offset = _parameter_place(op, op.operands[1])
    names = low.vector(op.operands[0])
    if len(names) != vec or size > 8:
        raise op.refuse()
    if low.find_register(name) is not None:
        base, shift, _ = low.address(op.operands[1])
        registers = [low.register(n).offset for n in names]
        wide = sum(1 << WIDE_SHIFT + i for i, n in enumerate(names) if low.register(n).width == 8)
        low.emit("LOAD", a=base, imm=shift, size=size, vec=vec, space=GLOBAL, ext=low.extend(registers), reads=[base],
                 flags=ADDRESS_64 | wide | (SIGNED if kind[0] == "s" else 0), writes=registers)
        return
    for i, target in enumerate(names):
        register = low.register(target)
        at = offset + i * size
        if low.scope.function.is_entry and name in low.parameter_offsets:
            key = (low.parameter_offsets[name] + at, size, kind[0] == "s")
            low.lane(f"mov.b{8 * register.width}", register.offset, [low.constant("parameter", key, register.width)])
        else:
            low.lane(_widening(kind, size, register.width), register.offset, [call_slot(low, name, at, size)])


def _widening(kind: str, size: int, width: int) -> str:
    """The operation that reads `size` bytes of a lane into a register of `width` bytes."""
    if size == width:
        return f"mov.b{8 * size}"
    sign = "s" if kind[0] == "s" else "u"
    return f"cvt.{sign}{8 * width}.{sign}{8 * size}"


def call_slot(low: Lowering, name: str, offset: int, size: int) -> int:
    """The register that holds `size` bytes at `offset` of a function parameter."""
    formal = low.scope.function.parameters + low.scope.function.returns
    if name not in low.scope.call_parameters and all(name != p.name for p in formal):
        raise Unsupported(f"parameter {name}", low.line or None)
    pieces = low.scope.call_parameters.setdefault(name, {})
    if (offset, size) not in pieces:
        pieces[offset, size] = low.slot(8)
    return pieces[offset, size]


def _store_parameter(low: Lowering, op: Op) -> None:
    vec = {"v2": 2, "v4": 4}.get(op.take("v2", "v4"), 1)
    kind = op.take_type()
    size = type_bytes(kind)
    name, offset = _parameter_place(op, op.operands[0])
    names = low.vector(op.operands[1])
    if len(names) != vec or size > 8:
        raise op.refuse()
    low.result_stores.setdefault((low.scope.function.name, name), set()).update((offset + i * size, size) for i in range(vec))
    for i, source in enumerate(names):
        width = 8 if size == 8 else 4
        low.lane(f"mov.b{8 * width}", call_slot(low, name, offset + i * size, size), [low.operand(source, width, kind)])


@lowers("atom", "red")
def atomic(low: Lowering, op: Op) -> None:
    """atom and red; of a vector, each element is one atomic operation."""
    if op.take("async"):
        LOWERINGS["red.async"](low, op)
        return
    low.clustered |= "shared::cluster" in op.modifiers
    space = take_space(op)
    take_order(op)
    if op.take("L2::cache_hint"):
        op.operands.pop()
    vec = int((op.take("v2", "v4", "v8") or "v1")[1:])
    op.take("noftz")
    what = op.take(*ATOMIC_OPS)
    op.take("noftz")
    kind = op.take_type()
    if not what:
        raise op.refuse()
    halves = kind in ATOMIC_TYPES
    size = type_bytes(kind)
    if size > 8 or (halves and what != "add") or (size == 2 and not halves and what not in ("cas", "exch")):
        raise op.refuse()
    operands = op.operands if op.opcode == "atom" else ["_", *op.operands]
    width = 8 if size == 8 else 4
    base, offset, is_64 = low.address(operands[1])
    results, values = low.vector(operands[0]) if operands[0] != "_" else ["_"] * vec, low.vector(operands[2])
    if len(results) != vec or len(values) != vec:
        raise op.refuse()
    extra = low.operand(operands[3], width, kind) if len(operands) > 3 else NONE
    category = ATOMIC_TYPES.get(kind, {"s": 1, "f": 2}.get(kind[0], 0))
    flags = ATOMIC_OPS.index(what) << ATOMIC_OP_SHIFT | category << ATOMIC_TYPE_SHIFT | (ADDRESS_64 if is_64 else 0)
    note_granule(low, space, size)
    for i, (result, value) in enumerate(zip(results, values, strict=True)):
        to, operand = low.operand(result), low.operand(value, width, kind)
        low.ordered_atomics |= space != SHARED and (what not in COMMUTATIVE or category >= 2 or to != NONE)
        low.emit("ATOMIC", a=base, imm=offset + i * size, size=size, space=space, flags=flags,
                 ext=low.extend([to, operand, extra]), reads=[base, operand, extra], writes=[to])


@lowers("cp")
def copy_async(low: Lowering, op: Op) -> None:
    """cp.async and its group operations."""
    if not op.take("async"):
        raise op.refuse()
    kind = op.take("bulk", "mbarrier")
    if kind:
        LOWERINGS[f"cp.async.{kind}"](low, op)
    elif op.take("commit_group"):
        low.emit("COPY_COMMIT")
    elif op.take("wait_group"):
        low.emit("COPY_WAIT", imm=integer(op.operands[0]))
    elif op.take("wait_all"):
        low.emit("COPY_WAIT", imm=-1)
    else:
        _copy(low, op)


def _copy(low: Lowering, op: Op) -> None:
    if not op.take("ca", "cg") or not op.take("shared", "shared::cta") or not op.take("global"):
        raise op.refuse()
    while op.take(*PREFETCH):
        pass
    op.expect(3, 4)
    to, to_offset, to_64 = low.address(op.operands[0])
    source, source_offset, _ = low.address(op.operands[1])
    size = integer(op.operands[2])
    if size not in (4, 8, 16):
        raise op.refuse(f"copies of {size} bytes")
    count = low.operand(op.operands[3]) if len(op.operands) > 3 else NONE
    note_granule(low, SHARED, 4)
    low.emit("COPY_ASYNC", imm=to_offset, size=size, ext=low.extend([to, source, source_offset, count]),
             flags=ADDRESS_64 if to_64 else 0, reads=[to, source, count])


@lowers("cvta")
def convert_address(low: Lowering, op: Op) -> None:
    """cvta and cvta.to."""
    back = op.take("to")
    if op.take("param"):
        space: int = GLOBAL
    else:
        space = take_space(op)
    if op.take_type() not in ("u64", "b64") or space == GENERIC:
        raise op.refuse()
    source, destination = low.operand(op.operands[1], 8), low.register(op.operands[0]).offset
    low.emit("FROM_GENERIC" if back else "TO_GENERIC", d=destination, a=source, space=space, reads=[source],
             writes=[destination])


@lowers("isspacep")
def is_space(low: Lowering, op: Op) -> None:
    """isspacep.global/shared/local."""
    anywhere = "shared::cluster" in op.modifiers
    space = take_space(op)
    if space == GENERIC:
        raise op.refuse()
    source, destination = low.operand(op.operands[1], 8), low.register(op.operands[0]).offset
    low.emit("IS_SPACE", d=destination, a=source, space=space, flags=int(anywhere), reads=[source], writes=[destination])


@lowers("prefetch", "prefetchu", "discard", "applypriority", "membar", "fence", "nanosleep", "griddepcontrol")
def no_effect(low: Lowering, op: Op) -> None:
    """Instructions without an effect on results where blocks run one after another."""
    known = {"prefetch": ("global", "local", "L1", "L2", *EVICTION), "prefetchu": ("L1",), "discard": ("global", "L2"),
             "applypriority": ("global", *EVICTION), "membar": ("cta", "gl", "sys", "gpu"),
             "fence": (*SCOPES, *ORDERS, *FENCES, "shared::cta", "shared::cluster", "global"),
             "nanosleep": ("u32",), "griddepcontrol": ("wait", "launch_dependents")}[op.opcode]
    while op.take(*known):
        pass
    low.emit("NOP")
