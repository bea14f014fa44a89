"""Storage of a module's variables, and the constants of a launch."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluator.simulator.ptx_code import KernelCode
from evaluator.simulator.ptx_instruction import integer
from evaluator.simulator.ptx_module import ParsedModule, Unsupported, Variable, type_bytes

BUFFER = np.dtype([("begin", "u8"), ("end", "u8"), ("writable", "i4"), ("id", "i4")])
"""csrc/machine.h `Buffer`."""
GUARD = 256
"""Bytes around every variable that belong to none."""


class Buffer(NamedTuple):
    """Memory a kernel may touch: address and size in bytes, a label for messages, and whether it may be written."""

    address: int
    nbytes: int
    label: str
    writable: bool


def buffer_table(buffers: Sequence[Buffer]) -> NDArray[np.void]:
    """Records of `buffers` in their order."""
    table = np.zeros(len(buffers), BUFFER)
    for i, b in enumerate(buffers):
        table[i] = (b.address, b.address + b.nbytes, b.writable, i)
    return table


class ModuleMemory:
    """`__device__` and `__constant__` variables with their initial values."""

    def __init__(self, parsed: ParsedModule) -> None:
        self._variables = {name: v for name, v in parsed.variables.items() if v.space in ("global", "const") and v.nbytes}
        self._offsets: dict[str, int] = {}
        end = GUARD
        for name, variable in self._variables.items():
            align = max(variable.align, 256 if variable.nbytes >= 256 else 16)
            end = (end + align - 1) // align * align
            self._offsets[name] = end
            end += variable.nbytes + GUARD
        self._storage = np.zeros(end + 512, np.uint8)
        self._base = (self._storage.ctypes.data + 255) // 256 * 256
        self._unresolved: dict[str, str] = {}
        for variable in self._variables.values():
            self._initialise(variable)

    def place(self, name: str) -> tuple[int, int]:
        """Address and bytes of a variable. Raises KeyError."""
        if name not in self._variables:
            raise KeyError(f"no __device__ or __constant__ variable {name} in the module")
        return self._base + self._offsets[name], self._variables[name].nbytes

    def address(self, name: str) -> int:
        """Address for code that uses the variable. Raises Unsupported where its initial value could not be built."""
        if name in self._unresolved:
            raise Unsupported(f"variable {name} is initialised with {self._unresolved[name]}")
        return self.place(name)[0]

    @functools.cached_property
    def buffers(self) -> tuple[Buffer, ...]:
        """The variables as buffers; constants are read-only. Headers bring more than a thousand, hence cached."""
        return tuple(Buffer(*self.place(name), f"variable {name}", variable.space == "global")
                     for name, variable in self._variables.items())

    @functools.cached_property
    def table(self) -> NDArray[np.void]:
        """The same as BUFFER records, ids counting from 0."""
        return buffer_table(self.buffers)

    def _initialise(self, variable: Variable) -> None:
        if not variable.initial:
            return
        size = type_bytes(variable.type)
        values = [v.strip() for v in re.sub(r"[{}]", "", variable.initial).split(",") if v.strip()]
        raw = bytearray()
        for value in values:
            number = self._value(value, size)
            if number is None:
                self._unresolved[variable.name] = f"`{value}`"
                return
            raw += (number & (1 << 8 * size) - 1).to_bytes(size, "little")
        start = self.place(variable.name)[0] - self._storage.ctypes.data
        raw = raw[:variable.nbytes]
        self._storage[start:start + len(raw)] = np.frombuffer(bytes(raw), np.uint8)

    def _value(self, text: str, size: int) -> int | None:
        if match := re.fullmatch(r"0[fFdD]([0-9a-fA-F]+)", text):
            return int(match[1], 16)
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
            return integer(text)
        match = re.fullmatch(r"(?:generic\()?([\w$]+)\)?(?:\+(\d+))?", text)
        if match is None or match[1] not in self._offsets or size != 8:
            return None
        return self.place(match[1])[0] + int(match[2] or 0)


def fill_constants(
    code: KernelCode, arguments: NDArray[np.uint8], dynamic_base: int, specials: dict[str, int], memory: ModuleMemory,
) -> tuple[NDArray[np.uint8], int]:
    """The constants of a launch: their storage and the address that their negative offsets count from."""
    storage = np.zeros(code.constant_bytes + 512, np.uint8)
    pad = -(storage.ctypes.data + code.constant_bytes) % 256
    top = pad + code.constant_bytes
    for constant, offset in code.constants.items():
        lanes = storage[top + offset:top + offset + 32 * constant.width].view(np.uint32 if constant.width == 4 else np.uint64)
        lanes[:] = _constant_value(constant.kind, constant.value, constant.width, arguments, dynamic_base, specials, memory)
    return storage, storage.ctypes.data + top


def _constant_value(
    kind: str, value: Any, width: int, arguments: NDArray[np.uint8], dynamic_base: int, specials: dict[str, int],
    memory: ModuleMemory,
) -> Any:
    mask = (1 << 8 * width) - 1
    if kind == "parameter":
        offset, size, signed = value
        return int.from_bytes(arguments[offset:offset + size].tobytes(), "little", signed=signed) & mask
    if kind == "special":
        return specials[value]
    if kind == "global":
        return (memory.address(value[0]) + value[1]) & mask
    if kind == "dynamic_shared":
        return (dynamic_base + value) & mask
    if kind == "parameter_address":
        return arguments.ctypes.data + value
    return value
