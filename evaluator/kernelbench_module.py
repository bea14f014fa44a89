"""Loads a KernelBench problem file, with other values for its module-level integer constants (its sizes).

KernelBench states a problem's sizes as plain assignments, e.g. `batch_size = 4096` or `M, N = 1024, 2048`, that
`get_inputs` and `get_init_inputs` read. Other sizes of the same problem are therefore the same file with other constants.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

FOLDABLE: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow, ast.LShift: operator.lshift,
}
LARGEST_CONSTANT = 1 << 62


SMALL = 16
"""Constants up to here are taken for kernel sizes, strides, axes, counts of heads or groups."""


class UnknownConstant(ValueError):
    """A size names no module-level integer constant of the file."""


def module_constants(source: str) -> dict[str, int]:
    """Names that the module assigns an integer literal (or `+ - * // ** <<` of literals) at its top level, in order.

    Raises SyntaxError where `source` is no Python.
    """
    constants: dict[str, int] = {}
    for target, value in _assignments(ast.parse(source)):
        number = _fold(value)
        if number is not None:
            constants[target.id] = number
    return constants


def batch_constant(sizes: Mapping[str, int]) -> str | None:
    """The constant that most likely counts independent rows: one named for it, else the first large one; None without any."""
    named = [name for name in sizes if "batch" in name.lower()] or [name for name in sizes if name in ("N", "B", "n", "b")]
    return next(iter(named), next((name for name, value in sizes.items() if value > SMALL), None))


def load_module(path: str | Path, constants: Mapping[str, int] | None = None, name: str = "task_module") -> ModuleType:
    """Executes the file with its constants replaced; tracebacks keep the file's own line numbers.

    Raises UnknownConstant for a name the file does not assign, OSError, SyntaxError, and whatever the module raises.
    """
    path = Path(path)
    source = path.read_text(encoding="utf-8")
    wanted = dict(constants or {})
    known = module_constants(source)
    unknown = [key for key in wanted if key not in known]
    if unknown:
        raise UnknownConstant(
            f"{path}: {', '.join(unknown)}: no module-level integer constant of that name; the file has "
            f"{', '.join(known) or 'none'}"
        )
    tree = ast.parse(source, filename=str(path))
    _replace(tree, wanted)
    module = ModuleType(name)
    module.__file__ = str(path)
    exec(compile(tree, str(path), "exec"), module.__dict__)
    return module


def _assignments(tree: ast.Module) -> list[tuple[ast.Name, ast.expr]]:
    """(name, value expression) of every top-level assignment; `a, b = 1, 2` gives two."""
    pairs: list[tuple[ast.Name, ast.expr]] = []
    for statement in tree.body:
        value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
        if value is None:
            continue
        for target in _targets(statement):
            if isinstance(target, ast.Name):
                pairs.append((target, value))
            elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                pairs += [(t, v) for t, v in zip(target.elts, value.elts, strict=True) if isinstance(t, ast.Name)]
    return pairs


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if isinstance(statement, ast.AnnAssign) else []


def _fold(node: ast.expr) -> int | None:
    """The integer that a constant expression stands for; None for anything else."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _fold(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and type(node.op) in FOLDABLE:
        left, right = _fold(node.left), _fold(node.right)
        return None if left is None or right is None else _apply(type(node.op), left, right)
    return None


def _apply(op: type[ast.operator], left: int, right: int) -> int | None:
    if op in (ast.Pow, ast.LShift) and not 0 <= right <= 62:
        return None
    if op is ast.FloorDiv and right == 0:
        return None
    result = FOLDABLE[op](left, right)
    return result if abs(result) <= LARGEST_CONSTANT else None


def _replace(tree: ast.Module, constants: Mapping[str, int]) -> None:
    for statement in tree.body:
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
            continue
        for target in _targets(statement):
            if isinstance(target, ast.Name) and target.id in constants and _fold(statement.value) is not None:
                statement.value = _literal(constants[target.id], statement.value)
            elif isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                _replace_elements(target, statement.value, constants)


def _replace_elements(target: ast.Tuple, value: ast.Tuple, constants: Mapping[str, int]) -> None:
    for position, (name, element) in enumerate(zip(target.elts, value.elts, strict=False)):
        if isinstance(name, ast.Name) and name.id in constants and _fold(element) is not None:
            value.elts[position] = _literal(constants[name.id], element)


def _literal(number: int, where: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Constant(number), where)
