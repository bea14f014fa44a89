"""PTX text -> functions, variables and statements. Knows PTX's outer grammar only; opcodes are ptx_lowering's business."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_FUNCTION = re.compile(
    r"(?:\.(?:visible|weak|extern|common)\s+)*\.(?P<kind>entry|func)\b\s*(?P<attributes>(?:\.noreturn\s*)?)"
    r"(?:\((?P<returns>[^)]*)\)\s*)?(?P<name>[\w$]+)\s*(?:\((?P<parameters>[^)]*)\))?(?P<tail>[^{;]*)(?P<end>[{;])", re.S)
_VARIABLE = re.compile(
    r"(?P<linkage>(?:\.(?:visible|weak|extern|common|managed)\s+)*)\.(?P<space>global|const|shared|local|param)\s+"
    r"(?:\.attribute\([^)]*\)\s*)?(?:\.align\s+(?P<align>\d+)\s+)?(?:\.v(?P<vector>[248])\s+)?\.(?P<type>\w+)\s+"
    r"(?:\.ptr(?P<pointer>(?:\s+\.\w+)*?)(?:\s+\.align\s+\d+)?\s+)?(?P<name>[\w$]+)(?P<dimensions>(?:\s*\[\d*\])*)"
    r"(?:\s*=\s*(?P<initial>.*))?$", re.S)
_TOKEN = re.compile(
    r"\s*(?:\.loc\s+(?P<loc>[^\n]*)\n|(?P<brace>[{}])|(?P<label>[\w$]+)\s*:(?!:)|"
    r"(?P<statement>(?:\"[^\"]*\"|[^;\"])+?);)", re.S)
_LOC = re.compile(r"(\d+)\s+(\d+)\s+(\d+)(?:.*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?", re.S)
_FILE = re.compile(r"^\s*\.file\s+(\d+)\s+\"([^\"]*)\"", re.M)
_SECTION = re.compile(r"\.section\s+\S+\s*\{.*?\n\s*\}", re.S)

BYTES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}


class Unsupported(Exception):
    """PTX that the simulator does not execute. `message` names it; `line` is the CUDA source line, None where unknown."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.message, self.line = message, line


def type_bytes(ptx_type: str) -> int:
    """Size of a PTX type without its dot: `f32` 4, `b8` 1, `f16x2` 4, `pred` 4 (a lane mask)."""
    if ptx_type == "pred":
        return 4
    bits = re.search(r"(\d+)(x2)?$", ptx_type)
    if bits is None or bits[1] not in BYTES:
        raise Unsupported(f"type .{ptx_type}")
    return BYTES[bits[1]] * (2 if bits[2] else 1)


@dataclass(frozen=True)
class Variable:
    """A module variable, a local array or a parameter."""

    space: str
    name: str
    type: str
    align: int
    count: int
    """Elements; 0 for an extern array without a size."""
    initial: str = ""
    extern: bool = False
    pointer: bool = False

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return type_bytes(self.type) * self.count


@dataclass(frozen=True)
class Statement:
    """An instruction or directive (`text`), a label, or a scope brace, with its line of the CUDA source (0: unknown)."""

    kind: Literal["instruction", "label", "open", "close"]
    text: str
    line: int


@dataclass
class Function:
    """An entry or a function: parameters, returned values and its body as text."""

    name: str
    is_entry: bool
    parameters: list[Variable]
    returns: list[Variable]
    attributes: str
    body: str


@dataclass
class ParsedModule:
    """Everything a PTX file declares."""

    entries: dict[str, Function] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    source_file: int = 1
    """Number of the `.file` that is the CUDA source; the others are headers."""


def parse_variable(text: str) -> Variable | None:
    """A declaration without its semicolon; None when it is not one."""
    match = _VARIABLE.match(text.strip())
    if match is None:
        return None
    sizes = [int(d) if d else 0 for d in re.findall(r"\[(\d*)\]", match["dimensions"])]
    count = int(match["vector"] or 1)
    for size in sizes:
        count *= size
    element = type_bytes(match["type"])
    align = int(match["align"] or element * int(match["vector"] or 1))
    return Variable(match["space"], match["name"], match["type"], align, count, (match["initial"] or "").strip(),
                    "extern" in match["linkage"], match["pointer"] is not None)


