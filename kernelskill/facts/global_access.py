"""Global-memory accesses of a kernel's text, and their addresses for given threads.

Addresses are evaluated with large stand-ins for sizes, first iteration of every loop: two addresses that are far apart
lie in different rows. An index that comes from memory or from an unknown function has no address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from kernelskill.facts.c_expressions import evaluate
from kernelskill.facts.kernel_scope import KernelScope
from kernelskill.facts.statements import Loop
from kernelskill.tasks.cuda_text import closing

FAR = 100_000
"""Elements: a larger distance is a different row."""
_SIZE = 1_000_003
_GRID = (97, 89, 83)
_POINTER_WORD = re.compile(r"[A-Za-z_]\w*")
_DEREFERENCE = re.compile(r"\*\s*(?:reinterpret_cast\s*<[^<>]*>\s*\(|\(\s*(?:const\s+)?\w+\s*\*\s*\))\s*\(?\s*&?\s*$")
_POINTER_SUM = re.compile(r"(?<![\w)\]])\s*\*\s*(?:reinterpret_cast\s*<[^<>]*>\s*)?\(")
_CAST = re.compile(r"(?<!\*)(?<!\*\s)\breinterpret_cast\s*<[^<>]*>\s*\(")
_STATEMENT_BEFORE = re.compile(r"(?:^|[;{}(,=+\-<>?:&|!]|\breturn)\s*$")
_ADDRESS_OF = re.compile(r"(?<!&)&\s*$")
_LOAD_CALL = re.compile(r"__ld\w+\s*\(\s*&\s*$")
_STORE_CALL = re.compile(r"\b__st(?:wb|cg|cs|wt)\s*\(\s*(?:reinterpret_cast\s*<[^<>]*>\s*\(\s*)?&?\s*$")
_ATOMIC_CALL = re.compile(r"\batomic[A-Z]\w*\s*\(\s*&?\s*$")
_ELEMENT = re.compile(r"\b(float|int|uint|half|__half|double|char|uchar|short|longlong|long\s+long|__nv_bfloat16)([248])?\b")
_ELEMENT_BYTES = {"float": 4, "int": 4, "uint": 4, "half": 2, "__half": 2, "double": 8, "char": 1, "uchar": 1, "short": 2,
                  "longlong": 8, "long long": 8, "__nv_bfloat16": 2}

Kind = Literal["load", "store", "atomic"]


@dataclass(frozen=True)
class Site:
    """A place in the text that names a global address: `pointer` + `index`, from `start` to `end`."""

    pointer: str
    index: str
    start: int
    end: int


@dataclass(frozen=True)
class Access:
    """One access in the text: `pointer[index]` or `*(pointer + index)`."""

    kind: Kind
    pointer: str
    index: str
    start: int
    width: int
    """Elements moved at once, from a vector type in the cast or the pointer's declaration."""
    lane_bytes: int | None
    """Bytes moved at once; None for a type the scanner does not know."""


@dataclass(frozen=True)
class Thread:
    """A thread of a block of shape `block`."""

    index: tuple[int, int, int]
    block: tuple[int, int, int]
    block_index: tuple[int, int, int] = (1, 1, 1)


