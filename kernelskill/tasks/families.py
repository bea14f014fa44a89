"""The families of operations that a task may declare: which operations and arguments exist, and what they say of shapes."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from kernelskill.errors import near_or_all
from kernelskill.tasks.document import Table

ROW_OPERATIONS = ("sum", "mean", "max", "min", "softmax", "log_softmax", "layer_norm", "rms_norm", "l2_norm")
ELEMENTWISE_FUNCTIONS = {"gelu": 1, "gelu_tanh": 1, "relu": 1, "sigmoid": 1, "tanh": 1, "silu": 1, "exp": 1, "log": 1,
                         "sqrt": 1, "abs": 1, "min": 2, "max": 2, "where": 3}
"""Function -> number of values it takes; `gelu` is the erf form."""
FAMILIES: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "elementwise": (frozenset({"inputs", "output", "shape"}), frozenset()),
    "row_reduction": (frozenset({"input", "rows", "cols"}), frozenset({"weight", "bias", "eps"})),
    "transpose": (frozenset({"input", "rows", "cols"}), frozenset()),
    "matmul": (frozenset({"a", "b", "m", "n", "k"}), frozenset({"epilogue"})),
}
"""Family -> (required arguments, optional arguments)."""
_DIMENSIONS = {"row_reduction": ("rows", "cols"), "transpose": ("rows", "cols"), "matmul": ("m", "n", "k")}
_ARRAYS = {"row_reduction": ("input", "weight", "bias"), "transpose": ("input",), "matmul": ("a", "b")}
_ROW_FLOPS = {"sum": 1, "mean": 1, "max": 1, "min": 1, "softmax": 5, "log_softmax": 5, "layer_norm": 8, "rms_norm": 4,
              "l2_norm": 3}
"""Operations an element (comparison, division, exp = 1 each)."""

Shapes = dict[str, list[str | int]]


def check_family(root: Table, sizes: Mapping[str, int], inputs: tuple[str, ...]) -> tuple[str, str, dict[str, Any]]:
    """(family, operation, arguments) as the task declares them, or ("", "", {}). Raises TaskError at the wrong key."""
    family = root.text("family", "")
    if not family:
        for key in ("operation", "arguments"):
            if root.has(key):
                raise root.error(f"'{root.spell(key)}' without '{root.spell('family')}'", key, hint=f"families: {_listed()}")
        return "", "", {}
    if family not in FAMILIES:
        raise root.error(f"unknown family '{family}'", "family", hint=near_or_all(family, FAMILIES))
    operation = root.text("operation", "" if family in ("transpose", "matmul") else None, example=_operation_example(family))
    arguments = root.table("arguments", example=f"family {family} needs {', '.join(sorted(FAMILIES[family][0]))}")
    required, optional = FAMILIES[family]
    arguments.only(*required, *optional)
    for key in sorted(required):
        if not arguments.has(key):
            raise arguments.missing(key, f"family {family} needs {', '.join(sorted(required))}")
    if family == "elementwise":
        _check_elementwise(root, arguments, operation, sizes, inputs)
    else:
        _check_named(root, arguments, family, operation, sizes, inputs)
    return family, operation or family, dict(arguments.values)


def _listed() -> str:
    return ", ".join(sorted(FAMILIES))


def _operation_example(family: str) -> str:
    return 'e.g. operation = "gelu(x + bias)"' if family == "elementwise" else f"one of {', '.join(ROW_OPERATIONS)}"


def _check_named(root: Table, arguments: Table, family: str, operation: str, sizes: Mapping[str, int],
                 inputs: tuple[str, ...]) -> None:
    if family == "row_reduction" and operation not in ROW_OPERATIONS:
        raise root.error(f"unknown row reduction '{operation}'", "operation", hint=near_or_all(operation, ROW_OPERATIONS))
    if family in ("transpose", "matmul") and operation not in ("", family):
        raise root.error(f"family {family} has no operation '{operation}'", "operation", hint="leave operation out")
    for key in _DIMENSIONS[family]:
        arguments.expression(arguments.values[key], sizes, key)
    for key in _ARRAYS[family]:
        if arguments.has(key):
            _check_input(arguments, arguments.text(key), inputs, key)
    if arguments.has("eps"):
        arguments.number("eps", 0.0)
    if arguments.has("epilogue"):
        _check_operation(arguments, arguments.text("epilogue"), {"acc", *inputs}, "epilogue")


def _check_input(table: Table, name: str, inputs: tuple[str, ...], *keys: str) -> None:
    if name not in inputs:
        raise table.wrong(f"'{name}' is not an input of the reference", *keys, hint=near_or_all(name, inputs))


def _check_elementwise(root: Table, arguments: Table, operation: str, sizes: Mapping[str, int],
                       inputs: tuple[str, ...]) -> None:
    declared = arguments.table("inputs", example='inputs = {x = ["rows", "cols"], bias = ["cols"]}')
    for name in declared.values:
        _check_input(declared, name, inputs, name)
        for dimension in declared.items(name) if declared.values[name] != [] else []:
            declared.expression(dimension, sizes, name)
    for dimension in arguments.items("shape", example='shape = ["rows", "cols"]'):
        arguments.expression(dimension, sizes, "shape")
    arguments.text("output", example='output = "y"')
    _check_operation(root, operation, set(declared.values), "operation")


def _check_operation(table: Table, text: str, names: set[str], key: str) -> None:
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        raise table.wrong(f"'{text}' is not an expression", key, hint='e.g. "gelu(x + bias)"') from None
    callees = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and id(node) not in callees:
            _check_operation_node(table, node, names, key)


def _check_operation_node(table: Table, node: ast.expr, names: set[str], key: str) -> None:
    match node:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            takes = ELEMENTWISE_FUNCTIONS.get(name)
            if takes is None:
                raise table.wrong(f"unknown function '{name}'", key, hint=near_or_all(name, ELEMENTWISE_FUNCTIONS))
            if len(args) != takes:
                raise table.wrong(f"{name} takes {takes} values, got {len(args)}", key)
        case ast.Name(id=name):
            if name not in names:
                raise table.wrong(f"'{name}' is not one of its inputs", key, hint=near_or_all(name, names))
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()) | ast.UnaryOp(op=ast.USub()):
            pass
        case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
            pass
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            pass
        case _:
            raise table.wrong(f"'{ast.unparse(node)}' is not allowed here", key,
                              hint="use inputs, numbers, + - * / and " + ", ".join(sorted(ELEMENTWISE_FUNCTIONS)))


def input_shapes(family: str, arguments: Mapping[str, Any]) -> Shapes:
    """Shapes (as size expressions) of the inputs that the family's arguments describe; {} for no family."""
    if family == "elementwise":
        return {name: list(shape) for name, shape in arguments["inputs"].items()}
    if family == "matmul":
        return {arguments["a"]: [arguments["m"], arguments["k"]], arguments["b"]: [arguments["k"], arguments["n"]]}
    if family not in FAMILIES:
        return {}
    shapes: Shapes = {arguments["input"]: [arguments["rows"], arguments["cols"]]}
    shapes.update({arguments[key]: [arguments["cols"]] for key in ("weight", "bias") if key in arguments})
    return shapes


def family_flops(family: str, operation: str, arguments: Mapping[str, Any]) -> str:
    """The operations of one call as an expression over sizes (fma = 2, any other operation or function 1); "" unknown."""
    if family == "elementwise":
        elements = " * ".join(f"({dimension})" for dimension in arguments["shape"])
        return f"{operation_count(operation)} * {elements}"
    if family == "row_reduction":
        return f"{_ROW_FLOPS[operation]} * ({arguments['rows']}) * ({arguments['cols']})"
    if family == "matmul":
        outputs = f"({arguments['m']}) * ({arguments['n']})"
        epilogue = f" + {operation_count(arguments['epilogue'])} * {outputs}" if "epilogue" in arguments else ""
        return f"2 * {outputs} * ({arguments['k']}){epilogue}"
    return "0" if family == "transpose" else ""


def operation_count(expression: str) -> int:
    """Operators, comparisons and function calls in an element-wise expression."""
    counted = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Compare)
    return sum(isinstance(node, counted) for node in ast.walk(ast.parse(expression, mode="eval")))
