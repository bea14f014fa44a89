"""One kernel's text with what it calls: constants, declarations, shared arrays, and device functions put in place.

Function-like macros are not expanded: what hides in one is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from kernelskill.facts.c_expressions import evaluate
from kernelskill.facts.statements import Loop, find_loops
from kernelskill.tasks.cuda_text import CudaFunction, CudaText, closing, split_top_level

_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+)$", re.M)
_CONSTANT = re.compile(r"\b(?:constexpr|const)\s+(?:static\s+)?(?:unsigned\s+)?(?:int|unsigned|size_t|long long|long)\s+(\w+)"
                       r"\s*=\s*([^;,]+);")
_TYPE = (r"(?:unsigned\s+long\s+long|unsigned\s+int|unsigned|long\s+long|long|int|short|size_t|ptrdiff_t|u?int(?:8|16|32|64)_t"
         r"|auto|float|double|half2?|__half2?|__nv_bfloat16|float[234]|double2|u?int[24]|bool|T|scalar_t|acc_t{structs})")
_DECLARATION = (r"(?<![\w.])((?:(?:const|constexpr|static|volatile|register)\s+)*" + _TYPE + r"\b(?:\s+const\b)?)"
                r"\s*(?=[*&\w(])")
_STRUCT = re.compile(r"\bstruct\s+(?:__align__\s*\([^)]*\)\s*|alignas\s*\([^)]*\)\s*)?(\w+)\s*\{")
_SHARED = re.compile(r"__shared__\s+(?:__align__\s*\([^)]*\)\s*|alignas\s*\([^)]*\)\s*)*([^;=]+)")
_DECLARATOR = re.compile(r"^\s*(?P<stars>[*&\s]*(?:const\s+)?(?:__restrict__\s+)?)(?P<name>[A-Za-z_]\w*)\s*"
                         r"(?P<extents>(?:\[[^\]]*\]\s*)*)"
                         r"(?:=\s*(?P<value>.*)|\((?P<construct>.*)\)|\{(?P<braces>.*)\})?$", re.S)
_INTEGERS = re.compile(r"\b(?:unsigned|long|int|short|size_t|ptrdiff_t|u?int(?:8|16|32|64)_t|u?int[24]|bool)\b")
_ASM = re.compile(r"\basm\s*(?:volatile|__volatile__)?\s*\(")
_CALL = r"(?<![\w.])({names})\s*(<[^<>;(){{}}]*>)?\s*\("
_MOST_INLINED = 60_000
"""Characters that called functions may add to a kernel's text; calls beyond that stay calls."""


@dataclass(frozen=True)
class Declaration:
    """A local variable or array; `value` is its initialiser ("" for none), `start` its place in the scope's text."""

    name: str
    type: str
    is_pointer: bool
    extents: tuple[str, ...]
    value: str
    start: int
    end: int
    """Where its scope ends."""

    @property
    def is_float(self) -> bool:
        """Whether it holds floating-point values: any type that is not known for integers, structs included."""
        return not _INTEGERS.search(self.type) and not self.is_pointer


@dataclass(frozen=True)
class SharedArray:
    """A `__shared__` array; a dynamic one has the extent ""."""

    name: str
    extents: tuple[str, ...]


