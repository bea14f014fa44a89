"""Loads the reference of a native task: of a file that also holds a solution, only what the reference needs.

A one-file task keeps its starting solution beside the reference. The solution's imports (cupy) and its compilation must not
happen where the reference runs.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from pathlib import Path
from types import ModuleType

REFERENCE = ("make_inputs", "reference")
SOLUTION = "run"


def load_reference(path: str | Path, name: str = "task_module") -> ModuleType:
    """Executes the file, or only what `make_inputs` and `reference` reach where it also defines `run`.

    Raises OSError, SyntaxError, and whatever the module raises.
    """
    path = Path(path)
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    if any(SOLUTION in defined_names(statement) for statement in tree.body):
        tree.body = reached_statements(tree, REFERENCE)
    module = ModuleType(name)
    module.__file__ = str(path)
    exec(compile(tree, str(path), "exec"), module.__dict__)
    return module


def reached_statements(module: ast.Module, roots: Collection[str]) -> list[ast.stmt]:
    """Top-level statements that define `roots`, or a name that a reached statement mentions, in the order of the file."""
    wanted, reached = set(roots), set[int]()
    while True:
        more = [s for s in module.body if id(s) not in reached and (_is_future(s) or defined_names(s) & wanted)]
        if not more:
            return [statement for statement in module.body if id(statement) in reached]
        for statement in more:
            reached.add(id(statement))
            wanted |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def defined_names(statement: ast.stmt) -> set[str]:
    """Names that a statement binds at module level, those inside `if`, `try`, `with` and loops included."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {(alias.asname or alias.name).split(".")[0] for alias in names}
    bound = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for inner in ast.iter_child_nodes(statement):
        if isinstance(inner, ast.stmt):
            bound |= defined_names(inner)
        elif isinstance(inner, ast.ExceptHandler):
            bound |= {name for nested in inner.body for name in defined_names(nested)}
    return bound


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
