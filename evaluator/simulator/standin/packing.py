"""Packs launch arguments as CuPy does, and reports every argument that the kernel would read as something else.

CuPy does not know signatures: a Python int becomes int64, a float becomes double, None becomes a wild pointer, and an array
becomes its first address whatever its strides and dtype are. The driver then reads as many bytes as the parameter has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np

from evaluator.simulator.standin.arrays import ndarray
from evaluator.simulator.standin.memory import MemoryPointer
from evaluator.simulator.standin.signature import Parameter as Declared
from evaluator.simulator.standin.signature import Signature
from evaluator.simulator.standin.state import registry, session

POINTER_BYTES = 8
SCALARS: dict[str, str] = {
    "float": "float32", "double": "float64", "__half": "float16", "bool": "bool", "char": "int8", "signed char": "int8",
    "unsigned char": "uint8", "short": "int16", "unsigned short": "uint16", "int": "int32", "unsigned int": "uint32",
    "long long": "int64", "unsigned long long": "uint64",
}
"""C type -> NumPy dtype of the same representation."""
VECTORS = {"float2": "float32", "float3": "float32", "float4": "float32", "double2": "float64", "double4": "float64",
           "__half2": "float16"}
RAW_BITS = frozenset(["char", "signed char", "unsigned char", "void", "unsigned int", "unsigned long long", "unsigned short"])
"""Pointer types through which arrays of any dtype are read deliberately, as bits."""


class Slot(Protocol):
    """A parameter as the PTX declares it."""

    @property
    def name(self) -> str:
        """As in the PTX."""

    @property
    def offset(self) -> int:
        """In the parameter block, in bytes."""

    @property
    def size(self) -> int:
        """In bytes."""


@dataclass(frozen=True)
class Place:
    """One argument with what is known of its parameter, for messages."""

    index: int
    slot: Slot
    declared: Declared | None

    def __str__(self) -> str:
        if self.declared is None:
            return f"argument {self.index}"
        kind = self.declared.base + ("*" if self.declared.pointer else "")
        return f"argument {self.index} (`{kind} {self.declared.name}`)"

    @property
    def is_pointer(self) -> bool:
        """By the source; without it, unknown, and eight bytes may be one."""
        return self.declared.pointer if self.declared else self.slot.size == POINTER_BYTES

    @property
    def scalar(self) -> np.dtype[Any] | None:
        """The dtype of a scalar parameter, where the source shows a plain C type."""
        known = None if self.declared is None or self.declared.pointer else SCALARS.get(self.declared.base)
        return np.dtype(known) if known else None


def pack(kernel: str, args: Sequence[Any], slots: Sequence[Slot], signature: Signature | None) -> bytes:
    """The parameter block, in bytes. Reports argument_mismatch, null_pointer, non_contiguous_argument; raises on errors.

    Raises TypeError for an object that CuPy refuses too (a NumPy array in place of a device array, a torch tensor).
    """
    if len(args) != len(slots):
        names = f" ({', '.join(p.name for p in signature.parameters)})" if signature else ""
        _mismatch(kernel, f"the kernel takes {len(slots)} arguments{names}, {len(args)} were passed")
    block = bytearray(max((slot.offset + slot.size for slot in slots), default=0))
    for index, (slot, arg) in enumerate(zip(slots, args, strict=True)):
        place = Place(index, slot, signature.parameters[index] if signature else None)
        block[slot.offset:slot.offset + slot.size] = _bytes(kernel, place, arg, args)
    return bytes(block)


def _bytes(kernel: str, place: Place, arg: Any, args: Sequence[Any]) -> bytes:
    if arg is None:
        session().report_call("null_pointer", f"{place} is None, which CuPy 13 passes as a wild pointer; "
                              "pass numpy.uintp(0) or an array", kernel=kernel)
    if isinstance(arg, ndarray):
        return _array(kernel, place, arg, args)
    if isinstance(arg, MemoryPointer):
        return _address(kernel, place, arg.ptr)
    if isinstance(arg, np.ndarray):
        return _by_value(kernel, place, arg)
    if isinstance(arg, (bool, int, float, complex, np.generic)):
        return _scalar(kernel, place, arg)
    hint = "; wrap it with cupy.from_dlpack, or pass .data_ptr()" if hasattr(arg, "data_ptr") else ""
    raise TypeError(f"Unsupported type {type(arg)} for {place} of kernel {kernel}{hint}")


def _array(kernel: str, place: Place, array: ndarray, args: Sequence[Any]) -> bytes:
    if not place.is_pointer or place.slot.size != POINTER_BYTES:
        _mismatch(kernel, f"{place} is no pointer, but an array of {array.dtype} was passed")
    expected = _pointed_at(place.declared) if place.declared else None
    if expected is not None and expected != array.dtype and not _same_bits(expected, array.dtype):
        _mismatch(kernel, f"{place} points at {expected}, but the array holds {array.dtype}: "
                  f"the kernel would misread its bytes; convert with .astype(cupy.{expected})")
    if not array.flags.c_contiguous and not _strides_passed(array, args):
        session().report_call(
            "non_contiguous_argument", f"{place} is a strided view (shape {array.shape}, strides {array.strides} bytes); the "
            "kernel gets only the first address and no strides: use cupy.ascontiguousarray, or pass the strides",
            kernel=kernel, severity="warning")
    return array.data.ptr.to_bytes(POINTER_BYTES, "little")


def _address(kernel: str, place: Place, address: int) -> bytes:
    if address and registry.find(address) is None:
        _mismatch(kernel, f"{place}: address {address:#x} belongs to no live array; was the tensor freed before the launch? "
                  "Keep it in a variable")
    return address.to_bytes(POINTER_BYTES, "little")


def _by_value(kernel: str, place: Place, array: np.ndarray[Any, Any]) -> bytes:
    """A NumPy array of size one is passed by value: right for a struct, wrong where the kernel wants a pointer."""
    if (place.declared and place.declared.pointer) or array.size != 1 or array.nbytes != place.slot.size:
        _mismatch(kernel, f"{place} gets a numpy.ndarray, which is host memory: pass cupy.asarray(...) instead")
    return array.tobytes()


def _scalar(kernel: str, place: Place, value: Any) -> bytes:
    python = not isinstance(value, np.generic)
    packed = _as_cupy_packs(value)
    if place.declared and place.declared.pointer:
        if packed.dtype.kind not in "iu" or packed.nbytes != POINTER_BYTES:
            _mismatch(kernel, f"{place} is a pointer, but {_shown(value)} was passed")
        return _address(kernel, place, int(packed))
    wanted = place.scalar
    if wanted is not None:
        _check_scalar(kernel, place, value, packed, wanted)
    elif packed.nbytes < place.slot.size or (python and isinstance(value, float) and place.slot.size < packed.nbytes):
        _mismatch(kernel, f"{place} has {place.slot.size} bytes, but {_shown(value)} is passed as {packed.dtype} "
                  f"({packed.nbytes} bytes)")
    return packed.tobytes()[:place.slot.size]


def _check_scalar(kernel: str, place: Place, value: Any, packed: np.generic, wanted: np.dtype[Any]) -> None:
    """The bytes that the kernel reads must mean the value that was passed."""
    fix = f"pass numpy.{wanted}({value!r})" if not isinstance(value, np.generic) else f"pass numpy.{wanted}(...)"
    whole = packed.dtype.kind in "iub"
    if whole != (wanted.kind in "iub") or (not whole and packed.dtype != wanted):
        _mismatch(kernel, f"{place} reads a {wanted}, but CuPy passes {_shown(value)} as {packed.dtype}: the kernel would "
                  f"see other bits; {fix}")
    if packed.nbytes < wanted.itemsize:
        _mismatch(kernel, f"{place} reads {wanted.itemsize} bytes, but {packed.dtype} has {packed.nbytes}; {fix}")
    if whole and wanted.kind in "iu" and not _fits(int(packed), wanted):
        _mismatch(kernel, f"{place}: {int(packed)} does not fit {wanted}; widen the parameter to long long")


def _fits(value: int, wanted: np.dtype[Any]) -> bool:
    """As many bits as the type has, whatever their sign is called: -1 may stand for the largest unsigned value."""
    bits = 8 * wanted.itemsize
    return -(1 << (bits - 1)) <= value < (1 << bits if wanted.kind == "u" else 1 << (bits - 1))


def _as_cupy_packs(value: Any) -> np.generic:
    if isinstance(value, np.generic):
        return value
    kind = type(value)
    if kind in (bool, int):
        kind = np.uint64 if value >= 1 << 63 else np.int64
    packed: np.generic = {float: np.float64, complex: np.complex128}.get(kind, kind)(value)
    return packed


def _pointed_at(declared: Declared) -> np.dtype[Any] | None:
    """The element dtype behind a pointer; None where any dtype may be read through it, or the type is not known."""
    if declared.base in RAW_BITS:
        return None
    name = SCALARS.get(declared.base) or VECTORS.get(declared.base)
    return np.dtype(name) if name else None


def _same_bits(expected: np.dtype[Any], got: np.dtype[Any]) -> bool:
    integers = expected.kind in "iub" and got.kind in "iub" and expected.itemsize == got.itemsize
    return integers or (got.kind == "c" and got.itemsize == 2 * expected.itemsize and expected.kind == "f")


def _strides_passed(array: ndarray, args: Sequence[Any]) -> bool:
    """The kernel is told the strides, in elements or bytes: the view is meant."""
    numbers = {int(arg) for arg in args if isinstance(arg, (int, np.integer))}
    steps = [step for step, n in zip(array.strides, array.shape, strict=True) if n > 1 and step != array.itemsize]
    return bool(steps) and all(step in numbers or step // array.itemsize in numbers for step in steps)


def _shown(value: Any) -> str:
    kind = "Python " + type(value).__name__ if not isinstance(value, np.generic) else f"numpy.{value.dtype}"
    return f"{kind} {value!r}" if not isinstance(value, np.generic) else f"{kind} {value}"


def _mismatch(kernel: str, message: str) -> NoReturn:
    session().report_call("argument_mismatch", message, kernel=kernel)
    raise AssertionError("an error finding raises")