class KernelScope:
    """A kernel as launched: `name` may carry template arguments."""

    def __init__(self, cuda: CudaText, name: str) -> None:
        base, _, arguments = name.partition("<")
        self.cuda = cuda
        self.kernel: CudaFunction = cuda.kernels[base.strip()]
        values = split_top_level(arguments.rsplit(">", 1)[0]) if arguments else []
        self.template = dict(zip(self.kernel.template_parameters, values, strict=False))

    @cached_property
    def constants(self) -> Mapping[str, int]:
        """Integer constants: macros, `constexpr` and `const` variables, template arguments."""
        texts = {**dict(_MACRO.findall(self.cuda.masked)), **dict(_CONSTANT.findall(self.cuda.masked)), **self.template}
        known: dict[str, int] = {}
        for _ in range(4):  # constants made of constants
            for name, text in texts.items():
                value = evaluate(text, known.get)
                if value is not None:
                    known[name] = value
        return known

    @cached_property
    def reached(self) -> tuple[CudaFunction, ...]:
        """The kernel and every device function it calls, directly or not, each once."""
        found, waiting = {self.kernel.name: self.kernel}, [self.kernel]
        while waiting:
            body = waiting.pop().body
            for name, function in self.cuda.device_functions.items():
                if name not in found and re.search(rf"(?<![\w.]){name}\s*(?:<[^;(){{}}]*>)?\s*\(", body):
                    found[name] = function
                    waiting.append(function)
        return tuple(found.values())

    @cached_property
    def written(self) -> str:
        """Masked text of everything reached, each function once, as written."""
        return "\n".join(function.body for function in self.reached)

    @cached_property
    def inline_ptx(self) -> str:
        """Every `asm` statement of what is reached, literals as written."""
        return "\n".join(function.with_literals[match.start() : closing(function.body, match.end() - 1) + 1]
                         for function in self.reached for match in _ASM.finditer(function.body))

    @cached_property
    def text(self) -> str:
        """The kernel's body with every called device function's body put behind its call, arguments bound by name."""
        return self._inline(_substituted(self.kernel.body, self.template), frozenset(), _MOST_INLINED)

    def _inline(self, body: str, active: frozenset[str], room: int) -> str:
        """`active`: the functions being put in place, which are not put into themselves."""
        names = [name for name in self.cuda.device_functions if name in body and name not in active]
        if not names:
            return body
        pattern = re.compile(_CALL.format(names="|".join(map(re.escape, names))))
        parts, position = [], 0
        for match in pattern.finditer(body):
            close = closing(body, match.end() - 1)
            if close < 0 or match.start() < position:
                continue
            function = self.cuda.device_functions[match[1]]
            values = split_top_level(match[2][1:-1]) if match[2] else []
            inner = _substituted(function.body, dict(zip(function.template_parameters, values, strict=False)))
            inner = _bound(function, inner, split_top_level(body[match.end() : close]))
            if len(inner) > room:
                continue
            inner = self._inline(inner, active | {function.name}, room - len(inner))
            parts += [body[position : close + 1], inner]
            position, room = close + 1, room - len(inner)
        return "".join([*parts, body[position:]])

    @cached_property
    def shared_arrays(self) -> tuple[SharedArray, ...]:
        """Arrays declared `__shared__` in the kernel or what it calls."""
        found: dict[str, SharedArray] = {}
        for match in _SHARED.finditer(self.text):
            for declarator in split_top_level(match[1]):
                name = re.search(r"(\w+)\s*((?:\[[^\]]*\]\s*)+)$", declarator)
                if name:
                    found.setdefault(name[1], SharedArray(name[1], _extents(name[2])))
        return tuple(found.values())

    @cached_property
    def declarations(self) -> Mapping[str, tuple[Declaration, ...]]:
        """Local variables by name, in the order of the text; shared arrays are not among them."""
        found: dict[str, list[Declaration]] = {}
        structs = "".join(f"|{name}" for name in _STRUCT.findall(self.cuda.masked))
        for match in re.finditer(_DECLARATION.replace("{structs}", structs), self.text):
            if re.search(r"__shared__[^;{}]*$", self.text[max(0, match.start() - 120) : match.start()]):
                continue
            for declarator in split_top_level(_declarators(self.text, match.end())):
                parts = _DECLARATOR.match(declarator)
                if parts:
                    value = next((parts[g] for g in ("value", "construct", "braces") if parts[g] is not None), "")
                    declaration = Declaration(parts["name"], match[1], "*" in parts["stars"], _extents(parts["extents"]),
                                              value.strip(), match.start(), self._scope_end(match.start()))
                    found.setdefault(parts["name"], []).append(declaration)
        return {name: tuple(declared) for name, declared in found.items()}

    def declared(self, name: str, position: int) -> Declaration | None:
        """The declaration of `name` that holds at `position`; None for what is no local variable."""
        visible = [d for d in self.declarations.get(name, ()) if d.start <= position < d.end]
        return visible[-1] if visible else None

    @cached_property
    def _blocks(self) -> list[tuple[int, int]]:
        """Extents in which declarations live: braces, and loops for the variables of their header."""
        braces = [(m.start(), closing(self.text, m.start())) for m in re.finditer(r"\{", self.text)]
        return sorted([(start, end) for start, end in braces if end >= 0] + [(loop.start, loop.end) for loop in self.loops])

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Every loop of the text, outer before inner."""
        return tuple(find_loops(self.text))

    def _scope_end(self, position: int) -> int:
        return min((end for start, end in self._blocks if start < position < end), default=len(self.text))


def _extents(brackets: str) -> tuple[str, ...]:
    return tuple(extent.strip() for extent in re.findall(r"\[([^\]]*)\]", brackets))


def _declarators(text: str, start: int) -> str:
    """Text of a declaration after its type, up to the `;` (or the bracket) that ends it."""
    depth = 0
    for index in range(start, min(len(text), start + 2000)):
        if text[index] in "([{":
            depth += 1
        elif text[index] in ")]}":
            depth -= 1
            if depth < 0:
                return text[start:index]
        elif text[index] == ";" and depth == 0:
            return text[start:index]
    return ""


def _substituted(body: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        body = re.sub(rf"\b{re.escape(name)}\b", value, body)
    return body


def _bound(function: CudaFunction, body: str, arguments: list[str]) -> str:
    """The body with its parameters tied to the call's arguments.

    Arrays and references take the argument's name; other parameters become local variables.
    """
    declared = []
    for parameter, argument in zip(function.parameters, arguments, strict=False):
        if not parameter.name or parameter.name == argument:
            continue
        base = re.match(r"[A-Za-z_]\w*$", argument)
        if base and (parameter.is_pointer or parameter.is_reference):
            body = re.sub(rf"(?<![\w.])\b{parameter.name}\b", argument, body)
        elif not parameter.is_reference:
            star = "*" if parameter.is_pointer else ""
            declared.append(f"{parameter.type} {star}{parameter.name} = {argument};")
    return "{" + " ".join(declared) + body[1:]
