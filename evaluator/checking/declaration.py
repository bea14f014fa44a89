"""Reads a solution's `SUPPORTS = {...}` by its syntax tree: what its author promises beyond, or short of, the task."""

from __future__ import annotations

import ast

from pydantic import ValidationError

from evaluator.checking.types import Declaration
from evaluator.trees import FLOAT_DTYPES

NAME = "SUPPORTS"
BOUNDS = ("min", "max", "multiple_of")
EXAMPLE = 'e.g. SUPPORTS = {"sizes": {"cols": {"multiple_of": 4}}, "layouts": ["contiguous", "offset"]}'


class DeclarationError(Exception):
    """The declaration cannot be used; the text begins with its line."""


def read_declaration(source: str, path: str, sizes: dict[str, int]) -> Declaration:
    """The solution's declaration, or the empty one. Raises DeclarationError, SyntaxError."""
    for statement in ast.parse(source).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == NAME:
                return _checked(value, f"{path}:{statement.lineno}", sizes)
    return Declaration()


def _checked(value: ast.expr, place: str, sizes: dict[str, int]) -> Declaration:
    try:
        fields = ast.literal_eval(value)
        declared = Declaration.model_validate({**fields, "stated": True})
    except (ValueError, TypeError) as error:
        reason = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()) if isinstance(
            error, ValidationError) else "it is no literal dict"
        raise DeclarationError(f"{place}: {NAME} cannot be read: {reason} ({EXAMPLE})") from error
    for name, bounds in declared.sizes.items():
        if name not in sizes:
            raise DeclarationError(f"{place}: {NAME} bounds {name!r}, which is no size of the task ({', '.join(sizes)})")
        wrong = [key for key, number in bounds.items() if key not in BOUNDS or number < (key != "min")]
        if wrong:
            shown = f"{wrong[0]!r} = {bounds[wrong[0]]}"
            raise DeclarationError(f"{place}: {NAME} bounds {name!r} by {shown}: use {', '.join(BOUNDS)}")
    strange = [dtype for dtype in declared.dtypes if dtype not in FLOAT_DTYPES]
    if strange:
        raise DeclarationError(f"{place}: {NAME} names the dtype {strange[0]!r}: use {', '.join(sorted(FLOAT_DTYPES))}")
    return declared
