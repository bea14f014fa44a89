"""Reads `__global__` signatures from CUDA source, to know what each kernel parameter is called and means.

PTX gives only sizes; the source says whether eight bytes are a pointer, and to what. What the text does not show (a typedef,
a macro) stays unknown, and unknown is never reported as wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluator.includes import TOKEN

KERNEL = re.compile(r"\b__global__\b(?P<between>(?:[^;{}()]|\((?:[^()]|\([^()]*\))*\))*?)\b(?P<name>[A-Za-z_]\w*)\s*\(")
AFTER_BOUNDS = re.compile(r"\s*(?:void\s+|static\s+|inline\s+)*([A-Za-z_]\w*)\s*\(")
TEMPLATE = re.compile(r"template\s*<(?P<parameters>[^{};]*)>\s*$")
QUALIFIERS = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|restrict|__grid_constant__|struct|typename)\b")
BOUNDS = ("__launch_bounds__", "__cluster_dims__", "__attribute__", "__maxnreg__")
ALIASES = {
    "unsigned": "unsigned int", "signed": "int", "uint": "unsigned int", "uint32_t": "unsigned int", "int32_t": "int",
    "uint64_t": "unsigned long long", "int64_t": "long long", "size_t": "unsigned long long", "ssize_t": "long long",
    "unsigned long": "unsigned long long", "long": "long long", "long int": "long long",
    "unsigned long int": "unsigned long long", "long long int": "long long", "unsigned long long int": "unsigned long long",
    "ptrdiff_t": "long long",
    "uint16_t": "unsigned short", "int16_t": "short", "uint8_t": "unsigned char", "int8_t": "signed char",
    "short int": "short", "half": "__half", "half2": "__half2", "nv_bfloat16": "__nv_bfloat16", "uchar": "unsigned char",
}


@dataclass(frozen=True)
class Parameter:
    """One parameter: `base` is the type without qualifiers, reference and the outermost `*`; template arguments filled in."""

    name: str
    base: str
    pointer: bool


@dataclass(frozen=True)
class Signature:
    """A kernel as written."""

    name: str
    parameters: tuple[Parameter, ...]
    template: tuple[str, ...] = ()
    """Names of the template parameters."""

    def with_arguments(self, arguments: Sequence[str]) -> Signature:
        """The instance for these template arguments; parameters left to defaults stay names."""
        values = dict(zip(self.template, arguments, strict=False))
        filled = tuple(_filled(parameter, values) for parameter in self.parameters)
        return Signature(self.name, filled, self.template)


def signatures(source: str) -> list[Signature]:
    """Every `__global__` function in the text, declarations included."""
    text = TOKEN.sub(lambda m: re.sub(r"[^\n]", " ", m[0]) if m["comment"] or m["literal"] or m["raw"] else m[0], source)
    text = re.sub(r"^[ \t]*#.*$", lambda m: " " * len(m[0]), text, flags=re.MULTILINE)
    found = []
    for match in KERNEL.finditer(text):
        name, opening = match["name"], match.end()
        while name in BOUNDS:
            after = AFTER_BOUNDS.match(text, _closing(text, opening) + 1)
            if after is None:
                break
            name, opening = after[1], after.end()
        parameters = text[opening:_closing(text, opening)]
        template = TEMPLATE.search(_before(text, match.start()))
        names = _template_names(template["parameters"]) if template else ()
        found.append(Signature(name, tuple(_parameters(parameters)), names))
    return found


def signature_of(source: str, symbol: str, lowered: Mapping[str, str], parameter_count: int) -> Signature | None:
    """The signature of the compiled kernel `symbol`; None where the text does not settle it."""
    expression = next((name for name, mangled in lowered.items() if mangled == symbol), "")
    head, _, arguments = expression.partition("<")
    plain = head.strip().lstrip("&").split("::")[-1]
    candidates = [s for s in signatures(source) if len(s.parameters) == parameter_count and _names(s.name, plain, symbol)]
    if len({s.parameters for s in candidates}) != 1:
        return None
    return candidates[0].with_arguments(_split(arguments.strip().removesuffix(">"))) if arguments else candidates[0]


def canonical(base: str) -> str:
    """One spelling of a type: `unsigned` -> `unsigned int`, `int64_t` -> `long long`, `cuda::std::` dropped."""
    base = re.sub(r"(?:\bcuda\b|\bstd\b)?\s*::\s*|\bcuda::std::", "", base)
    base = " ".join(base.split())
    return ALIASES.get(base, base)


def _names(written: str, plain: str, symbol: str) -> bool:
    return written in (plain, symbol) or f"{len(written)}{written}" in symbol


def _before(text: str, end: int) -> str:
    """The text in front of `__global__`, without `extern "C"`, `static` and the like."""
    return re.sub(r"(?:\bextern\b|\bstatic\b|\binline\b|__inline__|__forceinline__|\s)+$", " ", text[max(0, end - 600):end])


def _closing(text: str, opening: int) -> int:
    """Index of the parenthesis that closes the one before `opening`."""
    depth = 1
    for index in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if not depth:
            return index
    return len(text)


def _split(text: str) -> list[str]:
    """Splits at top-level commas."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += {"<": 1, "(": 1, "[": 1, ">": -1, ")": -1, "]": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def _template_names(text: str) -> tuple[str, ...]:
    names = [re.findall(r"[A-Za-z_]\w*", part.split("=")[0]) for part in _split(text)]
    return tuple(words[-1] if words else "" for words in names)


def _parameters(text: str) -> list[Parameter]:
    return [_parameter(part) for part in _split(text) if part != "void"]


def _parameter(text: str) -> Parameter:
    declared = QUALIFIERS.sub(" ", text.split("=")[0]).strip()
    match = re.fullmatch(r"(?P<type>.*?[\s*&>])\s*(?P<name>[A-Za-z_]\w*)\s*(?P<array>(?:\[[^\]]*\])*)", declared, re.DOTALL)
    kind, name, array = (match["type"], match["name"], match["array"]) if match else (declared, "", "")
    stars = kind.count("*") + bool(array)
    base = canonical(re.sub(r"[*&]", " ", kind))
    return Parameter(name, base + " *" * (stars - 1) if stars > 1 else base, stars > 0)


def _filled(parameter: Parameter, values: Mapping[str, str]) -> Parameter:
    value = values.get(parameter.base)
    if value is None:
        return parameter
    stars = value.count("*")
    base = canonical(QUALIFIERS.sub(" ", value.replace("*", " ")))
    return Parameter(parameter.name, base, parameter.pointer or stars > 0)
