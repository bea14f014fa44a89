"""Proof that a program computes what its model does: both run on the task's small problems, the program with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from evaluator.kernelbench_module import load_module
from kernelskill.errors import Location, WriterError
from kernelskill.model import Task
from kernelskill.writers.base import BEYOND
from kernelskill.writers.program import evaluate
from kernelskill.writers.program.ir import Array, Program
from kernelskill.writers.verify import compare

PROOFS = 2
"""Check sizes of little work that must agree."""
LITTLE_WORK, MOST_WORK = 1 << 22, 1 << 27
"""Elements that evaluating all stages holds: up to the first two sizes are run; else one, the smallest up to the second."""
Sizes = dict[str, int]
SCALE = 2.0
"""Constant parameters (a fresh norm's ones and zeros) are moved, so that a forgotten one shows."""


def prove(task: Task, program: Program) -> None:
    """Raises WriterError where the program is not the model, or where no small problem runs."""
    little, more = _candidates(task, program)
    proven, refused = 0, ""
    for place, sizes in enumerate((*little, *more)):
        if proven == PROOFS or (proven and place >= len(little)):
            return
        torch.manual_seed(task.spec.seed)
        try:
            module = load_module(task.spec.path, sizes)
            model, inputs = module.Model(*module.get_init_inputs()), module.get_inputs()
            _unsettle(model)
            before = {a.name: _array(_stored(model, a)) for a in program.stored}
            with torch.no_grad():
                expected = model(*[x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]).numpy()
        except Exception as error:  # sizes that the reference refuses are left out, as in verification
            refused = f"{type(error).__name__}: {error}"
            continue
        _prove_at(task, program, model, inputs, before, expected, sizes)
        proven += 1
    if not proven:
        why = refused or "all are too large"
        raise WriterError(f"no small problem of {task.name} runs in time, so nothing can be proven ({why})", hint=BEYOND)


def _candidates(task: Task, program: Program) -> tuple[list[Sizes], list[Sizes]]:
    """The check sizes of little work, in their order, and the others, the least work first."""
    little, more = [], []
    for place, sizes in enumerate((*task.spec.check_sizes, *task.spec.last_sizes)):
        try:
            with torch.device("meta"):
                module = load_module(task.spec.path, sizes)
                model, inputs = module.Model(*module.get_init_inputs()), module.get_inputs()
            named = {a.name: x for a, x in zip(program.arguments, inputs, strict=True)}
            named |= {a.name: _stored(model, a) for a in program.stored}
            found = evaluate.sizes_at(program, {**named, "self": model})
            work = sum(evaluate.work(stage, found) for stage in program.stages if stage.kind != "library")
        except Exception:  # a constructor that needs numbers, or sizes that do not go together: the run itself will tell
            work = 0.0
        if work <= LITTLE_WORK:
            little.append(sizes)
        elif work <= MOST_WORK:
            more.append((work, place, sizes))
    return little, [sizes for _, _, sizes in sorted(more, key=lambda entry: entry[:2])]


def _prove_at(task: Task, program: Program, model: Any, inputs: list[Any], before: dict[str, Any], expected: Any,
              sizes: Any) -> None:
    arrays = before | {a.name: _array(x) for a, x in zip(program.arguments, inputs, strict=True)}
    found = evaluate.sizes_at(program, {**arrays, "self": model})
    where = f"Model of {task.name} at sizes {sizes}"
    try:
        got = evaluate.run(program, arrays, found, model)
    except (IndexError, ValueError) as error:
        raise WriterError(f"what was recognised does not fit {where}: {error}", location=Location(task.spec.path),
                          hint=BEYOND) from error
    compare(got, expected, where, task)
    for stage in program.stages:
        if stage.given:
            array = program.array(stage.result)
            assert array is not None
            compare(arrays[stage.result], _array(_stored(model, array)), f"{array.name} of {where}", task)


def _unsettle(model: Any) -> None:
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            if tensor.dtype == torch.float32 and tensor.numel() > 1 and bool((tensor == tensor.flatten()[0]).all()):
                tensor.add_(torch.rand_like(tensor), alpha=1 / SCALE)


def _array(value: Any) -> Any:
    array = value.detach().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
    return array.astype(np.float64) if array.dtype == np.float32 else np.copy(array)


def _stored(model: Any, array: Array) -> torch.Tensor:
    path = array.binding.split('"')[1]
    getter = model.get_parameter if "get_parameter" in array.binding else model.get_buffer
    found: torch.Tensor = getter(path)
    return found
