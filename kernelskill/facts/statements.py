"""Loops and branches of masked CUDA text: where they begin and end, and what their headers say."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelskill.facts.c_expressions import Resolver, evaluate
from kernelskill.tasks.cuda_text import closing, split_top_level

_LOOP = re.compile(r"\b(for|while)\s*\(|\bdo\b(?=\s*\{)")
_IF = re.compile(r"\bif\s*(?:constexpr\s*)?\(")
_ELSE = re.compile(r"\s*else\b")
_HEADED = re.compile(r"\s*(?:for|while|if|switch)\s*(?:constexpr\s*)?\(")
_SKIP = re.compile(r"(?:\s|#[^\n]*\n)+")
_INIT = re.compile(r"(?:^|[\s*&])(\w+)\s*=(?!=)\s*(.*)$", re.S)
_COMPARE = re.compile(r"^\s*(\w+)\s*(<=|>=|<|>|!=)\s*(.+)$", re.S)
_MOST_TRIPS = 4096


@dataclass(frozen=True)
class Loop:
    """A loop; positions refer to the text it was found in."""

    start: int
    body_start: int
    end: int
    variable: str
    """Counter of a `for`, else ""."""
    initial: str
    condition: str
    step: str


@dataclass(frozen=True)
class Branch:
    """An `if`: its condition, and the extents of its body and of its `else` body (equal positions: none)."""

    start: int
    condition: str
    body_start: int
    body_end: int
    else_end: int


def statement_end(text: str, position: int) -> int:
    """Index just after the statement that begins at `position` (pragmas before it are skipped)."""
    skipped = _SKIP.match(text, position)
    position = skipped.end() if skipped else position
    if position >= len(text):
        return len(text)
    if text[position] == "{":
        end = closing(text, position)
        return end + 1 if end >= 0 else len(text)
    headed = _HEADED.match(text, position)
    if headed:
        return _headed_end(text, position, headed)
    depth = 0
    for index in range(position, len(text)):
        if text[index] in "([{":
            depth += 1
        elif text[index] in ")]}":
            depth -= 1
            if depth < 0:
                return index
        elif text[index] == ";" and depth == 0:
            return index + 1
    return len(text)


def _headed_end(text: str, position: int, headed: re.Match[str]) -> int:
    close = closing(text, headed.end() - 1)
    if close < 0:
        return len(text)
    end = statement_end(text, close + 1)
    if text.startswith("if", position):
        otherwise = _ELSE.match(text, end)
        if otherwise:
            return statement_end(text, otherwise.end())
    return end


def find_loops(text: str) -> list[Loop]:
    """Every loop, outer before inner."""
    loops = []
    for match in _LOOP.finditer(text):
        if match[0].startswith("do"):
            loops.append(Loop(match.start(), match.end(), statement_end(text, match.end()), "", "", "", ""))
            continue
        close = closing(text, match.end() - 1)
        if close < 0 or re.match(r"\s*;", text[close + 1 :]):  # the tail of do ... while, or an empty wait loop
            continue
        header = text[match.end() : close]
        end = statement_end(text, close + 1)
        loops.append(_for_loop(match.start(), close + 1, end, header) if match[1] == "for"
                     else Loop(match.start(), close + 1, end, "", "", header, ""))
    return loops


def _for_loop(start: int, body_start: int, end: int, header: str) -> Loop:
    init, condition, step = ([part.strip() for part in header.split(";")] + ["", "", ""])[:3]
    variable = re.search(r"(\w+)\s*(?:[-+*/<>]{1,2}=|\+\+|--|=)|(?:\+\+|--)\s*(\w+)", split_top_level(step)[0] if step else "")
    name = (variable[1] or variable[2]) if variable else ""
    starts = [m for m in (_INIT.search(part) for part in split_top_level(init)) if m]
    initial = next((m[2] for m in starts if m[1] == name), "")
    return Loop(start, body_start, end, name, initial, condition, step)


def find_branches(text: str) -> list[Branch]:
    """Every `if`, outer before inner."""
    branches = []
    for match in _IF.finditer(text):
        close = closing(text, match.end() - 1)
        if close < 0:
            continue
        body_end = statement_end(text, close + 1)
        otherwise = _ELSE.match(text, body_end)
        else_end = statement_end(text, otherwise.end()) if otherwise else body_end
        branches.append(Branch(match.start(), text[match.end() : close], close + 1, body_end, else_end))
    return branches


def trip_count(loop: Loop, resolve: Resolver) -> int | None:
    """Iterations of a loop whose start, bound and step are constants; None for any other loop."""
    compare = _COMPARE.match(loop.condition)
    name = loop.variable
    value = evaluate(loop.initial, resolve) if loop.initial else None
    if value is None or not name:
        return None
    if not compare and loop.condition.strip() not in (name, f"{name} > 0"):
        return None
    for trips in range(_MOST_TRIPS):
        current = value

        def now(word: str, current: int = current) -> int | None:
            return current if word == name else resolve(word)

        holds = evaluate(loop.condition, now)
        if holds is None:
            return None
        if not holds:
            return trips
        following = _stepped(loop.step, name, now)
        if following is None or following == value:
            return None
        value = following
    return None


def _stepped(step: str, name: str, now: Resolver) -> int | None:
    step = split_top_level(step)[0] if step else ""
    current = now(name)
    if current is None:
        return None
    if re.fullmatch(rf"\+\+\s*{name}|{name}\s*\+\+", step):
        return current + 1
    if re.fullmatch(rf"--\s*{name}|{name}\s*--", step):
        return current - 1
    compound = re.fullmatch(rf"{name}\s*([-+*/]|<<|>>)?=\s*(.+)", step, re.S)
    if not compound:
        return None
    return evaluate(f"{name} {compound[1]} ({compound[2]})" if compound[1] else compound[2], now)
