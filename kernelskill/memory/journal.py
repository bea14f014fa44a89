"""The append-only record of a run: one JSON object a line, fsync'd. It is the unit of recovery and of audit.

A run killed in the middle of a write leaves a torn last line; reading drops it, and the next append starts a fresh line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from kernelskill.errors import Location, RunError

VERSION = 1


@dataclass(frozen=True)
class Event:
    """One line of the journal."""

    name: str
    data: dict[str, Any]
    time: str
    line: int
    """Its line in the file, 1-based."""


class Journal:
    """`journal.jsonl` of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, name: str, **data: Any) -> None:
        """Add an event and wait until the disk has it."""
        stamp = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        line = json.dumps({"v": VERSION, "event": name, "time": stamp, **data}, ensure_ascii=False, allow_nan=False)
        with self.path.open("a+b") as file:
            self._drop_torn_tail(file)
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    @staticmethod
    def _drop_torn_tail(file: Any) -> None:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return
        file.seek(size - 1)
        if file.read(1) == b"\n":
            return
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)

    def events(self) -> Iterator[Event]:
        """Every whole line, in order; raises RunError naming the line that is no event (a torn last line is skipped)."""
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            raise RunError("this folder is no run: it has no journal.jsonl", location=Location(self.path.parent),
                           hint="give the folder that `kernelskill optimize` printed") from None
        lines = raw.split(b"\n")
        for number, line in enumerate(lines[:-1], start=1):
            yield self._parse(line, number)

    def _parse(self, line: bytes, number: int) -> Event:
        try:
            data = json.loads(line)
            version, name, time = data.pop("v"), data.pop("event"), data.pop("time")
        except (ValueError, KeyError, AttributeError, UnicodeDecodeError):
            raise RunError("this line of the journal is no event", location=Location(self.path, number),
                           hint="the file was changed by hand; restore it or start a new run") from None
        if version != VERSION:
            raise RunError(f"this journal has format {version}, this program reads {VERSION}",
                           location=Location(self.path, number), hint="use the version of kernelskill that wrote it")
        return Event(name, data, time, number)
