"""The host side's words in the two forms of a module: cupy arrays (native) or torch tensors (KernelBench)."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

C_WORDS = """
auto bool break case char class const constexpr continue default delete do double else enum extern false float for goto if
inline int long namespace new operator private public register return short signed sizeof static struct switch template this
true typedef typename union unsigned using virtual void volatile while asm
"""
OWN_WORDS = """
acc c cache col cols count cupy first functools gap half i in j k lane mean n norm offset other out part partial r result row
rows scale self share shift slots squares start sum tile top torch total unit units v value warps
"""
RESERVED = frozenset((C_WORDS + OWN_WORDS).split())
"""Names that an input must not have in the generated code: C's, and those the templates use themselves."""


def safe_name(name: str, taken: Iterable[str] = ()) -> str:
    """An input's name as Python and C both take it: names the generated code uses itself get a suffix."""
    clash = name in RESERVED or name in set(taken) or keyword.iskeyword(name) or name.startswith("_")
    return f"{name}_in" if clash else name


def product(factors: Sequence[str]) -> str:
    """The product as a Python expression; 1 for none."""
    return " * ".join(factors) if factors else "1"


def ceil_div(a: str, b: int | str) -> str:
    """ceil(a / b) for a name `a`, as a Python expression."""
    return a if b == 1 else f"-(-{a} // {b})"


def shape(dims: Sequence[str]) -> str:
    """A tuple as a Python expression."""
    return f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(dims)})"


def indented(lines: Iterable[str]) -> list[str]:
    """The statements one level deeper."""
    return [f"    {line}" for line in lines]


def wrapped(head: str, arguments: Sequence[str], tail: str) -> list[str]:
    """A call in one line where it is short, else with one argument a line."""
    line = f"{head}{', '.join(arguments)}{tail}"
    if len(line) <= 96:
        return [line]
    return [head, *(f"    {a}," for a in arguments[:-1]), f"    {arguments[-1]}{tail}"]


def launch_bounds(threads: int) -> str:
    """The kernel attribute that keeps a large block launchable: 256 threads fit with any number of registers, more do not."""
    return f" __launch_bounds__({threads})" if threads > 256 else ""


@dataclass(frozen=True)
class Host:
    """Which form the host code takes."""

    torch: bool

    def pointer(self, name: str) -> str:
        """The array as a kernel argument."""
        return f"{name}.data_ptr()" if self.torch else name

    def empty(self, shape: str, like: str) -> str:
        """A new uninitialised float32 array on the device of `like`."""
        if self.torch:
            return f"torch.empty({shape}, dtype=torch.float32, device={like}.device)"
        return f"cupy.empty({shape}, dtype=cupy.float32)"

    def launch(self, kernel: str, blocks: str, block: Sequence[int], arguments: Sequence[str]) -> list[str]:
        """Statements that launch a one-dimensional grid; arguments are already in kernel form."""
        threads = shape([str(b) for b in block])
        return [f"blocks = {blocks}", *wrapped(f'_launch("{kernel}", (blocks,), {threads}, (', arguments, "))")]