def _parameters(text: str | None) -> list[Variable]:
    parts = [p.strip() for p in (text or "").split(",") if p.strip()]
    variables = [parse_variable(p) for p in parts]
    return [v for v in variables if v is not None]


def parameter_offsets(parameters: list[Variable]) -> dict[str, int]:
    """Byte offset of each parameter in the packed argument block."""
    offsets, at = {}, 0
    for p in parameters:
        at = (at + p.align - 1) // p.align * p.align
        offsets[p.name] = at
        at += p.nbytes
    return offsets


def _matching_brace(text: str, start: int) -> int:
    depth = 1
    for brace in re.finditer(r"\"[^\"]*\"|[{}]", text[start:]):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return start + brace.start()
    raise Unsupported("PTX with unbalanced braces")


def _source_file(text: str) -> int:
    files = [(int(number), path) for number, path in _FILE.findall(text)]
    own = [number for number, path in files if "/include/" not in path]
    return min(own, default=1)


def parse_module(ptx: str) -> ParsedModule:
    """Parses what NVRTC returns. Raises Unsupported for text that is not PTX."""
    if not re.search(r"^\s*\.version\s", ptx, re.M):
        raise Unsupported("not PTX: there is no .version directive")
    module = ParsedModule(source_file=_source_file(ptx))
    text = _SECTION.sub("", _COMMENTS.sub("", ptx))
    outside, position = [], 0
    while match := _FUNCTION.search(text, position):
        outside.append(text[position:match.start()])
        position = match.end()
        if match["end"] == ";":
            continue
        end = _matching_brace(text, match.end())
        function = Function(match["name"], match["kind"] == "entry", _parameters(match["parameters"]),
                            _parameters(match["returns"]), match["tail"], text[match.end():end])
        (module.entries if function.is_entry else module.functions)[function.name] = function
        position = end + 1
    outside.append(text[position:])
    declarations = re.sub(r"^\s*\.(version|target|address_size|file)\b[^\n]*", "", "".join(outside), flags=re.M)
    for declaration in declarations.split(";"):
        variable = parse_variable(declaration)
        if variable is not None:
            module.variables[variable.name] = variable
    return module


class LineTracker:
    """Follows `.loc` to the line of the CUDA source: code inlined from a header belongs to the line that called it."""

    def __init__(self, source_file: int) -> None:
        self._file, self._known, self.line = source_file, dict[tuple[str, str, str], int](), 0

    def see(self, loc: str) -> None:
        """Takes the text after `.loc`."""
        match = _LOC.match(loc)
        if match is None:
            return
        here, caller = (match[1], match[2], match[3]), (match[4], match[5], match[6])
        if int(match[1]) == self._file:
            self.line = int(match[2])
        elif match[4] is not None:
            self.line = int(match[5]) if int(match[4]) == self._file else self._known.get(caller, self.line)
        self._known[here] = self.line


def statements(body: str, lines: LineTracker) -> Iterator[Statement]:
    """The body's statements in order."""
    position, length = 0, len(body.rstrip())
    body = body.rstrip() + "\n"
    while position < length:
        match = _TOKEN.match(body, position)
        if match is None:
            rest = body[position:].strip()
            if not rest:
                return
            raise Unsupported(f"PTX text {rest[:60]!r}", lines.line or None)
        position = match.end()
        if match["loc"] is not None:
            lines.see(match["loc"])
        elif match["brace"]:
            yield Statement("open" if match["brace"] == "{" else "close", "", lines.line)
        elif match["label"]:
            yield Statement("label", match["label"], lines.line)
        else:
            yield Statement("instruction", " ".join(match["statement"].split()), lines.line)
