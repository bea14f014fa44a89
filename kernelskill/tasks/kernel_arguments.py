"""Arguments of a kernel launch, checked against the kernel's own signature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.errors import near_or_all
from kernelskill.tasks.cuda_text import CudaFunction, CudaParameter
from kernelskill.tasks.document import Table
from kernelskill.tasks.expressions import Expression

SCALARS = {
    "bool": "bool_", "char": "int8", "unsigned char": "uint8", "short": "int16", "unsigned short": "uint16",
    "int": "int32", "signed": "int32", "signed int": "int32", "int32_t": "int32",
    "unsigned": "uint32", "unsigned int": "uint32", "uint32_t": "uint32",
    "long": "int64", "long long": "int64", "long long int": "int64", "int64_t": "int64", "ptrdiff_t": "int64",
    "unsigned long": "uint64", "unsigned long long": "uint64", "unsigned long long int": "uint64", "uint64_t": "uint64",
    "size_t": "uint64", "float": "float32", "double": "float64",
}
"""C type of a by-value kernel parameter -> NumPy type that packs it (64-bit Linux: long has 8 bytes)."""
ELEMENTS = {
    **SCALARS, "bool": "bool", "half": "float16", "__half": "float16", "float2": "float32", "float4": "float32",
    "int2": "int32", "int4": "int32", "double2": "float64",
}
"""C element type of a pointer parameter -> dtype of the array it may point to."""
_LARGEST = {"int8": 2**7, "uint8": 2**8, "int16": 2**15, "uint16": 2**16, "int32": 2**31, "uint32": 2**32}


@dataclass(frozen=True)
class Array:
    """An output or temporary of the starting solution."""

    name: str
    shape: tuple[Expression, ...]
    dtype: str
    is_output: bool


@dataclass(frozen=True)
class Scalar:
    """A by-value kernel argument: a size expression or a constant, and the NumPy type that packs it."""

    value: Expression | float
    dtype: str

    @property
    def text(self) -> str:
        """The value as Python source."""
        return self.value.text if isinstance(self.value, Expression) else repr(self.value)


@dataclass(frozen=True)
class ArgumentReader:
    """Reads the `args` of one launch table."""

    table: Table
    inputs: tuple[str, ...]
    arrays: Mapping[str, Array]
    problems: tuple[Mapping[str, int], ...]

    def read(self, kernel: CudaFunction) -> tuple[str | Scalar, ...]:
        """One entry a kernel parameter. Raises TaskError when an entry cannot be what the parameter needs."""
        values = self.table.items("args", 'args = ["x", "y", "rows", "cols"]')
        if len(values) != len(kernel.parameters):
            signature = ", ".join(p.name for p in kernel.parameters)
            raise self.table.wrong(f"{len(values)} entries, kernel {kernel.name} takes {len(kernel.parameters)}: {signature}",
                                   "args")
        return tuple(self._argument(value, p) for value, p in zip(values, kernel.parameters, strict=True))

    def _argument(self, value: object, parameter: CudaParameter) -> str | Scalar:
        if isinstance(value, str) and (value in self.arrays or value in self.inputs):
            return self._array(value, parameter)
        if parameter.is_pointer:
            raise self.table.wrong(f"{value!r} is not an input or output, but parameter '{parameter.name}' is a pointer",
                                   "args", hint=near_or_all(str(value), [*self.inputs, *self.arrays]))
        return self._scalar(value, parameter)

    def _array(self, name: str, parameter: CudaParameter) -> str:
        if not parameter.is_pointer:
            raise self.table.wrong(f"'{name}' is an array, but parameter '{parameter.name}' is {parameter.type}", "args")
        element = ELEMENTS.get(parameter.type)
        if name in self.arrays and element is not None and element != self.arrays[name].dtype:
            raise self.table.wrong(f"'{name}' is {self.arrays[name].dtype}, but parameter '{parameter.name}' is "
                                   f"{parameter.type}*", "args")
        return name

    def _scalar(self, value: object, parameter: CudaParameter) -> Scalar:
        dtype = SCALARS.get(parameter.type)
        if dtype is None:
            raise self.table.wrong(f"cannot pass a value for parameter '{parameter.name}' of type '{parameter.type}'", "args",
                                   hint="use int, long long, float or double, or write the start as a Python solution")
        if isinstance(value, float):
            if not dtype.startswith("float"):
                raise self.table.wrong(f"{value} is no whole number, but parameter '{parameter.name}' is {parameter.type}",
                                       "args")
            return Scalar(value, dtype)
        sizes = self.problems[0]
        if isinstance(value, str) and value.isidentifier() and value not in sizes:
            raise self.table.wrong(f"'{value}' is not an input, output or size", "args",
                                   hint=near_or_all(value, [*self.inputs, *self.arrays, *sizes]))
        expression = self.table.expression(value, sizes, "args")
        largest = max(self.table.evaluate(expression, s, "args") for s in self.problems)
        if largest >= _LARGEST.get(dtype, 2**63):
            raise self.table.wrong(f"{expression.text} = {largest} does not fit parameter '{parameter.name}' of type "
                                   f"{parameter.type}", "args", hint="use long long in the kernel")
        return Scalar(expression, dtype)
