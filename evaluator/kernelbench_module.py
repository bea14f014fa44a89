"""Loads a KernelBench problem file with other sizes: the same file with other integers in the places that state them.

KernelBench states a problem's sizes as plain assignments, e.g. `batch_size = 4096` or `M, N = 1024, 2048`, that
`get_inputs` and `get_init_inputs` read. Some stand elsewhere: in a module-level list or tuple (`input_shape = (3, 240, 240)`),
or as literals in the two functions themselves (`torch.rand(batch_size, 3, 224, 224)`). There equal integers are one size, which
is named after the place and its value: `input_shape.240`, `get_inputs.224`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

FOLDABLE: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow, ast.LShift: operator.lshift,
}
LARGEST_CONSTANT = 1 << 62
SMALL = 16
"""Constants up to here are taken for kernel sizes, strides, axes, counts of heads or groups."""
MAKERS = ("get_inputs", "get_init_inputs")
"""Functions whose large literals are sizes: an input's dimension, a constructor's argument."""
NO_SIZES = frozenset({"manual_seed", "seed", "Generator"})
"""Calls whose literals are none."""


class UnknownConstant(ValueError):
    """A size names no place of the file."""


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


def size_places(source: str) -> dict[str, int]:
    """All sizes of a problem: its module-level constants, then the large integers (> SMALL) elsewhere, by place and value.

    Raises SyntaxError where `source` is no Python.
    """
    tree = ast.parse(source)
    return module_constants(source) | {place: number for place, _, number in _literals(tree)}


def batch_constant(sizes: Mapping[str, int]) -> str | None:
    """The constant that most likely counts independent rows: one named for it, else the first large one; None without any."""
    named = [name for name in sizes if "batch" in name.lower()] or [name for name in sizes if name in ("N", "B", "n", "b")]
    return next(iter(named), next((name for name, value in sizes.items() if value > SMALL), None))


def load_module(path: str | Path, constants: Mapping[str, int] | None = None, name: str = "task_module") -> ModuleType:
    """Executes the file with its sizes (names as in `size_places`) replaced; tracebacks keep the file's own line numbers.

    Raises UnknownConstant for a name the file does not assign, OSError, SyntaxError, and whatever the module raises.
    """
    path = Path(path)
    source = path.read_text(encoding="utf-8")
    wanted = dict(constants or {})
    known = size_places(source)
    unknown = [key for key in wanted if key not in known]
    if unknown:
        raise UnknownConstant(
            f"{path}: {', '.join(unknown)}: no size of that name; the file has "
            f"{', '.join(known) or 'none'}"
        )
    tree = ast.parse(source, filename=str(path))
    for place, node, number in list(_literals(tree)):
        node.value = wanted.get(place, number)
    _replace(tree, wanted)
    module = ModuleType(name)
    module.__file__ = str(path)
    exec(compile(tree, str(path), "exec"), module.__dict__)
    return module


def _literals(tree: ast.Module) -> Iterator[tuple[str, ast.Constant, int]]:
    """(size, node, value) of the large integers in module-level lists and tuples and in the functions that make the inputs."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name in MAKERS:
            yield from ((f"{statement.name}.{number}", node, number) for node, number in _large(statement))
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and _is_sequence(statement.value):
            for target in _targets(statement):
                if isinstance(target, ast.Name):
                    yield from ((f"{target.id}.{number}", node, number) for node, number in _large(statement))


def _is_sequence(value: ast.expr | None) -> bool:
    """`(3, 240, 240)`, `[1024] * 16`."""
    if isinstance(value, ast.BinOp):
        return _is_sequence(value.left) or _is_sequence(value.right)
    return isinstance(value, (ast.List, ast.Tuple))


def _large(node: ast.AST) -> Iterator[tuple[ast.Constant, int]]:
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Dict) or getattr(called, "attr", getattr(called, "id", "")) in NO_SIZES:
        return
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value > SMALL:
        yield node, node.value
    for child in ast.iter_child_nodes(node):
        yield from _large(child)


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
