"""The one machine-readable line of every rendered module: family, plan, and the methods that led to it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelskill.errors import WriterError
from kernelskill.model import MethodApplication

PREFIX = "# kernelskill-plan: "
LINE = re.compile(rf"^{re.escape(PREFIX)}(.*)$", re.MULTILINE)
VERSION = 1


@dataclass(frozen=True)
class PlanLine:
    """What a rendered module says of itself."""

    family: str
    plan: Mapping[str, Any]
    methods: tuple[MethodApplication, ...]

    def text(self) -> str:
        """The line, JSON with sorted keys."""
        methods = [{"method": m.method, "params": m.params} for m in self.methods]
        body = {"version": VERSION, "family": self.family, "plan": dict(self.plan), "methods": methods}
        return PREFIX + json.dumps(body, sort_keys=True)


def find(source: str) -> PlanLine | None:
    """The plan line of a module; None where it has none. Raises WriterError when the line is there but unreadable."""
    match = LINE.search(source)
    if not match:
        return None
    try:
        body = json.loads(match[1])
        if body["version"] != VERSION:
            raise ValueError(f"version {body['version']}, expected {VERSION}")
        methods = tuple(MethodApplication(**m) for m in body["methods"])
        return PlanLine(body["family"], body["plan"], methods)
    except (ValueError, KeyError, TypeError) as error:
        line = source.count("\n", 0, match.start()) + 1
        raise WriterError(
            f"the plan line of the solution (line {line}) cannot be read: {error}",
            hint="start from a solution that this version's template writer wrote, or from the task's start",
        ) from error
