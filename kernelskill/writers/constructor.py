"""The constructor of a KernelBench `Model`, and what else of the file it needs, as text for a solution that stands alone."""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from pathlib import Path

from kernelskill.errors import Location, WriterError
from kernelskill.writers.base import BEYOND
from kernelskill.writers.template.module import TorchModule


def torch_module(path: Path, arguments: tuple[str, ...], bindings: tuple[str, ...]) -> TorchModule:
    """The constructor as it stands, how `forward` gets the kernels' inputs, and the definitions that the constructor needs."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    model = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model")
    own = [node for node in model.body if isinstance(node, ast.FunctionDef) and node.name != "forward"]
    wanted = _called(own)
    fields = [f"    {ast.unparse(node)}" for node in model.body if isinstance(node, (ast.Assign, ast.AnnAssign))]
    constructor = "\n\n".join(["\n".join(fields)] * bool(fields) + [_method(text, node) for node in own if node.name in wanted])
    needed = _needed(path, tree, [node for node in own if node.name in wanted])
    return TorchModule(constructor, needed, ", ".join(arguments), bindings)


def _called(methods: list[ast.FunctionDef]) -> set[str]:
    """`__init__` and the methods that it calls, directly or not."""
    by_name = {node.name: node for node in methods}
    found, waiting = set(), ["__init__"]
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in found:
            found.add(name)
            waiting += [n.attr for n in ast.walk(by_name[name]) if isinstance(n, ast.Attribute)]
    return found


def _method(text: str, node: ast.FunctionDef) -> str:
    """The method's lines, indented for a class body; its own class is ModelNew now."""
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    source = "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    source = re.sub(r"super\(\s*Model\s*,\s*self\s*\)", "super()", source)
    return textwrap.indent(textwrap.dedent(source), "    ")


def _names(nodes: list[ast.FunctionDef] | list[ast.stmt]) -> set[str]:
    """Global names that the nodes read."""
    found: set[str] = set()
    for node in nodes:
        local = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        local |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        found |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} - local
    return found - set(dir(builtins)) - {"Model"}


def _needed(path: Path, tree: ast.Module, methods: list[ast.FunctionDef]) -> tuple[str, ...]:
    """Imports, classes (without `forward`) and functions of the file that the methods need, in the file's order.

    Raises WriterError for any other global name: a constant of the file is one of the task's sizes.
    """
    used, waiting = set[str](), _names(methods)
    definitions = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    kept: dict[str, ast.stmt] = {}
    while waiting:
        name = waiting.pop()
        used.add(name)
        if name in definitions and name not in kept:
            kept[name] = _without_forward(definitions[name])
            waiting |= _names([kept[name]]) - used
    lines = []
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            bound = {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            if bound & used and ast.unparse(node) != "import torch":
                lines.append(ast.unparse(node))
            used -= bound
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name in kept:
            lines += ["", "", *ast.unparse(kept[node.name]).splitlines()]
            used.discard(node.name)
    if used:
        raise WriterError(f"Model.__init__ uses {', '.join(sorted(used))} of the file, which a solution cannot import",
                          location=Location(path, methods[0].lineno), hint=BEYOND)
    return tuple(lines)


def _without_forward(node: ast.ClassDef | ast.FunctionDef) -> ast.stmt:
    """A class that only has to be constructed."""
    if isinstance(node, ast.FunctionDef):
        return node
    forward = [n for n in node.body if isinstance(n, ast.Expr) or (isinstance(n, ast.FunctionDef) and n.name == "forward")]
    body = [n for n in node.body if n not in forward]
    return ast.ClassDef(node.name, node.bases, node.keywords, body or [ast.Pass()], node.decorator_list)
