"""Integer expressions of CUDA C, evaluated without a compiler: enough for array extents, loop bounds and indices."""

from __future__ import annotations

import ast
import functools
import keyword
import operator
import re
from collections.abc import Callable

Resolver = Callable[[str], int | None]
"""Value of a name such as `cols` or `threadIdx.x`; None when it is not known."""

_INTEGER = (r"(?:const\s+)?(?:unsigned\s+long\s+long|unsigned\s+int|unsigned|signed|long\s+long(?:\s+int)?|long|int|short|char"
            r"|size_t|ptrdiff_t|u?int(?:8|16|32|64)_t|bool)")
_POINTEE = r"(?:const\s+)?(?:void|\w+)\s*(?:const\s*)?\*\s*"
_REWRITES = (
    (re.compile(r"\b(?:static|reinterpret|const)_cast\s*<[^<>]*(?:<[^<>]*>)?[^<>]*>\s*\("), "("),
    (re.compile(rf"\(\s*(?:{_INTEGER}|{_POINTEE})\s*\)"), ""),
    (re.compile(rf"\b{_INTEGER}\s*\("), "("),
    (re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)(?:[uU]|[lL])+\b"), r"\1"),
    (re.compile(r"\b0+(?=\d)"), "0o"),
    (re.compile(r"&&"), " and "),
    (re.compile(r"\|\|"), " or "),
    (re.compile(r"!(?!=)"), " not "),
    (re.compile(r"->"), "."),
    (re.compile(r"::"), "__"),
)
_RENAMED = "__c"
_PYTHON_WORD = re.compile(rf"\b({'|'.join(keyword.kwlist)})\b")
"""C names that Python reserves, e.g. a pointer called `in`."""
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_LARGEST_SHIFT = 62


def evaluate(text: str, resolve: Resolver) -> int | None:
    """The value of a C integer (or address) expression; None when it is not one or a name in it is unknown.

    An address is its offset in elements: `&x[i]`, `x + i` and `x[i]` in a pointer's place all give base + i.
    """
    tree = _parse(text)
    return None if tree is None else _value(tree, resolve)


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr | None:
    text = _PYTHON_WORD.sub(rf"\1{_RENAMED}", text)
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    text = " ".join(_ternary(text).split()).lstrip("&* ")
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None


def _ternary(text: str) -> str:
    """`a ? b : c` as Python's conditional expression (outermost only)."""
    question, colon = text.find("?"), text.rfind(":")
    if question < 0 or colon < question:
        return text
    return f"({text[question + 1 : colon]}) if ({text[:question]}) else ({text[colon + 1 :]})"


def _value(node: ast.expr, resolve: Resolver) -> int | None:
    match node:
        case ast.Constant(value=int() as number):
            return int(number)
        case ast.Name(id=name):
            return resolve(name.removesuffix(_RENAMED))
        case ast.Attribute(value=ast.Name(id=base), attr=attribute):
            return resolve(f"{base}.{attribute}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _value(operand, resolve)
            return None if inner is None else -inner
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _value(operand, resolve)
            return None if inner is None else int(not inner)
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(type(op), _value(left, resolve), _value(right, resolve))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            a, b = _value(left, resolve), _value(right, resolve)
            return None if a is None or b is None or type(op) not in _COMPARISONS else int(_COMPARISONS[type(op)](a, b))
        case ast.Subscript(value=pointer, slice=index):
            return _binary(ast.Add, _value(pointer, resolve), _value(index, resolve))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            chosen = _value(test, resolve)
            return None if chosen is None else _value(body if chosen else orelse, resolve)
        case ast.BoolOp() | ast.Call():
            return _several(node, resolve)
    return None


def _binary(op: type[ast.operator], left: int | None, right: int | None) -> int | None:
    if left is None or right is None or op not in _OPERATORS:
        return None
    if op in (ast.Div, ast.FloorDiv, ast.Mod) and right == 0:
        return None
    if op in (ast.LShift, ast.RShift) and not 0 <= right <= _LARGEST_SHIFT:
        return None
    return _OPERATORS[op](left, right)


def _several(node: ast.BoolOp | ast.Call, resolve: Resolver) -> int | None:
    """`and`, `or`, and calls of min and max."""
    parts = [_value(part, resolve) for part in (node.values if isinstance(node, ast.BoolOp) else node.args)]
    known = [part for part in parts if part is not None]
    if len(known) != len(parts) or not known:
        return None
    if isinstance(node, ast.BoolOp):
        return int(all(known) if isinstance(node.op, ast.And) else any(known))
    name = ast.unparse(node.func)
    return {"min": min, "max": max}[name](known) if name in ("min", "max") else None
