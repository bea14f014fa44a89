"""KernelBench tasks: one Python file with `Model`, `get_inputs` and `get_init_inputs`. Read by its syntax tree only."""

from __future__ import annotations

import ast
from pathlib import Path

from evaluator.kernelbench_module import module_constants, size_places
from evaluator.types import TaskSpec
from kernelskill.errors import Location, TaskError
from kernelskill.model import Task
from kernelskill.tasks.document import read_constants
from kernelskill.tasks.native import read_check_sizes
from kernelskill.tasks.reference import find_function
from kernelskill.tasks.shapes import last_resorts, propose_check_sizes


def is_kernelbench(module: ast.Module) -> bool:
    """Whether the module has the KernelBench form."""
    names = {node.name for node in module.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    return "Model" in names or "get_inputs" in names


def load_module(path: Path, text: str, module: ast.Module) -> Task:
    """The task of a KernelBench file; its sizes are the integers that state them (`size_places`). Raises TaskError.

    Check sizes are proposed, unless the file states them as `CHECK_SIZES = [{constant: value, ...}, ...]`.
    """
    classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    model = classes.get("Model")
    if model is None:
        raise TaskError("no class 'Model'", location=Location(path), hint="class Model(torch.nn.Module) with forward")
    methods = {node.name: node for node in model.body if isinstance(node, ast.FunctionDef)}
    if "forward" not in methods:
        raise TaskError("class Model has no method 'forward'", location=Location(path, model.lineno))
    for name in ("get_inputs", "get_init_inputs"):
        function = find_function(path, module, name, f"def {name}(): return [...]")
        if len(function.args.args) > len(function.args.defaults) or function.args.kwonlyargs:
            raise TaskError(f"{name} must take no argument", location=Location(path, function.lineno))
    sizes = size_places(text)
    declared = read_constants(path, module, ("CHECK_SIZES",))
    stated = ({**sizes, **check} for check in read_check_sizes(declared, module_constants(text))) if declared.values else ()
    checks = tuple(stated) or propose_check_sizes(sizes)
    last = () if declared.values else last_resorts(sizes)
    spec = TaskSpec(name=path.stem, kind="kernelbench", path=str(path), sizes=sizes, check_sizes=checks, last_sizes=last)
    return Task(spec, path.parent, start_source="")
