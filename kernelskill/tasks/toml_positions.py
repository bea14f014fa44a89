"""Line numbers of the keys of a TOML file. The standard parser gives values but no positions."""

from __future__ import annotations

import re
from collections.abc import Iterator

KeyPath = tuple[str | int, ...]

_TOKEN = re.compile(
    r'(?P<string>"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\')'
    r"|(?P<comment>#[^\n]*)|(?P<newline>\n)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<other>[^\s#\"'\[\]{}]+)|(?P<space>[^\S\n]+)",
    re.S,
)
_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\[\]\n]+?)\s*\]\]?\s*(?:#[^\n]*)?$")
_PART = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*(?:\.|$)""")


def key_lines(text: str) -> dict[KeyPath, int]:
    """Line (1-based) of every table header and every key at table level of valid TOML `text`.

    Keys inside inline tables are not listed: their line is that of the key that holds them. Array-of-tables entries
    carry their index, e.g. `("check_sizes", 0, "rows")`.
    """
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    counts: dict[KeyPath, int] = {}
    for number, line in _logical_lines(text):
        header = _HEADER.match(line.split("\n", 1)[0])
        if header:
            table = _parts(header[2])
            if header[1] == "[[":
                index = counts.get(table, 0)
                counts[table] = index + 1
                lines.setdefault(table, number)
                table = (*table, index)
            else:
                table = _into_array(table, counts)
            lines[table] = number
        elif "=" in line:
            path = table
            for part in _parts(line.split("=", 1)[0]):
                path = (*path, part)
                lines.setdefault(path, number)
    return lines


def _into_array(table: KeyPath, counts: dict[KeyPath, int]) -> KeyPath:
    """`[start.launches.x]` after `[[start.launches]]` belongs to its last entry."""
    for end in range(len(table) - 1, 0, -1):
        if table[:end] in counts:
            return (*table[:end], counts[table[:end]] - 1, *table[end:])
    return table


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(line number, text) of each statement; a value that spans several lines is one statement."""
    number, start, depth = 1, 1, 0
    parts: list[str] = []
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        depth += (kind == "open") - (kind == "close")
        if kind == "newline" and depth <= 0:
            yield start, "".join(parts)
            parts, depth, start = [], 0, number + 1
        elif kind != "comment":
            parts.append(token[0])
        number += token[0].count("\n")
    yield start, "".join(parts)


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(a or b or c for a, b, c in _PART.findall(dotted))
