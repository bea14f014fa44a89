"""The reference file of a native task, read without running it: `make_inputs(rng, **sizes)` and `reference(**inputs)`."""

from __future__ import annotations

import ast
from collections.abc import Collection
from pathlib import Path

from kernelskill.errors import Location, TaskError, near_or_all


def reference_inputs(path: Path, module: ast.Module, sizes: Collection[str]) -> tuple[str, ...]:
    """Names of the inputs in the order in which a solution's `run` receives them.

    That order is the order of the dict that `make_inputs` returns where its keys can be read off the source, else the
    order of `reference`'s parameters. Raises TaskError when a function is missing or the two do not fit together.
    """
    make_inputs = find_function(path, module, "make_inputs", "def make_inputs(rng, " + ", ".join(sizes) + "): return {...}")
    reference = find_function(path, module, "reference", "def reference(x): return the expected NumPy array")
    _check_make_inputs(path, make_inputs, sizes)
    parameters = _reference_parameters(path, reference)
    returned = _returned_keys(make_inputs)
    if returned is None:
        return parameters
    for name, line in returned.items():
        if name not in parameters:
            raise TaskError(f"make_inputs returns '{name}', which reference does not take", location=Location(path, line),
                            hint=near_or_all(name, parameters))
    for name in parameters:
        if name not in returned:
            raise TaskError(f"reference takes '{name}', which make_inputs does not return",
                            location=Location(path, reference.lineno), hint=near_or_all(name, returned))
    return tuple(returned)


def find_function(path: Path, module: ast.Module, name: str, example: str) -> ast.FunctionDef:
    """The module-level function. Raises TaskError when there is none."""
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    if name in functions:
        return functions[name]
    near = near_or_all(name, functions)
    raise TaskError(f"no function '{name}'", location=Location(path), hint=near if near.startswith("did") else f"add {example}")


def _check_make_inputs(path: Path, function: ast.FunctionDef, sizes: Collection[str]) -> None:
    where = Location(path, function.lineno)
    positional = [*function.args.posonlyargs, *function.args.args]
    if not positional:
        raise TaskError("make_inputs must take a random generator first", location=where,
                        hint=f"def make_inputs(rng, {', '.join(sizes)})")
    optional = positional[len(positional) - len(function.args.defaults) :] if function.args.defaults else []
    keyword_only = [a for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d is None]
    takes = [a.arg for a in (*positional[1:], *function.args.kwonlyargs)]
    required = [a.arg for a in (*positional[1:], *keyword_only) if a not in optional]
    for name in required:
        if name not in sizes:
            raise TaskError(f"make_inputs takes '{name}', which is not one of the task's sizes", location=where,
                            hint=near_or_all(name, sizes))
    if function.args.kwarg is None:
        for name in sizes:
            if name not in takes:
                raise TaskError(f"make_inputs does not take the size '{name}'", location=where,
                                hint=f"def make_inputs(rng, {', '.join(sizes)})")


def _reference_parameters(path: Path, function: ast.FunctionDef) -> tuple[str, ...]:
    arguments = function.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs:
        raise TaskError("reference must name its inputs one by one (no *args, **kwargs or /)",
                        location=Location(path, function.lineno), hint="def reference(x, bias)")
    names = tuple(a.arg for a in (*arguments.args, *arguments.kwonlyargs))
    if not names:
        raise TaskError("reference takes no input", location=Location(path, function.lineno), hint="def reference(x)")
    return names


def _returned_keys(function: ast.FunctionDef) -> dict[str, int] | None:
    """Keys (with lines) of the one dict that the function returns literally; None where the text does not show it."""
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    if len(returns) != 1:
        return None
    match returns[0].value:
        case ast.Dict(keys=keys) if all(isinstance(k, ast.Constant) and isinstance(k.value, str) for k in keys):
            return {k.value: k.lineno for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str)}
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords) if all(k.arg for k in keywords):
            return {k.arg: k.value.lineno for k in keywords if k.arg}
    return None


def check_run(path: Path, module: ast.Module, inputs: tuple[str, ...]) -> None:
    """A starting solution defines `run` taking the task's inputs. Raises TaskError otherwise."""
    function = find_function(path, module, "run", f"def run({', '.join(inputs)})")
    arguments = function.args
    positional = len(arguments.posonlyargs) + len(arguments.args)
    required = positional - len(arguments.defaults)
    if not arguments.vararg and not required <= len(inputs) <= positional:
        raise TaskError(f"run takes {positional} values, the task has {len(inputs)} inputs: {', '.join(inputs)}",
                        location=Location(path, function.lineno), hint=f"def run({', '.join(inputs)})")
