"""Keeps host files out of the compile log: which files CUDA source may name, decided before NVRTC sees it.

NVRTC quotes the offending line of any file it reads, so `#include "/etc/passwd"` would print that file into a log that
travels to a language model. The source is first brought into the form the compiler works on (trigraphs refused,
continued lines joined, comments blanked); *that* text is both checked and compiled, so no comment or splice can hide a
directive from the check alone. Lines and columns stay where they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

ALLOWED = "CUDA's own headers (cuda_fp16.h, mma.h, cooperative_groups.h, cub/..., cuda/std/..., thrust/...)"
DIRECTIVES = frozenset(
    ["", "define", "undef", "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif", "pragma", "error",
     "warning", "include"]
)
TOKEN = re.compile(
    r"""(?P<raw>\b(?:u8|[uUL])?R"(?P<mark>[^\s()\\"]{0,16})\(.*?\)(?P=mark)")
    | (?P<number>\.?\d(?:'\w|[eEpP][+-]|[\w.])*)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<literal>"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')
    | (?P<comment>//[^\n]* | /\*.*?(?:\*/|\Z))""",
    re.VERBOSE | re.DOTALL,
)
HASH = r"(?:\#|%:)"
DIRECTIVE = re.compile(rf"^[ \t\f\v]*{HASH}[ \t\f\v]*(?P<name>[^\s\"<'(]*)(?P<rest>[^\n]*)", re.MULTILINE)
READS_FILE = re.compile(rf"{HASH}\s*(?:include_next|import|embed)\b|\b__has_(?:include_next|embed)\b"
                        r"|^\s*(?:export\s+)?import\s*[<\"]|\bGCC\s+dependency\b", re.MULTILINE)
ANY_INCLUDE = re.compile(rf"{HASH}\s*include\b(?P<rest>[^\n]*)")
HAS_INCLUDE = re.compile(r"\b__has_include\b(?P<rest>[^\n]*)")
TARGET = re.compile(r"\s*(?:<(?P<angle>[^<>\"\n]+)>|\"(?P<quote>[^<>\"\n]+)\")")
STEERS_HEADERS = re.compile(r"THRUST_\w*(?:HEADER|INCLUDE|ROOT|NAMESPACE)\w*")
INCLUDE_HINTS = {
    "torch/extension.h": "there is no host C++ here: launch the kernel from Python with cupy.RawModule",
    "cuda_runtime.h": "NVRTC knows threadIdx, float4, ... without any header; remove the line",
    "iostream": "there is no host code in NVRTC source; remove the line",
    "math.h": "NVRTC's math functions (expf, sqrtf, ...) need no header; remove the line (constants: <cuda/std/limits>)",
    "cmath": "NVRTC's math functions (expf, sqrtf, ...) need no header; remove the line, or use <cuda/std/cmath>",
    "stdio.h": "printf needs no header in NVRTC; remove the line",
    "cuda.h": "kernels need no driver header; remove the line",
    "cupy/complex.cuh": "CuPy's own headers are not at hand here; use <cuda/std/complex> or <cuComplex.h>",
    "cublas_v2.h": "library handles are host code; call the library from Python",
}
STD_HINT = "NVRTC has no host standard library: use <cuda/std/{name}>, or remove the line if a built-in type is enough"


class Refused(Exception):
    """The source names a file it may not name, or an option that could; `line` is 1-based (None: an option)."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class HeaderNotFound(Exception):
    """An include that no CUDA include folder holds: an ordinary mistake, found without asking the compiler."""

    def __init__(self, header: str, line: int) -> None:
        super().__init__(f'cannot open source file "{header}"')
        self.header, self.line = header, line


def checked_source(source: str, include_dirs: Sequence[Path]) -> str:
    """The text to compile. Raises Refused, or HeaderNotFound for a harmless include that does not exist."""
    text = _compiler_view(source)
    for match in READS_FILE.finditer(text):
        raise Refused(f"`{match[0].strip()}` is not permitted; only plain #include of {ALLOWED} is", _line(text, match))
    for match in DIRECTIVE.finditer(text):
        name = match["name"]
        if name not in DIRECTIVES:
            raise Refused(f"`#{name}` is not a directive that CUDA source may use here", _line(text, match))
        if name in ("define", "undef") and STEERS_HEADERS.search(match["rest"]):
            raise Refused("a macro that chooses which file a CUDA header includes may not be set", _line(text, match))
    for match in HAS_INCLUDE.finditer(text):
        rest = match["rest"].lstrip()
        _target(rest[1:] if rest.startswith("(") else rest, _line(text, match))
    for match in ANY_INCLUDE.finditer(text):
        header = _target(match["rest"], _line(text, match))
        if not _resolves(header, include_dirs):
            raise HeaderNotFound(header, _line(text, match))
    return text


def header_hint(header: str) -> str:
    """What to do about an include that NVRTC does not have; empty where nothing is known."""
    if header in INCLUDE_HINTS:
        return INCLUDE_HINTS[header]
    if header.startswith(("torch/", "ATen/", "c10/", "pybind11/")):
        return INCLUDE_HINTS["torch/extension.h"]
    stem = header.removesuffix(".h")
    if header.startswith("std") and header.endswith(".h"):
        return STD_HINT.format(name="c" + stem)
    return STD_HINT.format(name=stem) if re.fullmatch(r"[a-z_]+", header) else ""


def _compiler_view(source: str) -> str:
    """Translation phases 1-3 as the compiler sees them, every character of a blanked comment replaced by a space."""
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        raise Refused("the source holds a NUL character", text[: text.index("\0")].count("\n") + 1)
    trigraph = re.search(r"\?\?[=/]", text)
    if trigraph:
        raise Refused(f"trigraph `{trigraph[0]}` is not permitted", text[: trigraph.start()].count("\n") + 1)
    return TOKEN.sub(_blank_comment, _join_continued(text))


def _join_continued(text: str) -> str:
    """Joins lines that end in a backslash; the newlines follow the joined line, so later lines keep their number."""
    joined: list[str] = []
    owed = 0
    for line in text.split("\n"):
        body = line.rstrip(" \t\f\v")
        if body.endswith("\\"):
            joined.append(body[:-1])
            owed += 1
        else:
            joined.append(line + "\n" * (owed + 1))
            owed = 0
    return "".join(joined).removesuffix("\n")


def _blank_comment(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0]) if match["comment"] else match[0]


def _line(text: str, match: re.Match[str]) -> int:
    start = match.start() + len(match[0]) - len(match[0].lstrip())
    return text.count("\n", 0, start) + 1


def _target(rest: str, line: int) -> str:
    """The file an include names: a literal, relative, without `..`."""
    match = TARGET.match(rest)
    if not match:
        raise Refused(f"an include must name its file literally, as <...> or \"...\"; permitted are {ALLOWED}", line)
    header = match["angle"] or match["quote"]
    if header.startswith(("/", "~")) or "\\" in header or ":" in header or ".." in Path(header).parts:
        raise Refused(f"include of `{header}` is not permitted; permitted are {ALLOWED}", line)
    return header


def _resolves(header: str, include_dirs: Iterable[Path]) -> bool:
    return any((folder / header).is_file() for folder in include_dirs)
