"""YAML text to plain values with the line and column of every key and value."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kernelskill import documentcache
from kernelskill.errors import Location, RuleError

Keys = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """One YAML file: its value and where each part of it stands."""

    path: Path
    data: Any
    values: Mapping[Keys, tuple[int, int]] = field(default_factory=dict)
    """Path of keys -> 1-based line and column of the value."""
    keys: Mapping[Keys, tuple[int, int]] = field(default_factory=dict)
    """The same for mapping keys."""

    def at(self, where: Keys, *, key: bool = False) -> Location:
        """Place of the value (or the key) at a path of keys; of the nearest enclosing part when it does not exist."""
        if key and where in self.keys:
            return Location(self.path, *self.keys[where])
        while where and where not in self.values:
            where = where[:-1]
        return Location(self.path, *self.values.get(where, (1, 1)))


class _Reader:
    """Turns ruamel's node tree into plain values while noting positions; collects problems instead of stopping."""

    def __init__(self, path: Path, yaml: YAML) -> None:
        self.path = path
        self.values: dict[Keys, tuple[int, int]] = {}
        self.keys: dict[Keys, tuple[int, int]] = {}
        self.problems: list[RuleError] = []
        self.constructor = yaml.constructor

    def read(self, node: Node, where: Keys = ()) -> Any:
        """The plain value of a node."""
        self.values[where] = _place(node)
        if isinstance(node, MappingNode):
            return dict(self._entries(node, where))
        if isinstance(node, SequenceNode):
            return [self.read(item, (*where, index)) for index, item in enumerate(node.value)]
        return self._scalar(node)

    def _entries(self, node: MappingNode, where: Keys) -> Iterator[tuple[str, Any]]:
        seen: set[str] = set()
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._problem(key_node, "a key must be a word")
                continue
            key = str(key_node.value)
            if key in seen:
                self._problem(key_node, f"key `{key}` appears twice in one mapping")
            seen.add(key)
            here = (*where, key)
            self.keys[here] = _place(key_node)
            yield key, self.read(value_node, here)

    def _scalar(self, node: Node) -> Any:
        try:
            return self.constructor.construct_object(node)
        except (YAMLError, ValueError) as error:
            self._problem(node, f"cannot read this value: {error}".splitlines()[0])
            return None

    def _problem(self, node: Node, message: str) -> None:
        self.problems.append(RuleError(message, location=Location(self.path, *_place(node))))


def _place(node: Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def read_document(path: Path) -> tuple[Document, list[RuleError]]:
    """One YAML file and the problems in it; with a syntax error the document's data is None."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return Document(path, None), [RuleError(f"cannot read the file: {error}", location=Location(path))]
    kept = documentcache.entry(text)
    if (known := documentcache.fetch(kept)) is not None:
        return Document(path, known["data"], _marks(known["values"]), _marks(known["keys"])), []
    document, problems = parse(text, path)
    if not problems:
        listing = {"values": [[*mark] for mark in document.values.items()], "keys": [[*mark] for mark in document.keys.items()]}
        documentcache.store(kept, {"data": document.data, **listing})
    return document, problems


def parse(text: str, path: Path) -> tuple[Document, list[RuleError]]:
    """YAML text as the document of a path, and the problems in it."""
    try:
        yaml = YAML(typ="safe", pure=True)
        root = yaml.compose(io.StringIO(text))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        problem = RuleError(f"not valid YAML: {error.problem or error.context}", location=Location(path, *place),
                            hint="check indentation and brackets")
        return Document(path, None), [problem]
    except YAMLError as error:
        return Document(path, None), [RuleError(f"not valid YAML: {error}", location=Location(path, 1, 1))]
    if root is None:
        return Document(path, None), [RuleError("the file is empty", location=Location(path, 1, 1))]
    reader = _Reader(path, yaml)
    data = reader.read(root)
    return Document(path, data, reader.values, reader.keys), reader.problems


def _marks(stored: list[Any]) -> dict[Keys, tuple[int, int]]:
    return {tuple(where): (place[0], place[1]) for where, place in stored}
