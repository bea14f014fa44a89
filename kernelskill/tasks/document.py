"""A task file's content with the place of every key, and readers that refuse what they do not expect."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelskill.errors import Location, TaskError, near_or_all
from kernelskill.tasks.expressions import Expression, ExpressionError, parse
from kernelskill.tasks.toml_positions import KeyPath, key_lines

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TOML_POSITION = re.compile(r"\s*\(at line (\d+), column (\d+)\)$")
_KINDS: dict[type, str] = {str: "text in quotes", int: "a whole number", bool: "true or false", list: "a list", dict: "a table",
                           float: "a number"}


def read_text(path: Path) -> str:
    """The file's text. Raises TaskError when it is missing or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise TaskError("file not found", location=Location(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"cannot be read: {error}", location=Location(path)) from None


def parse_python(path: Path, text: str) -> ast.Module:
    """The syntax tree of Python `text`; nothing is executed. Raises TaskError with line and column on a syntax error."""
    try:
        return ast.parse(text, filename=str(path))
    except SyntaxError as error:
        where = Location(path, error.lineno, error.offset)
        raise TaskError(f"Python syntax error: {error.msg}", location=where) from None
    except ValueError as error:
        raise TaskError(f"not Python source: {error}", location=Location(path)) from None


@dataclass(frozen=True)
class Table:
    """One table of a task file: typed readers, each raising TaskError at the key's own line."""

    path: Path
    values: Mapping[str, Any]
    lines: Mapping[KeyPath, int]
    keys: KeyPath = ()
    upper: bool = False
    """Keys are spelled in capitals in the file (module constants of a one-file task)."""

    def location(self, *keys: str | int) -> Location:
        """Where the key (or its nearest enclosing key that has a known line) stands."""
        full = (*self.keys, *keys)
        while full and full not in self.lines:
            full = full[:-1]
        return Location(self.path, self.lines.get(full))

    def error(self, message: str, *keys: str | int, hint: str = "") -> TaskError:
        """A TaskError at that key of this table."""
        return TaskError(message, location=self.location(*keys), hint=hint)

    def wrong(self, message: str, *keys: str | int, hint: str = "") -> TaskError:
        """A TaskError about that key's value: the message begins with the key."""
        return self.error(f"'{self.spell(*keys)}': {message}", *keys, hint=hint)

    def missing(self, key: str, hint: str) -> TaskError:
        """A TaskError about a key that is not there; `hint` shows what to write."""
        return self.error(f"missing key '{self.spell(key)}'", hint=hint)

    def spell(self, *keys: str | int) -> str:
        """The key as the file writes it, e.g. `start.grid`, `check_sizes[0]` or `CHECK_SIZES[0]`."""
        text = ""
        for position, key in enumerate((*self.keys, *keys)):
            word = str(key).upper() if self.upper and position == 0 else str(key)
            text += f"[{key}]" if isinstance(key, int) else f".{word}" if text else word
        return text

    def only(self, *allowed: str) -> None:
        """Refuse keys that nothing reads."""
        for key in self.values:
            if key not in allowed:
                raise self.error(f"unknown key '{self.spell(key)}'", key, hint=near_or_all(key, allowed))

    def has(self, key: str) -> bool:
        """Whether the table holds the key."""
        return key in self.values

    def _get(self, key: str, kind: type | tuple[type, ...], example: str) -> Any:
        if key not in self.values:
            raise self.missing(key, example)
        value = self.values[key]
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise self.wrong(f"must be {_KINDS[kinds[0]]}, got {value!r}", key, hint=example)
        return value

    def text(self, key: str, default: str | None = None, example: str = "") -> str:
        """A text value; `default` None makes the key required."""
        return default if default is not None and key not in self.values else str(self._get(key, str, example))

    def integer(self, key: str, default: int, minimum: int = 0) -> int:
        """A whole number of at least `minimum`."""
        value = int(self._get(key, int, "")) if key in self.values else default
        if value < minimum:
            raise self.wrong(f"must be at least {minimum}, got {value}", key)
        return value

    def number(self, key: str, default: float) -> float:
        """A number of at least zero."""
        value = float(self._get(key, (float, int), "")) if key in self.values else default
        if not value >= 0:
            raise self.wrong(f"must be zero or more, got {value}", key)
        return value

    def flag(self, key: str) -> bool:
        """True or false; absent is false."""
        return bool(self._get(key, bool, "")) if key in self.values else False

    def texts(self, key: str, default: list[str] | None = None, example: str = "") -> list[str]:
        """A list of texts."""
        values = default if default is not None and key not in self.values else self._get(key, list, example)
        for value in values:
            if not isinstance(value, str):
                raise self.wrong(f"must list names in quotes, got {value!r}", key, hint=example)
        return list(values)

    def items(self, key: str, example: str = "") -> list[Any]:
        """A required, non-empty list of anything."""
        values: list[Any] = self._get(key, list, example)
        if not values:
            raise self.wrong("is empty", key, hint=example)
        return values

    def table(self, key: str, example: str = "") -> Table:
        """A required table."""
        return Table(self.path, self._get(key, dict, example), self.lines, (*self.keys, key), self.upper)

    def tables(self, key: str, example: str = "") -> list[Table]:
        """A required, non-empty list of tables."""
        found = []
        for index, value in enumerate(self.items(key, example)):
            if not isinstance(value, dict):
                raise self.wrong(f"must be a table, got {value!r}", key, index, hint=example)
            found.append(Table(self.path, value, self.lines, (*self.keys, key, index), self.upper))
        return found

    def expression(self, value: Any, known: Collection[str], *keys: str | int) -> Expression:
        """`value` (text or whole number) of the key as an expression over `known` names."""
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise self.wrong(f"must be a size name, a whole number or an expression, got {value!r}", *keys)
        try:
            return parse(value, known)
        except ExpressionError as error:
            raise self.wrong(error.message, *keys, hint=error.hint) from None

    def evaluate(self, expression: Expression, sizes: Mapping[str, int], *keys: str | int) -> int:
        """The expression's value, with arithmetic faults reported at the key."""
        try:
            return expression.value(sizes)
        except ExpressionError as error:
            raise self.wrong(error.message, *keys, hint=error.hint) from None


