"""Lowers a parsed kernel to instruction records. The opcode families register themselves in `LOWERINGS`.

Every opcode has a closed set of modifiers: each family consumes the modifiers it knows, and one left over is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from evaluator.simulator.ptx_code import INSTRUCTION, NONE, SPECIAL_REGISTERS, Constant, KernelCode, op_table
from evaluator.simulator.ptx_instruction import Op, integer, split_operands
from evaluator.simulator.ptx_module import (
    Function,
    LineTracker,
    ParsedModule,
    Statement,
    Unsupported,
    Variable,
    parameter_offsets,
    parse_variable,
    statements,
    type_bytes,
)
from evaluator.simulator.ptx_scope import Label, Register, Scope, cluster_of

SHARED_GAP = 128
"""Bytes between __shared__ arrays; a multiple of the 32 banks, so bank conflicts are those of the packed layout."""
LANE_MASKS: dict[str, Callable[[int], int]] = {
    "eq": lambda lane: 1 << lane, "lt": lambda lane: (1 << lane) - 1, "le": lambda lane: (2 << lane) - 1,
    "gt": lambda lane: ~((2 << lane) - 1), "ge": lambda lane: ~((1 << lane) - 1)}
GRID_WORKSPACE = ("%envreg1", "%envreg2")
"""High and low word of the address where a cooperative launch keeps its grid barrier."""
LAUNCH_SPECIALS = {"%ntid.x", "%ntid.y", "%ntid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%nwarpid", "%smid", "%nsmid",
                   "%dynamic_smem_size", "%total_smem_size", "%gridid", "%cluster_nctaid.x", "%cluster_nctaid.y",
                   "%cluster_nctaid.z", "%cluster_nctarank", "%nclusterid.x", "%nclusterid.y", "%nclusterid.z", *GRID_WORKSPACE}
_INTEGER = re.compile(r"^-?(0[xX][0-9a-fA-F]+|\d+)U?$")


LOWERINGS: dict[str, Callable[[Lowering, Op], None]] = {}


def lowers(*opcodes: str) -> Callable[[Callable[[Lowering, Op], None]], Callable[[Lowering, Op], None]]:
    """Registers the lowering of opcodes."""
    def register(function: Callable[[Lowering, Op], None]) -> Callable[[Lowering, Op], None]:
        LOWERINGS.update(dict.fromkeys(opcodes, function))
        return function
    return register


class Lowering:
    """Lowers one entry and every function it calls."""

    def __init__(self, module: ParsedModule, entry: Function) -> None:
        self.module, self.entry = module, entry
        self.records: list[dict[str, int]] = []
        self.reads: list[tuple[int, ...]] = []
        self.writes: list[tuple[int, ...]] = []
        self.ext: list[int] = []
        self.constants: dict[Constant, int] = {}
        self.constant_bytes = self.register_bytes = self.local_bytes = 0
        self.special_registers = [NONE] * 16
        self.shared_end = self.static_shared = 0
        self.shared_gaps: list[tuple[int, int]] = []
        self.shared_variables: dict[str, int] = {}
        self.dynamic_align = 16
        self.shared_granule = 4
        self.ordered_atomics = self.clustered = self.grid_wide = False
        self.labels: dict[Label, int] = {}
        self.label_uses: list[tuple[Callable[[int], None], Label, int]] = []
        self.branch_lists: dict[tuple[str, str], list[str]] = {}
        self.parameter_offsets = parameter_offsets(entry.parameters)
        self.return_slots: dict[str, int] = {}
        self.formal_slots: dict[str, dict[str, dict[tuple[int, int], int]]] = {}
        self.call_stores: list[tuple[str, str, set[tuple[int, int]], int]] = []
        self.result_stores: dict[tuple[str, str], set[tuple[int, int]]] = {}
        self.pending: list[str] = []
        self.callees: dict[str, set[str]] = {}
        self.line = 0
        self.predicate: tuple[int, int] | None = None
        self.scope = Scope(entry)

    # ---- whole kernel

    def run(self) -> KernelCode:
        """Lowers everything reachable from the entry. Raises Unsupported."""
        self._body(self.entry)
        done: set[str] = set()
        while self.pending:
            name = self.pending.pop()
            if name not in done:
                done.add(name)
                self._body(self.module.functions[name])
        self._refuse_recursion()
        self._check_call_parameters()
        for resolve, label, line in self.label_uses:
            resolve(self._place_of(label, line))
        return self._finish()

    def _place_of(self, label: Label, line: int) -> int:
        """The pc of a label: of the innermost braces that hold one of this name."""
        for depth in range(len(label.path), -1, -1):
            found = self.labels.get(label._replace(path=label.path[:depth]))
            if found is not None:
                return found
        raise Unsupported(f"branch to unknown label {label.name}", line or None)

    def _finish(self) -> KernelCode:
        code = np.zeros(len(self.records), INSTRUCTION)
        for name in INSTRUCTION.names or ():
            code[name] = [record[name] for record in self.records]
        return KernelCode(
            self.entry.name, code, np.array([*self.ext, 0], np.int32), self.constants, self.constant_bytes,
            (self.register_bytes + 255) // 256 * 256, self.special_registers, self.shared_end, self.static_shared,
            self.shared_gaps,
            self.dynamic_align, (self.local_bytes + 15) // 16 * 16, self.shared_granule,
            max((self.parameter_offsets[p.name] + p.nbytes for p in self.entry.parameters), default=0), self.ordered_atomics,
            cluster_of(self.entry), self.clustered, self.grid_wide, self.reads, self.writes)

    def _body(self, function: Function) -> None:
        self.scope = Scope(function, call_parameters=self.formal_slots.setdefault(function.name, {}))
        self.labels[Label(function.name, (), "")] = len(self.records)
        lines = LineTracker(self.module.source_file)
        for statement in statements(function.body, lines):
            self.line = statement.line
            self._statement(statement)
        self.emit("EXIT" if function.is_entry else "RETURN", d=NONE if function.is_entry else self.return_slot(function.name))

    def _refuse_recursion(self) -> None:
        finished: set[str] = set()

        def visit(name: str, path: tuple[str, ...]) -> None:
            if name in path:
                raise Unsupported(f"recursive function {name}")
            if name not in finished:
                for callee in sorted(self.callees.get(name, ())):
                    visit(callee, (*path, name))
                finished.add(name)
        visit(self.entry.name, ())

    def _check_call_parameters(self) -> None:
        for function, parameter, stored, line in self.call_stores:
            wanted = set(self.formal_slots.get(function, {}).get(parameter, {}))
            if _cut_differently(wanted, stored):
                raise Unsupported(f"{function} reads its argument {parameter} in other pieces than the caller wrote", line)
        for function, pieces in self.formal_slots.items():
            for result in self.module.functions[function].returns if function in self.module.functions else ():
                if _cut_differently(set(pieces.get(result.name, {})), self.result_stores.get((function, result.name), set())):
                    raise Unsupported(f"the result of {function} is read in other pieces than it wrote")

    # ---- statements

    def _statement(self, statement: Statement) -> None:
        if statement.kind == "open":
            self.scope.registers.append({})
            self.scope.braces += 1
            self.scope.path = (*self.scope.path, self.scope.braces)
        elif statement.kind == "close":
            if len(self.scope.registers) > 1:
                self.scope.registers.pop()
                self.scope.path = self.scope.path[:-1]
        elif statement.kind == "label":
            self.labels[self.label(statement.text)] = len(self.records)
            self._last_label = statement.text
        elif statement.text.startswith("."):
            self._directive(statement.text)
        else:
            self._instruction(statement.text)

    def _directive(self, text: str) -> None:
        word = "." + re.split(r"[\s.]", text[1:], maxsplit=1)[0]
        if word == ".reg":
            self._declare_registers(text)
        elif word in (".shared", ".local", ".param"):
            variable = parse_variable(text)
            if variable is None:
                raise Unsupported(f"PTX declaration `{text[:80]}`", self.line or None)
            self._declare_array(variable)
        elif word == ".branchtargets":
            self.branch_lists[(self.scope.function.name, self._last_label)] = split_operands(text.split(None, 1)[1])
        elif word not in (".pragma", ".loc", ".file", ".callprototype"):
            raise Unsupported(f"PTX directive `{word}`", self.line or None)

    _last_label = ""

    def _declare_registers(self, text: str) -> None:
        match = re.match(r"^\.reg\s*(?:\.v\d\s+)?\.(\w+)\s+(.*)$", text)
        if match is None:
            raise Unsupported(f"PTX declaration `{text[:80]}`", self.line or None)
        kind = match[1]
        width = 4 if kind == "pred" else max(4, type_bytes(kind))
        if width > 8:
            if re.fullmatch(r"%?[\w$]+<1>|", match[2]):
                return
            raise Unsupported(f"registers of type .{kind}", self.line or None)
        for name in split_operands(match[2]):
            many = re.match(r"^([%\w$]+)<(\d+)>$", name)
            for each in ([f"{many[1]}{i}" for i in range(int(many[2]))] if many else [name]):
                self.scope.registers[-1][each] = Register(self.slot(width), width, kind)

    def _declare_array(self, variable: Variable) -> None:
        if variable.space == "shared":
            self.scope.arrays[variable.name] = ("shared", self._place_shared(variable))
        elif variable.space == "local":
            self.local_bytes = (self.local_bytes + variable.align - 1) // variable.align * variable.align
            self.scope.arrays[variable.name] = ("local", self.local_bytes)
            self.local_bytes += variable.nbytes
        else:
            self.scope.call_parameters[variable.name] = {}

    def _place_shared(self, variable: Variable) -> int:
        """Where the packed layout would put the array, plus the gaps so far: same banks, but an overrun lands in a gap."""
        aligned = (self.static_shared + variable.align - 1) // variable.align * variable.align
        start = aligned + len(self.shared_gaps) * SHARED_GAP
        self.static_shared = aligned + variable.nbytes
        self.shared_end = start + variable.nbytes
        self.shared_gaps.append((self.shared_end, self.shared_end + SHARED_GAP))
        self.shared_end += SHARED_GAP
        return start

    def _instruction(self, text: str) -> None:
        guard = re.match(r"^@(!?)([%\w$]+)\s+(.*)$", text)
        if guard:
            self.predicate = (self.register(guard[2]).offset, int(guard[1] == "!"))
            text = guard[3]
        name, _, operands = text.partition(" ")
        opcode, *modifiers = name.split(".")
        modifiers = [m for m in ".".join(modifiers).split(".") if m]
        op = Op(text, opcode, modifiers, split_operands(operands), self.line, name)
        lower = LOWERINGS.get(opcode)
        if lower is None:
            raise op.refuse()
        try:
            lower(self, op)
        except (KeyError, IndexError, ValueError) as problem:
            raise op.refuse(f"operands not understood ({problem})") from problem
        finally:
            self.predicate = None
        if op.modifiers:
            raise op.refuse(f"modifier .{op.modifiers[0]} is not known for it")

    # ---- what the families use

    def slot(self, width: int) -> int:
        """A new register of `width` bytes a lane; its offset."""
        offset = self.register_bytes
        self.register_bytes += width * 32
        return offset

    def constant(self, kind: str, value: object, width: int) -> int:
        """Offset of a constant."""
        key = Constant(kind, value, width)
        if key not in self.constants:
            self.constant_bytes += width * 32
            self.constants[key] = -self.constant_bytes
        return self.constants[key]

    def immediate(self, value: int, width: int = 4) -> int:
        """Offset of an integer constant, all lanes alike."""
        return self.constant("value", value & ((1 << 8 * width) - 1), width)

    def find_register(self, name: str) -> Register | None:
        """The register of that name in the innermost scope that declares it."""
        for names in reversed(self.scope.registers):
            if name in names:
                return names[name]
        return None

    def register(self, name: str) -> Register:
        """The same; refuses an undeclared one."""
        found = self.find_register(name)
        if found is None:
            raise Unsupported(f"register {name}", self.line or None)
        return found

    def special(self, name: str) -> int:
        """A special register as an operand."""
        if name in SPECIAL_REGISTERS:
            index = SPECIAL_REGISTERS.index(name)
            if self.special_registers[index] == NONE:
                self.special_registers[index] = self.slot(4)
            return self.special_registers[index]
        if name == "%laneid":
            return self.constant("lanes", tuple(range(32)), 4)
        if name.startswith("%lanemask_") and name[10:] in LANE_MASKS:
            return self.constant("lanes", tuple(LANE_MASKS[name[10:]](lane) & 0xFFFFFFFF for lane in range(32)), 4)
        if name in LAUNCH_SPECIALS:
            self.grid_wide |= name in GRID_WORKSPACE
            return self.constant("special", name, 4)
        raise Unsupported(f"special register {name}", self.line or None)

    def operand(self, text: str, width: int = 4, kind: str = "b32") -> int:
        """Offset of a source operand: register, special register, number or address of a variable."""
        if text == "_":
            return NONE
        found = self.find_register(text)
        if found is not None:
            return found.offset
        if text.startswith("%"):
            return self.special(text)
        if match := re.match(r"^0[fF]([0-9a-fA-F]{8})$", text):
            return self.immediate(int(match[1], 16), width)
        if match := re.match(r"^0[dD]([0-9a-fA-F]{16})$", text):
            return self.immediate(int(match[1], 16), 8)
        if _INTEGER.match(text):
            return self.immediate(integer(text), width)
        if text == "WARP_SZ":
            return self.immediate(32, width)
        return self.symbol(text, width)

    def symbol(self, text: str, width: int = 8) -> int:
        """Offset of a constant that holds a variable's address (shared and local: its offset)."""
        match = re.match(r"^([\w$]+)\s*(?:\+\s*(-?\w+))?$", text)
        if match is None:
            raise Unsupported(f"operand {text}", self.line or None)
        name, shift = match[1], integer(match[2] or "0")
        if name in self.scope.arrays:
            return self.immediate(self.scope.arrays[name][1] + shift, width)
        if name in self.parameter_offsets and self.scope.function.is_entry:
            return self.constant("parameter_address", self.parameter_offsets[name] + shift, 8)
        variable = self.module.variables.get(name)
        if variable is None:
            raise Unsupported(f"address of {name}", self.line or None)
        if variable.space != "shared":
            return self.constant("global", (name, shift), width)
        if variable.extern:
            self.dynamic_align = max(self.dynamic_align, variable.align)
            return self.constant("dynamic_shared", shift, width)
        if name not in self.shared_variables:
            self.shared_variables[name] = self._place_shared(variable)
        return self.immediate(self.shared_variables[name] + shift, width)

    def address(self, text: str) -> tuple[int, int, bool]:
        """`[base+offset]` -> (register offset or NONE, byte offset, 64-bit)."""
        match = re.match(r"^\[\s*([^\]+]+?)\s*(?:\+\s*(-?\w+))?\s*\]$", text)
        if match is None:
            raise Unsupported(f"address {text}", self.line or None)
        base, shift = match[1], integer(match[2] or "0")
        found = self.find_register(base)
        if found is not None:
            return found.offset, shift, found.width == 8
        if _INTEGER.match(base):
            return NONE, integer(base) + shift, True
        return self.symbol(base, 8), shift, True

    def vector(self, text: str) -> list[str]:
        """`{a, b}` -> names; a single name as a list of one."""
        return split_operands(text[1:-1]) if text.startswith("{") else [text]

    def predicate_operand(self, text: str) -> int:
        """A predicate source, `!p` and constants included."""
        if text.startswith("!"):
            out = self.slot(4)
            self.lane("not.pred", out, [self.predicate_operand(text[1:])])
            return out
        if self.find_register(text) is None:
            return self.immediate(0xFFFFFFFF if integer(text) else 0)
        return self.register(text).offset

    def emit(
        self, opcode: str | int, *, reads: Iterable[int] = (), writes: Iterable[int] = (), **fields: int,
    ) -> dict[str, int]:
        """Appends a record; fields not given are absent operands or zero."""
        record = dict.fromkeys(("d", "a", "b", "c", "predicate"), NONE) | dict.fromkeys(
            ("predicate_negated", "target", "size", "space", "flags", "ext", "imm"), 0)
        record |= {"op": opcode if isinstance(opcode, int) else op_table().other[opcode], "vec": 1, "line": self.line, **fields}
        sources = [r for r in reads if r >= 0]
        if self.predicate is not None:
            record["predicate"], record["predicate_negated"] = self.predicate
            sources.append(self.predicate[0])
        self.records.append(record)
        self.reads.append(tuple(sources))
        self.writes.append(tuple(w for w in writes if w >= 0))
        return record

    def lane(self, key: str, destination: int, sources: Sequence[int], imm: int = 0) -> None:
        """Appends a lane-wise operation of the core."""
        operation = op_table().lane[key]
        fields = dict(zip("abc", sources, strict=False))
        self.emit(operation.opcode, reads=sources, writes=[destination], d=destination, imm=imm, **fields)

    def extend(self, values: Iterable[int]) -> int:
        """Appends to the side table; index of the first."""
        at = len(self.ext)
        self.ext.extend(values)
        return at

    def return_slot(self, function: str) -> int:
        """The register that keeps a function's return address."""
        if function not in self.return_slots:
            self.return_slots[function] = self.slot(4)
        return self.return_slots[function]

    def jump(self, record: dict[str, int], label: str, function: str | None = None) -> None:
        """Sets the target of a branch or call once all labels are known."""
        def resolve(pc: int) -> None:
            record["target"] = pc
        self.label_uses.append((resolve, Label(function, (), label) if function else self.label(label), self.line))

    def label(self, name: str) -> Label:
        """A label as the present place sees it."""
        return Label(self.scope.function.name, self.scope.path, name)


def _cut_differently(wanted: set[tuple[int, int]], stored: set[tuple[int, int]]) -> bool:
    """Some (offset, size) is read that was stored in other pieces. Bytes that nobody stored are padding."""
    return any(at < end + size and end < at + width for at, width in wanted - stored for end, size in stored)


def lower_kernel(module: ParsedModule, name: str) -> KernelCode:
    """Lowers one entry of `module`. Raises Unsupported, KeyError for an unknown entry."""
    # Importing the families registers them; they import this module.
    from evaluator.simulator import (  # noqa: F401
        ptx_arithmetic,
        ptx_asynchronous,
        ptx_collective,
        ptx_control,
        ptx_matrix,
        ptx_memory,
    )

    return Lowering(module, module.entries[name]).run()
