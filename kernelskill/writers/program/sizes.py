"""Sizes that keep their origin: an extent is a number now, and a statement that finds it again from other inputs."""

from __future__ import annotations

from typing import Any

from kernelskill.writers.program.ir import Size


class Dim(int):
    """An extent: its value at the traced sizes, and its name in the program's table of sizes (or the number itself)."""

    text: str
    table: Sizes

    @staticmethod
    def make(value: int, text: str, table: Sizes) -> Dim:
        """The value under that name."""
        dim = Dim(value)
        dim.text, dim.table = text, table
        return dim

    def _with(self, other: Any, symbol: str, value: int, swap: bool = False) -> Any:
        if (symbol in "+-" and int(other) == 0 and not (swap and symbol == "-")) or (symbol in "*//" and int(other) == 1):
            return self
        left, right = (text_of(other), self.text) if swap else (self.text, text_of(other))
        return self.table.named(f"{left} {symbol} {right}", value)

    def __add__(self, other: Any) -> Any:
        return self._with(other, "+", int(self) + int(other)) if isinstance(other, int) else float(self) + other

    def __radd__(self, other: Any) -> Any:
        return self._with(other, "+", int(self) + int(other), True) if isinstance(other, int) else other + float(self)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, "-", int(self) - int(other)) if isinstance(other, int) else float(self) - other

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, "-", int(other) - int(self), True) if isinstance(other, int) else other - float(self)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, "*", int(self) * int(other)) if isinstance(other, int) else float(self) * other

    def __rmul__(self, other: Any) -> Any:
        return self._with(other, "*", int(self) * int(other), True) if isinstance(other, int) else other * float(self)

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, "//", int(self) // int(other)) if isinstance(other, int) else float(self) // other

    def __mod__(self, other: Any) -> Any:
        return self._with(other, "%", int(self) % int(other)) if isinstance(other, int) else float(self) % other


class Sizes:
    """The program's sizes in the order in which they are found."""

    def __init__(self) -> None:
        self.found: list[Size] = []
        self.free: set[str] = set()
        """Names of the arguments' own sizes: what a caller may choose."""
        self._by_text: dict[str, Dim] = {}

    def named(self, text: str, value: int) -> Dim:
        """The size with that statement; equal statements are one size."""
        if text not in self._by_text:
            name = f"S{len(self.found)}"
            self.found.append(Size(name, text, value))
            self._by_text[text] = Dim.make(value, name, self)
        return self._by_text[text]

    def of(self, value: int) -> Dim:
        """The number as a dimension: itself where it is one."""
        return value if isinstance(value, Dim) else Dim.make(int(value), str(int(value)), self)


def text_of(value: int) -> str:
    """The size's name, or the number."""
    return value.text if isinstance(value, Dim) else str(int(value))
