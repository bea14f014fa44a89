"""Files of one JSON value a line that grow as results come; what a kill cut short costs the last line only."""

from __future__ import annotations

from pathlib import Path


def append_line(path: Path, text: str) -> None:
    """Adds a line, on a line of its own also where the last one was cut short."""
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(text.encode() + b"\n")


def lines_of(path: Path) -> list[tuple[int, str]]:
    """(number, text) of every line that is there to its end; nothing where there is no file."""
    if not path.exists():
        return []
    complete = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [(number, line) for number, line in enumerate(complete, 1) if line]