class GlobalAccesses:
    """The accesses of one kernel."""

    def __init__(self, scope: KernelScope) -> None:
        self.scope = scope
        parameters = scope.kernel.parameters
        self._sizes = {p.name: _SIZE * (2 * i + 1) for i, p in enumerate(q for q in parameters if not q.is_pointer)}

    @cached_property
    def pointers(self) -> Mapping[str, str]:
        """Names that point to global memory, with their element types: parameters and locals made from them."""
        found = {p.name: p.type for p in self.scope.kernel.parameters if p.is_pointer}
        for _ in range(4):
            for name, local in ((d.name, d) for declared in self.scope.declarations.values() for d in declared):
                if name not in found and (local.is_pointer or "auto" in local.type):
                    words = _POINTER_WORD.findall(re.sub(r"\[[^\]]*\]", " ", local.value))
                    is_address = "&" in local.value or "[" not in local.value
                    if is_address and any(word in found for word in words):
                        found[name] = local.value if "cast" in local.value else local.type
        return {name: kind for name, kind in found.items() if name not in {a.name for a in self.scope.shared_arrays}}

    @cached_property
    def all(self) -> tuple[Access, ...]:
        """Every access, in the order of the text."""
        if not self.pointers:
            return ()
        names = "|".join(map(re.escape, self.pointers))
        sites = [*self._subscripts(names), *self._dereferences(names), *self._cast_subscripts(), *self._sums()]
        found = [access for site in sites for access in self._at(site)]
        return tuple(sorted(found, key=lambda access: access.start))

    def _subscripts(self, names: str) -> Iterator[Site]:
        """`x[index]`"""
        text = self.scope.text
        for match in re.finditer(rf"(?<![\w.])({names})\s*\[", text):
            close = closing(text, match.end() - 1)
            if close >= 0 and not self._declares(match.start()):
                yield Site(match[1], text[match.end() : close], match.start(), close + 1)

    def _dereferences(self, names: str) -> Iterator[Site]:
        """`*x`"""
        text = self.scope.text
        for match in re.finditer(rf"\*\s*({names})\b(?!\s*\[)", text):
            if _STATEMENT_BEFORE.search(text[max(0, match.start() - 40) : match.start()]):
                yield Site(match[1], "0", match.start(1), match.end())

    def _cast_subscripts(self) -> Iterator[Site]:
        """`reinterpret_cast<float4*>(x + offset)[index]`"""
        text = self.scope.text
        for match in _CAST.finditer(text):
            close = closing(text, match.end() - 1)
            bracket = re.compile(r"\s*\[").match(text, close + 1) if close >= 0 else None
            site = self._sum(match.end(), close) if bracket else None
            if bracket and site:
                end = closing(text, bracket.end() - 1)
                yield Site(site.pointer, f"({text[bracket.end() : end]}) + ({site.index})", match.end(), end + 1)

    def _sums(self) -> Iterator[Site]:
        """`*(x + offset)` and `*reinterpret_cast<float4*>(x + offset)`"""
        for match in _POINTER_SUM.finditer(self.scope.text):
            site = self._sum(match.end(), closing(self.scope.text, match.end() - 1))
            if site:
                yield site

    def _sum(self, start: int, close: int) -> Site | None:
        """The pointer and offset of `x + offset` between the brackets; None when it starts with no global pointer."""
        inside = self.scope.text[start : max(start, close)]
        word = _POINTER_WORD.match(inside.lstrip(" (&"))
        if word is None or word[0] not in self.pointers or "[" in inside:
            return None
        at = start + inside.index(word[0])
        return Site(word[0], f"0 {inside[at - start + len(word[0]) :]}", at, close + 1)

    def _declares(self, start: int) -> bool:
        """Whether the place takes an address for a pointer variable instead of accessing memory."""
        statement = self.scope.text[max(self.scope.text.rfind(c, 0, start) for c in ";{}(,") + 1 : start]
        return bool(re.search(r"\*\s*(?:const\s+)?(?:__restrict__\s+)?\w+\s*=\s*&\s*$", statement))

    def _at(self, site: Site) -> list[Access]:
        """What happens at the site: a load, a store, both (`+=`), an atomic, or nothing (an address is taken)."""
        text, end = self.scope.text, site.end
        before = text[max(0, site.start - 160) : site.start]
        width, lane_bytes = self._type(site.pointer, before)

        def access(kind: Kind) -> Access:
            return Access(kind, site.pointer, site.index, site.start, width, lane_bytes)

        if _ATOMIC_CALL.search(before):
            return [access("atomic")]
        if _STORE_CALL.search(before):
            return [access("store")]
        cast = _DEREFERENCE.search(before)
        if cast:
            close = closing(text, site.start - len(before) + cast.start() + cast[0].find("("))
            end = close + 1 if "reinterpret_cast" in cast[0] and close >= end else end
        elif _ADDRESS_OF.search(before) and not _LOAD_CALL.search(before):
            return []
        after = re.match(r"[\s)]*(?:\.[xyzw]\s*)?([-+*/|&^]?=(?!=))?", text[end:])
        operator = after[1] if after else None
        if operator is None:
            return [access("load")]
        return [access("store")] if operator == "=" else [access("load"), access("store")]

    def _type(self, pointer: str, before: str) -> tuple[int, int | None]:
        """(elements, bytes) of the type in a cast just before the pointer, else of the pointer's own type."""
        cast = re.search(r"<([^<>]*)>\s*\(\s*&?\s*$|\(([^()]*)\*\s*\)\s*\(?\s*&?\s*$", before)
        found = (_ELEMENT.search((cast[1] or cast[2]) if cast else "") or _ELEMENT.search(self.pointers[pointer]))
        if found is None:
            return 1, None
        width = int(found[2] or 1)
        return width, _ELEMENT_BYTES[" ".join(found[1].split())] * width

    def address(self, access: Access, thread: Thread) -> int | None:
        """The access's offset in elements for the thread; None where the text does not show it."""
        known: dict[tuple[str, int], int | None] = {}
        return evaluate(f"({access.pointer}) + ({access.index})", lambda name: self._resolve(name, thread, access.start, known))

    def _resolve(self, name: str, thread: Thread, position: int, known: dict[tuple[str, int], int | None]) -> int | None:
        """The value that `name` has at `position` of the text, every loop in its first iteration."""
        builtin, _, axis = name.partition(".")
        if axis in ("x", "y", "z"):
            values = {"threadIdx": thread.index, "blockIdx": thread.block_index, "blockDim": thread.block, "gridDim": _GRID}
            return values[builtin]["xyz".index(axis)] if builtin in values else None
        local = self.scope.declared(name, position)
        if local is None:
            return 0 if name in self.pointers else {**self._sizes, "warpSize": 32, **self.scope.constants}.get(name)
        place = (name, local.start)
        if place not in known:
            known[place] = None  # what a definition that comes back to itself gets
            # A name in its own initialiser means an outer variable: look before the declaration.
            known[place] = evaluate(local.value or self._first_value(name, position),
                                    lambda word: self._resolve(word, thread, local.start - (word == name), known))
        return known[place]

    def _first_value(self, name: str, position: int) -> str:
        """What the loop around `position` that counts with `name` starts it with."""
        around = (loop for loop in self.scope.loops if loop.start <= position < loop.end)
        return next((loop.initial for loop in around if loop.variable == name), "")

    def enclosing(self, access: Access) -> list[Loop]:
        """Loops around the access, outer first."""
        return [loop for loop in self.scope.loops if loop.body_start <= access.start < loop.end]
