"""The dtype of a task's inputs, read off the source of `make_inputs` or `get_inputs`; nothing is executed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

_FLOAT = re.compile(r"\b(float32|float64|float16|bfloat16|half|double|single)\b")
_INTEGER = re.compile(r"\b(u?int(?:8|16|32|64)|bool_?|integers|randint|randperm|permutation|choice|arange|long)\b")
_CANONICAL = {"half": "float16", "double": "float64", "single": "float32"}
_TORCH_RANDOM = re.compile(r"\b(rand|randn|ones|zeros|empty|full|normal|uniform_?|normal_|eye|linspace)\b")


def input_dtype(path: Path, kind: str) -> str | None:
    """dtype of the first floating-point input, e.g. `float32`; None where the source does not show it."""
    try:
        module = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError):
        return None
    name = "make_inputs" if kind == "native" else "get_inputs"
    function = next((n for n in module.body if isinstance(n, ast.FunctionDef) and n.name == name), None)
    if function is None:
        return None
    if kind == "kernelbench" and "set_default_dtype" in ast.unparse(module):
        return None
    for value in _returned(function):
        text = ast.unparse(value)
        found = _FLOAT.search(text)
        if found:
            return _CANONICAL.get(found[1], found[1])
        if _INTEGER.search(text):
            continue
        return "float32" if kind == "kernelbench" and _TORCH_RANDOM.search(text) else None
    return None


def _returned(function: ast.FunctionDef) -> list[ast.expr]:
    """The expressions of the inputs in order, local names replaced by what was last assigned to them."""
    statements = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    assigned = {t.id: node.value for node in statements for t in node.targets if isinstance(t, ast.Name)}
    result = next((n.value for n in ast.walk(function) if isinstance(n, ast.Return)), None)
    match result:
        case ast.Dict(values=values) | ast.List(elts=values) | ast.Tuple(elts=values):
            found = values
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            found = [k.value for k in keywords]
        case _:
            found = []
    return [assigned.get(v.id, v) if isinstance(v, ast.Name) else v for v in found]
