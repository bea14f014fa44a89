"""Native tasks: CUDA C or a Python solution checked against a NumPy reference; a folder with task.toml, or one Python file."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from evaluator.native_module import reached_statements
from evaluator.types import TaskSpec, Tolerance
from kernelskill.errors import Location, TaskError, near_or_all
from kernelskill.model import LOWER_CLASSES, Task
from kernelskill.tasks.document import Table, parse_python, read_constants, read_text, read_toml
from kernelskill.tasks.families import check_family, family_flops, input_shapes
from kernelskill.tasks.launch import StartContext, read_start
from kernelskill.tasks.reference import check_run, reference_inputs
from kernelskill.tasks.render import render_start

_COMMON = ("name", "family", "operation", "sizes", "check_sizes", "tolerance", "arguments", "flops", "allow", "seed")
CONSTANTS = tuple(key.upper() for key in _COMMON)
"""Module constants of a one-file native task."""
_MAX_SIZE = 2**40


def load_folder(folder: Path) -> Task:
    """The task of a folder with task.toml and reference.py. Raises TaskError."""
    root = read_toml(folder / "task.toml")
    root.only(*_COMMON, "start", "inputs")
    reference_path = folder / "reference.py"
    module = parse_python(reference_path, read_text(reference_path))
    sizes, check_sizes = _sizes(root)
    inputs = reference_inputs(reference_path, module, sizes)
    family, operation, arguments = check_family(root, sizes, inputs)
    shapes: dict[str, list[Any]] = {**input_shapes(family, arguments), **_declared_inputs(root, sizes, inputs)}
    spec = _spec(root, reference_path, sizes, check_sizes)
    context = StartContext(folder, sizes, check_sizes, inputs, shapes)
    return Task(spec, folder, _start_source(root, spec.name, context), family, operation, arguments,
                _flops(root, sizes) or family_flops(family, operation, arguments), _allowed(root))


def load_single_file(path: Path, text: str, module: ast.Module) -> Task:
    """The native task of one Python file: constants, make_inputs, reference and the start as `run`. Raises TaskError."""
    root = read_constants(path, module, CONSTANTS)
    _refuse_misspelt_constants(path, module)
    sizes, check_sizes = _sizes(root)
    inputs = reference_inputs(path, module, sizes)
    check_run(path, module, inputs)
    family, operation, arguments = check_family(root, sizes, inputs)
    return Task(_spec(root, path, sizes, check_sizes), path.parent, solution_part(text, module), family, operation, arguments,
                _flops(root, sizes) or family_flops(family, operation, arguments), _allowed(root))


def _spec(root: Table, path: Path, sizes: dict[str, int], check_sizes: tuple[dict[str, int], ...]) -> TaskSpec:
    name = root.text("name", example='name = "row_softmax"')
    if not name.replace("_", "a").replace("-", "a").isalnum():
        raise root.wrong(f"use letters, digits, - and _, got '{name}'", "name")
    return TaskSpec(name=name, kind="native", path=str(path), sizes=sizes, check_sizes=check_sizes,
                    tolerance=_tolerance(root), seed=root.integer("seed", 2026))


def _tolerance(root: Table) -> Tolerance:
    if not root.has("tolerance"):
        return Tolerance()
    table = root.table("tolerance")
    table.only("rtol", "atol")
    default = Tolerance()
    return Tolerance(rtol=table.number("rtol", default.rtol), atol=table.number("atol", default.atol))


def _sizes(root: Table) -> tuple[dict[str, int], tuple[dict[str, int], ...]]:
    example = "[sizes] with one line a size, e.g. rows = 8192"
    table = root.table("sizes", example)
    if not table.values:
        raise table.error(f"'{table.spell()}' is empty", hint=example)
    sizes = _size_values(table)
    return sizes, read_check_sizes(root, sizes)


def read_check_sizes(root: Table, sizes: dict[str, int]) -> tuple[dict[str, int], ...]:
    """The small problems that a task states; each must give every size. Raises TaskError."""
    checks = []
    for check in root.tables("check_sizes", "[[check_sizes]] with the same names and small, awkward values, e.g. rows = 3"):
        check.only(*sizes)
        for name in sizes:
            if not check.has(name):
                raise check.error(f"'{check.spell()}' does not give '{name}'", hint=f"each entry needs {', '.join(sizes)}")
        checks.append(_size_values(check))
    return tuple(checks)


def _size_values(table: Table) -> dict[str, int]:
    values = {}
    for name in table.values:
        if not name.isidentifier() or name in ("min", "max", "ceil_div"):
            raise table.wrong("a size's name must be an identifier", name)
        values[name] = table.integer(name, 0, minimum=1)
        if values[name] > _MAX_SIZE:
            raise table.wrong(f"is {values[name]}; the limit is {_MAX_SIZE}", name)
    return values


def _declared_inputs(root: Table, sizes: dict[str, int], inputs: tuple[str, ...]) -> dict[str, list[Any]]:
    if not root.has("inputs"):
        return {}
    table = root.table("inputs")
    for name in table.values:
        if name not in inputs:
            raise table.wrong("not an input of the reference", name, hint=near_or_all(name, inputs))
        for dimension in table.items(name):
            table.expression(dimension, sizes, name)
    return {name: list(shape) for name, shape in table.values.items()}


def _flops(root: Table, sizes: dict[str, int]) -> str:
    if not root.has("flops"):
        return ""
    expression = root.expression(root.values["flops"], sizes, "flops")
    if root.evaluate(expression, sizes, "flops") < 0:
        raise root.wrong("is negative for the full sizes", "flops")
    return expression.text


def _allowed(root: Table) -> frozenset[str]:
    allowed = root.texts("allow", [], example='allow = ["tf32"]')
    for name in allowed:
        if name not in LOWER_CLASSES:
            raise root.wrong(f"unknown precision '{name}'", "allow", hint=near_or_all(name, LOWER_CLASSES))
    return frozenset(allowed)


def _start_source(root: Table, name: str, context: StartContext) -> str:
    example = 'cu = "start.cu" with kernel, grid, block, args and outputs; or solution = "start.py"'
    table = root.table("start", example)
    if table.has("solution"):
        table.only("solution")
        path = context.root / table.text("solution")
        if not path.is_file():
            raise table.wrong(f"no file {path.name} beside the task", "solution")
        source = read_text(path)
        check_run(path, parse_python(path, source), context.inputs)
        return source
    if not table.has("cu"):
        raise table.error(f"'{table.spell()}' names neither a CUDA file nor a solution", hint=example)
    return render_start(name, read_start(table, context))


def _refuse_misspelt_constants(path: Path, module: ast.Module) -> None:
    """A capital constant one letter off a known one is a typo, not a user's own constant."""
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) if name.isupper() and name not in CONSTANTS:
                near = near_or_all(name, CONSTANTS)
                if near.startswith("did") and abs(len(name) - len(near.split("'")[1])) <= 1:
                    raise TaskError(f"unknown constant '{name}'", location=Location(path, statement.lineno), hint=near)


def solution_part(text: str, module: ast.Module) -> str:
    """What of a one-file task the solution needs: `run` and every top-level statement it reaches, as written.

    The reference and the task's constants stay out unless `run` itself uses them.
    """
    lines = text.splitlines()
    parts = [_as_written(node, lines) for node in reached_statements(module, {"run"})]
    return "\n".join(parts).lstrip("\n") + "\n"


def _as_written(node: ast.stmt, lines: list[str]) -> str:
    """The statement with its decorators, the comment lines directly above and the blank lines above those."""
    first: int = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1
    while first > 1 and not lines[first - 2].strip():
        first -= 1
    return "\n".join(lines[first - 1 : node.end_lineno])
