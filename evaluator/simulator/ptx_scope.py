"""Names of a function while it is lowered: registers, arrays, labels, in nested braces."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from evaluator.simulator.ptx_module import Function


class Label(NamedTuple):
    """A label's function, the braces it stands in, and its name."""

    function: str
    path: tuple[int, ...]
    name: str


@dataclass
class Register:
    """A virtual register's place and width in bytes a lane (a predicate counts 4)."""

    offset: int
    width: int
    type: str


@dataclass
class Scope:
    """Names of one function: nested braces see the outer ones."""

    function: Function
    registers: list[dict[str, Register]] = field(default_factory=lambda: [{}])
    arrays: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Array -> (space, offset)."""
    call_parameters: dict[str, dict[tuple[int, int], int]] = field(default_factory=dict)
    """.param variable -> (byte offset, width) -> register offset."""
    carry: int | None = None
    path: tuple[int, ...] = ()
    """Numbers of the open braces, outermost first."""
    braces: int = 0
    """Braces opened so far."""


def cluster_of(entry: Function) -> tuple[int, int, int]:
    """Blocks of a cluster that the kernel's `__cluster_dims__` demands; (1, 1, 1) without."""
    found = re.search(r"\.reqnctapercluster\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", entry.attributes)
    return (int(found[1]), int(found[2] or 1), int(found[3] or 1)) if found else (1, 1, 1)