def read_toml(path: Path) -> Table:
    """The root table of a TOML file. Raises TaskError with line and column when it is not TOML."""
    text = read_text(path)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        position = _TOML_POSITION.search(str(error))
        where = Location(path, int(position[1]), int(position[2])) if position else Location(path)
        raise TaskError(f"not TOML: {_TOML_POSITION.sub('', str(error))}", location=where) from None
    return Table(path, values, key_lines(text.replace("\r\n", "\n")))


def read_constants(path: Path, module: ast.Module, names: Collection[str]) -> Table:
    """Module-level constants named in `names` (e.g. SIZES) as a table with lower-case keys; values must be literals."""
    values: dict[str, Any] = {}
    lines: dict[KeyPath, int] = {}
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=node) if name in names:
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as node) if name in names:
                pass
            case _:
                continue
        try:
            values[name.lower()] = _plain(ast.literal_eval(node))
        except (ValueError, TypeError, SyntaxError):
            where = Location(path, statement.lineno, node.col_offset + 1)
            raise TaskError(f"{name} must be a literal: task files are read, not executed", location=where,
                            hint="write numbers, texts, lists and dicts only") from None
        _literal_lines(node, (name.lower(),), lines)
        lines[(name.lower(),)] = statement.lineno
    return Table(path, values, lines, upper=True)


def _plain(value: Any) -> Any:
    """Tuples and sets as lists, all the way down: what TOML could have said."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(inner) for inner in value]
    return sorted(value) if isinstance(value, (set, frozenset)) else value


def _literal_lines(node: ast.expr, keys: KeyPath, lines: dict[KeyPath, int]) -> None:
    lines[keys] = node.lineno
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                inner = (*keys, key.value)
                _literal_lines(value, inner, lines)
                lines[inner] = key.lineno
    elif isinstance(node, (ast.List, ast.Tuple)):
        for index, value in enumerate(node.elts):
            _literal_lines(value, (*keys, index), lines)
