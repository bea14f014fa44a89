"""Element-wise expressions such as `gelu(x + bias)`: parsed once, then written as CUDA C or evaluated with NumPy."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kernelskill.errors import WriterError
from kernelskill.writers.template.functions import FUNCTIONS, PARAMETERS

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.USub: "neg",
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}


@dataclass(frozen=True)
class Name:
    """An input array's element."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A literal number."""

    value: float


@dataclass(frozen=True)
class Call:
    """A function of `FUNCTIONS` applied to expressions; operators are functions too (`add`, `neg`, ...)."""

    function: str
    arguments: tuple[Expression, ...]


Expression = Name | Constant | Call


def parse(text: str) -> Expression:
    """The expression of a text. Raises WriterError naming what is not understood."""
    try:
        return _convert(ast.parse(text.strip(), mode="eval").body, text)
    except SyntaxError as error:
        raise WriterError(f"the operation '{text}' is not an expression: {error.msg} at column {error.offset}") from error


def _convert(node: ast.AST, text: str) -> Expression:
    if isinstance(node, ast.Name):
        return Name(node.id)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return Constant(float(node.value))
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return Call(OPERATORS[type(node.op)], (_convert(node.left, text), _convert(node.right, text)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        operand = _convert(node.operand, text)
        return Constant(-operand.value) if isinstance(operand, Constant) else Call("neg", (operand,))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
        return Call(OPERATORS[type(node.ops[0])], (_convert(node.left, text), _convert(node.comparators[0], text)))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords:
        function = FUNCTIONS[node.func.id]
        if len(node.args) != function.arity:
            raise WriterError(f"'{node.func.id}' in '{text}' takes {function.arity} argument(s), got {len(node.args)}")
        return Call(node.func.id, tuple(_convert(argument, text) for argument in node.args))
    known = ", ".join(name for name, function in FUNCTIONS.items() if not function.inline or name == "where")
    raise WriterError(
        f"'{ast.unparse(node)}' in the operation '{text}' is not something the templates can write",
        hint=f"use + - * / comparisons and the functions {known}",
    )


def names(expression: Expression) -> tuple[str, ...]:
    """Input names in order of first use."""
    return tuple(dict.fromkeys(n.name for n in walk(expression) if isinstance(n, Name)))


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression's nodes, operands before their function."""
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from walk(argument)
    yield expression


def evaluate(expression: Expression, values: Mapping[str, Any]) -> Any:
    """The expression on NumPy arrays, in their own precision."""
    if isinstance(expression, Name):
        return values[expression.name]
    if isinstance(expression, Constant):
        return expression.value
    return FUNCTIONS[expression.function].numpy(*(evaluate(a, values) for a in expression.arguments))


def literal(value: float) -> str:
    """A float as a C single-precision literal."""
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}__int_as_float(0x7f800000)"
    text = repr(value)
    return (text if re.search(r"[.e]", text) else text + ".0") + "f"


def rename(expression: Expression, new: Mapping[str, str]) -> Expression:
    """The expression with other input names."""
    if isinstance(expression, Name):
        return Name(new.get(expression.name, expression.name))
    if isinstance(expression, Constant):
        return expression
    return Call(expression.function, tuple(rename(a, new) for a in expression.arguments))


def cuda(expression: Expression, fast: bool) -> str:
    """The expression as a C expression over scalars named like the inputs."""
    if isinstance(expression, Name):
        return expression.name
    if isinstance(expression, Constant):
        return literal(expression.value)
    function = FUNCTIONS[expression.function]
    arguments = [cuda(a, fast) for a in expression.arguments]
    if not function.inline:
        return f"{device_name(expression.function)}({', '.join(arguments)})"
    wrapped = [a if _is_atom(node) else f"({a})" for a, node in zip(arguments, expression.arguments, strict=True)]
    body = function.fast if fast and function.fast else function.cuda
    return re.sub(r"\b[abc]\b", lambda m: wrapped[PARAMETERS.index(m[0])], body)


def _is_atom(node: Expression) -> bool:
    """Whether the node's C text binds tighter than any operator."""
    if isinstance(node, Constant):
        return node.value >= 0
    return isinstance(node, Name) or not FUNCTIONS[node.function].inline


def device_name(function: str) -> str:
    """The device function's name; `exp` would hide CUDA's own, so each gets a suffix."""
    return f"{function}_of"


def device_functions(expression: Expression, fast: bool) -> list[str]:
    """The device functions that `cuda` calls, one definition a line, in order of first use."""
    used = dict.fromkeys(n.function for n in walk(expression) if isinstance(n, Call) and not FUNCTIONS[n.function].inline)
    return [_definition(name, fast) for name in used]


def _definition(name: str, fast: bool) -> str:
    function = FUNCTIONS[name]
    parameters = ", ".join(f"float {p}" for p in PARAMETERS[: function.arity])
    body = function.fast if fast and function.fast else function.cuda
    return f"__device__ __forceinline__ float {device_name(name)}({parameters}) {{ return {body}; }}"


def has_fast_form(expression: Expression) -> bool:
    """Whether fast-math intrinsics would change the text."""
    return any(isinstance(n, Call) and FUNCTIONS[n.function].fast for n in walk(expression))
