"""One PTX instruction as text: opcode, modifiers, operands."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evaluator.simulator.ptx_module import Unsupported


@dataclass
class Op:
    """One instruction: `opcode.modifiers operands`."""

    text: str
    opcode: str
    modifiers: list[str]
    operands: list[str]
    line: int
    name: str
    """Opcode with modifiers, as written."""

    @property
    def type(self) -> str:
        """The last modifier, PTX's operation type."""
        return self.modifiers[-1] if self.modifiers else ""

    def take(self, *names: str) -> str:
        """Removes and returns the first of `names` that is present; "" if none is."""
        for name in names:
            if name in self.modifiers:
                self.modifiers.remove(name)
                return name
        return ""

    def take_type(self) -> str:
        """Removes and returns the last modifier."""
        if not self.modifiers:
            raise self.refuse()
        return self.modifiers.pop()

    def refuse(self, why: str = "") -> Unsupported:
        """The refusal of this instruction."""
        return Unsupported(f"PTX instruction `{self.name}`{': ' + why if why else ''}", self.line or None)

    def expect(self, count: int, most: int | None = None) -> None:
        """Refuses an unexpected number of operands."""
        if not count <= len(self.operands) <= (count if most is None else most):
            raise self.refuse(f"{len(self.operands)} operands")


def split_operands(text: str) -> list[str]:
    """Splits at commas outside of braces, brackets and parentheses."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character in "{[(") - (character in "}])")
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    if current.strip():
        parts.append(current.strip())
    return parts


def integer(text: str) -> int:
    """A PTX integer literal: decimal, 0x hexadecimal, 0 octal, optional U."""
    text = text.rstrip("U")
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("-")
    if re.fullmatch(r"0[0-7]+", digits):
        return sign * int(digits, 8)
    return sign * int(digits, 0)
