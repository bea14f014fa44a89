"""Where a line of CUDA source stands in a file that the person has: the solution, or the .cu file it was made from."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from evaluator.types import Finding

COPIED = re.compile(r"# (\S+\.cuh?), line by line \(sha256 ([0-9a-f]{12})\):")
"""The comment above a literal that repeats a file from its first line on; the digest is void once the literal is edited."""
LEAST_CHARACTERS = 4
"""Shorter lines (`}`, `do {`) say nothing about where they come from."""


@dataclass(frozen=True)
class Origin:
    """`place`: file:line; `text`: the CUDA line itself, without its indentation."""

    place: str
    text: str


def origin_of(code: str, line: int | None, solution: str | None) -> Origin | None:
    """Of line `line` (1-based) of the CUDA source `code`, which the file `solution` holds as string literals.

    Literals that the solution joins are found one by one. Text that it computes (f-strings, replaced words) is found where the
    very line stands once in the file. None where neither leads anywhere.
    """
    lines = code.split("\n")
    if solution is None or line is None or not 1 <= line <= len(lines):
        return None
    text = lines[line - 1].strip()
    python, literals = _read(solution)
    for literal in literals:
        inside = _line_inside(literal.value, code, line)
        at = literal.line + inside - 1 if inside else 0
        if inside and literal.copied_from:
            return Origin(f"{literal.copied_from}:{inside}", text)
        if inside and at <= len(python) and text in python[at - 1]:
            return Origin(f"{solution}:{at}", text)
    same = [number for number, have in enumerate(python, 1) if have.strip() == text]
    return Origin(f"{solution}:{same[0]}", text) if len(same) == 1 and len(text) >= LEAST_CHARACTERS else None


def with_origin(finding: Finding, code: str, solution: str | None) -> Finding:
    """The finding in CUDA source `code` with the fields `origin` and `source`, where they can be told."""
    origin = origin_of(code, finding.line, solution)
    return finding if origin is None else finding.model_copy(update={"origin": origin.place, "source": origin.text})


def digest(literal: str) -> str:
    """As the comment above a copied literal names it."""
    return hashlib.sha256(literal.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class _Literal:
    value: str
    line: int
    copied_from: str | None


@lru_cache(maxsize=4)
def _read(solution: str) -> tuple[list[str], tuple[_Literal, ...]]:
    """The file's lines and its string literals of several lines, longest first."""
    try:
        text = Path(solution).read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return [], ()
    lines = text.split("\n")
    return lines, tuple(sorted(_literals(tree, lines), key=lambda literal: -len(literal.value)))


def _literals(tree: ast.Module, lines: list[str]) -> Iterator[_Literal]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            above = COPIED.fullmatch(lines[node.lineno - 2].strip()) if node.lineno > 1 else None
            copied = above is not None and above[2] == digest(node.value)
            yield _Literal(node.value, node.lineno, above[1] if above and copied else None)


def _line_inside(part: str, code: str, line: int) -> int:
    """Line of `part` that is line `line` of `code`; 0 where it is none, or `part` stands in `code` more than once."""
    start = code.find(part)
    if start < 0 or code.find(part, start + 1) >= 0:
        return 0
    inside = line - code.count("\n", 0, start)
    return inside if 1 <= inside <= part.count("\n") + 1 else 0
