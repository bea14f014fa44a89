"""`load_task`: which form a path has, and the task it holds."""

from __future__ import annotations

import ast
from pathlib import Path

from kernelskill.errors import Location, TaskError
from kernelskill.model import Task
from kernelskill.tasks import kernelbench, native
from kernelskill.tasks.document import parse_python, read_text


def load_task(path: Path) -> Task:
    """Load a task without executing anything of it.

    `path` is a folder with `task.toml`, that `task.toml`, or a Python file: KernelBench form (`Model` and `get_inputs`)
    or native form (`SIZES`, `make_inputs`, `reference`, `run`). Raises TaskError with the file and line of the mistake.
    """
    path = Path(path)
    if path.name == "task.toml":
        path = path.parent
    path = path.resolve()
    if path.is_dir():
        if not (path / "task.toml").is_file():
            raise TaskError("folder without task.toml", location=Location(path), hint=_tasks_below(path))
        return native.load_folder(path)
    if not path.exists():
        raise TaskError("no such file or folder", location=Location(path))
    if path.suffix != ".py":
        raise TaskError("a task is a folder with task.toml or a Python file", location=Location(path))
    text = read_text(path)
    module = parse_python(path, text)
    if kernelbench.is_kernelbench(module):
        return kernelbench.load_module(path, text, module)
    if _is_native(module):
        return native.load_single_file(path, text, module)
    raise TaskError("neither a KernelBench task nor a native task", location=Location(path),
                    hint="KernelBench: class Model, get_inputs, get_init_inputs; native: NAME, SIZES, CHECK_SIZES, "
                    "make_inputs, reference, run")


def _is_native(module: ast.Module) -> bool:
    functions = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
    constants = {t.id for node in module.body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)}
    return bool(functions & {"make_inputs", "reference", "run"} or constants & {"SIZES", "CHECK_SIZES"})


def _tasks_below(folder: Path) -> str:
    names = sorted(p.parent.name for p in folder.glob("*/task.toml"))
    return f"task folders below it: {', '.join(names)}" if names else ""
