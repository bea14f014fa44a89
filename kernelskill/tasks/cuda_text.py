"""CUDA C source as text: comments and literals masked, functions found with their parameters and bodies.

A scanner, not a compiler: it looks at the source as written, before the preprocessor (blocks under `#if 0` are masked).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_LEXEME = re.compile(
    r'(?P<keep>extern\s*"C")|(?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))'
    r'|(?P<literal>R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])*\')',
    re.S,
)
_DISABLED = re.compile(r"^[ \t]*#[ \t]*if[ \t]+(?:0|false)[ \t]*$", re.M)
_CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b[^\n]*$", re.M)
_QUALIFIER = re.compile(r"\b__(global|device)__\b")
_NAME_CALL = re.compile(r"([A-Za-z_]\w*)\s*\(|[;={]|\[")
_NOT_A_NAME = re.compile(r"__\w+__|__attribute__|alignas|decltype|noexcept")
_PARAMETER = re.compile(r"^(?P<type>.*?)\s*(?P<name>[A-Za-z_]\w*)?\s*(?P<array>(?:\[[^\]]*\]\s*)*)$", re.S)
_CLOSING = {"(": ")", "{": "}", "[": "]"}


@dataclass(frozen=True)
class CudaParameter:
    """One parameter of a CUDA function; `type` is without `const`, `volatile`, `__restrict__`, `*` and `&`."""

    name: str
    type: str
    is_pointer: bool
    is_const: bool
    is_restrict: bool
    is_reference: bool


@dataclass(frozen=True)
class CudaFunction:
    """A `__global__` or `__device__` function with a body. `body` is masked text including its braces."""

    name: str
    is_kernel: bool
    parameters: tuple[CudaParameter, ...]
    body: str
    line: int
    extern_c: bool
    template_parameters: tuple[str, ...]
    with_literals: str
    """The body without comments, literals as written: inline PTX is in them."""


def mask(source: str, *, literals: bool = True) -> str:
    """The source with comments and literal contents blanked; same length, same line breaks. `extern "C"` survives.

    `literals=False` keeps the literals.
    """

    def blank(found: re.Match[str]) -> str:
        text = found[0]
        if found["keep"] or (found["literal"] and not literals):
            return text
        hollow = re.sub(r"[^\n]", " ", text)
        return hollow if found["comment"] else '"' + hollow[1:-1] + '"'

    return _mask_disabled(_LEXEME.sub(blank, source))


def _mask_disabled(text: str) -> str:
    """Blank what stands between `#if 0` and its `#else`, `#elif` or `#endif`."""
    start = _DISABLED.search(text)
    while start:
        depth, end = 0, len(text)
        for directive in _CONDITIONAL.finditer(text, start.end()):
            if directive[1].startswith("if"):
                depth += 1
            elif depth == 0:
                end = directive.start()
                break
            elif directive[1] == "endif":
                depth -= 1
        text = text[: start.start()] + re.sub(r"[^\n]", " ", text[start.start() : end]) + text[end:]
        start = _DISABLED.search(text, end)
    return text


def closing(text: str, start: int) -> int:
    """Index of the bracket that closes the one at `start`; -1 where it is missing."""
    opener, depth = text[start], 0
    for position in range(start, len(text)):
        if text[position] == opener:
            depth += 1
        elif text[position] == _CLOSING[opener]:
            depth -= 1
            if depth == 0:
                return position
    return -1


def split_top_level(text: str, separator: str = ",") -> list[str]:
    """The parts of `text` between separators that stand outside all brackets; "" gives no part."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in "([{<":
            depth += 1
        elif character in ")]}>":
            depth -= 1
        elif character == separator and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [part.strip() for part in parts] if text.strip() else []


class CudaText:
    """A CUDA source and what the scanner finds in it."""

    def __init__(self, source: str) -> None:
        self.source = source.replace("\r\n", "\n")
        self.masked = mask(self.source)

    @cached_property
    def _with_literals(self) -> str:
        return mask(self.source, literals=False)

    @cached_property
    def functions(self) -> tuple[CudaFunction, ...]:
        """Every `__global__` and `__device__` function that has a body, in order."""
        found = (self._function(match) for match in _QUALIFIER.finditer(self.masked))
        unique = {(f.name, f.line): f for f in found if f is not None}
        return tuple(unique.values())

    @cached_property
    def kernels(self) -> dict[str, CudaFunction]:
        """`__global__` functions by name."""
        return {f.name: f for f in self.functions if f.is_kernel}

    @cached_property
    def device_functions(self) -> dict[str, CudaFunction]:
        """`__device__` functions by name."""
        return {f.name: f for f in self.functions if not f.is_kernel}

    def _function(self, qualifier: re.Match[str]) -> CudaFunction | None:
        position = qualifier.end()
        while True:
            match = _NAME_CALL.search(self.masked, position)
            if match is None or match[1] is None:
                return None
            open_at = match.end() - 1
            close_at = closing(self.masked, open_at)
            if close_at < 0:
                return None
            if not _NOT_A_NAME.fullmatch(match[1]):
                break
            position = close_at + 1
        rest = re.compile(r"\s*(?:const|noexcept)?\s*\{").match(self.masked, close_at + 1)
        end = closing(self.masked, rest.end() - 1) if rest else -1
        if rest is None or end < 0:
            return None
        start = self._statement_start(qualifier.start())
        prefix = self.masked[start : qualifier.start()]
        return CudaFunction(
            name=match[1],
            is_kernel=qualifier[1] == "global",
            parameters=tuple(_parameter(p) for p in split_top_level(self.masked[open_at + 1 : close_at]) if p != "void"),
            body=self.masked[rest.end() - 1 : end + 1],
            line=self.masked.count("\n", 0, match.start()) + 1,
            extern_c='extern "C"' in re.sub(r"\s+", " ", prefix) or self._in_extern_c_block(qualifier.start()),
            template_parameters=_template_parameters(prefix),
            with_literals=self._with_literals[rest.end() - 1 : end + 1],
        )

    def _statement_start(self, position: int) -> int:
        """Start of the declaration that holds `position`: after the previous `;`, `}`, `{` or preprocessor line."""
        start = max(self.masked.rfind(c, 0, position) for c in ";}{") + 1
        directives = [m.end() for m in re.finditer(r"^[ \t]*#[^\n]*", self.masked[start:position], re.M)]
        return start + directives[-1] if directives else start

    def _in_extern_c_block(self, position: int) -> bool:
        for block in re.finditer(r'extern\s*"C"\s*\{', self.masked[:position]):
            end = closing(self.masked, block.end() - 1)
            if end < 0 or end > position:
                return True
        return False


def _template_parameters(prefix: str) -> tuple[str, ...]:
    """Names of `template <typename T, int N = 4>`; () for no template."""
    head = re.search(r"template\s*<(.*)>", prefix, re.S)
    names = (re.search(r"(\w+)\s*(?:=.*)?$", part, re.S) for part in split_top_level(head[1])) if head else ()
    return tuple(name[1] for name in names if name)


def _parameter(text: str) -> CudaParameter:
    declaration = re.sub(r"\(\s*([&*])\s*(\w+)\s*\)\s*(?=\[)", r"\1 \2", text.split("=", 1)[0])
    words = re.sub(r"\b(?:const|volatile|__restrict__|__restrict|restrict|struct)\b|[*&]", " ", declaration).strip()
    parts = _PARAMETER.match(words)
    named = parts is not None and bool(parts["type"]) and bool(parts["name"])
    base, name = (parts["type"], parts["name"]) if parts is not None and named else (words, "")
    pointee = declaration.split("*", 1)[0]
    return CudaParameter(
        name=name,
        type=" ".join(base.split()),
        is_pointer="*" in declaration or "[" in declaration,
        is_const=bool(re.search(r"\bconst\b", pointee)),
        is_restrict="restrict" in declaration,
        is_reference="&" in declaration,
    )
