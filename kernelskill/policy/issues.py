"""What is wrong with rule files: one value per finding, and how a schema error becomes one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from kernelskill.errors import Location
from kernelskill.policy.schema import RuleModel
from kernelskill.policy.yamlsource import Document, Keys

Severity = Literal["error", "warning"]
"""`error`: the rules cannot be used, loading refuses. `warning`: they can, but `rules check` does not pass."""


@dataclass(frozen=True)
class Issue:
    """One finding: which check, how bad, where, what, and what to do next."""

    check: str
    severity: Severity
    location: Location
    message: str
    hint: str = ""

    def __str__(self) -> str:
        todo = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{self.location}: {self.severity}: {self.message} [{self.check}]{todo}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean ...?` for the nearest known words; empty when none is near."""
    near = difflib.get_close_matches(word, sorted(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else ""


def schema_issues(error: ValidationError, document: Document, start: Keys, data: Any) -> Iterator[Issue]:
    """The problems of one pydantic validation, each at its place in the file, one per place."""
    seen: set[Location] = set()
    details = sorted(error.errors(), key=lambda detail: detail["type"] != "value_error")
    for detail in details:
        where = _real_path(detail["loc"], data)
        unknown_key = detail["type"] == "extra_forbidden"
        if detail["type"] == "missing":
            where = where[:-1] if where and where[-1] == detail["loc"][-1] else where
        location = document.at((*start, *where), key=unknown_key)
        if location not in seen:
            seen.add(location)
            message, hint = _words(detail, where)
            yield Issue("schema", "error", location, message, hint)


def _real_path(loc: tuple[str | int, ...], data: Any) -> Keys:
    """Pydantic's path without the names of union members that it mixes in."""
    path: list[str | int] = []
    for step in loc:
        in_list = isinstance(data, list) and isinstance(step, int) and step < len(data)
        if in_list or (isinstance(data, dict) and step in data):
            path.append(step)
            data = data[step]
    return tuple(path)


def _words(detail: Any, where: Keys) -> tuple[str, str]:
    """Message and hint."""
    name, kind, value = str(detail["loc"][-1]), detail["type"], detail.get("input")
    if kind == "extra_forbidden":
        return f"unknown key `{name}`", did_you_mean(name, _all_keys()) or "keys: " + ", ".join(_all_keys())
    if kind == "missing":
        return f"`{name}` is missing", ""
    if kind == "value_error":
        return str(detail["ctx"]["error"]), ""
    if kind in ("condition", "action"):
        found = f", not {', '.join(map(str, value))}" if isinstance(value, dict) else ""
        return detail["msg"] + found, ""
    if kind == "literal_error":
        options = detail["ctx"]["expected"].replace("'", "")
        return f"`{value}` is not one of {options}", did_you_mean(str(value), options.replace(" or ", ", ").split(", "))
    if kind == "string_pattern_mismatch":
        return f"`{value}` is not a name", "lower-case letters, digits and underscores, starting with a letter"
    field = next((str(step) for step in reversed(where) if isinstance(step, str)), name)
    if value is None:
        return f"`{field}` is empty", "write a number, a text, true or false"
    return f"`{value}` does not fit `{field}`: {detail['msg'][0].lower() + detail['msg'][1:]}", ""


def _all_keys() -> list[str]:
    """Every key of the rule language."""
    def subclasses(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
        for child in model.__subclasses__():
            yield child
            yield from subclasses(child)

    return sorted({name for model in subclasses(RuleModel) for name in model.model_fields})
