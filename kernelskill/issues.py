"""What is wrong with a file that an expert wrote: one value per finding, and how a schema error becomes one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from kernelskill.errors import Location, did_you_mean
from kernelskill.yamlsource import Document, Keys

Severity = Literal["error", "warning"]
"""`error`: the file cannot be used, loading refuses. `warning`: it can, but `rules check` does not pass."""
PLAIN = {
    "string_type": "it is a text", "int_type": "it is a number", "int_parsing": "it is a number",
    "int_from_float": "it is a whole number", "float_type": "it is a number", "float_parsing": "it is a number",
    "bool_type": "it is true or false", "bool_parsing": "it is true or false", "tuple_type": "it is a list",
    "list_type": "it is a list", "dict_type": "it is fields, `name: value`", "model_type": "it is fields, `name: value`",
    "model_attributes_type": "it is fields, `name: value`", "too_short": "it needs at least one entry",
}
"""Kind of a validation error -> what is asked for, in the words of somebody who writes YAML."""


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


def schema_issues(error: ValidationError, document: Document, start: Keys, data: Any, keys: Collection[str]) -> Iterator[Issue]:
    """The problems of one pydantic validation, each at its place in the file, one per place. `keys`: all that there are."""
    seen: set[Location] = set()
    details = sorted(error.errors(), key=lambda detail: detail["type"] != "value_error")
    for detail in details:
        if detail["type"] == "too_short" and detail["input"]:
            continue  # it has entries, wrong ones: they are told
        where = _real_path(detail["loc"], data)
        unknown_key = detail["type"] == "extra_forbidden"
        if detail["type"] == "missing":
            where = where[:-1] if where and where[-1] == detail["loc"][-1] else where
        location = document.at((*start, *where), key=unknown_key)
        if location not in seen:
            seen.add(location)
            message, hint = _words(detail, where, keys)
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


def _words(detail: Any, where: Keys, keys: Collection[str]) -> tuple[str, str]:
    """Message and hint."""
    name, kind, value = str(detail["loc"][-1]), detail["type"], detail.get("input")
    if kind == "extra_forbidden":
        return f"unknown key `{name}`", did_you_mean(name, keys) or "keys: " + ", ".join(sorted(keys))
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
    asked = PLAIN.get(kind) or detail["msg"][0].lower() + detail["msg"][1:]
    return f"`{value}` does not fit `{field}`: {asked}", ""


def keys_of(base: type[BaseModel]) -> set[str]:
    """Every key of the models that derive from `base`."""
    return {field.alias or name for model in base.__subclasses__() for name, field in model.model_fields.items()} | {
        name for model in base.__subclasses__() for name in keys_of(model)}
