"""Proof that a native task's declared operation is what its reference computes, on the task's smallest check sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evaluator.native_module import load_reference
from kernelskill.errors import Location, WriterError
from kernelskill.model import Task
from kernelskill.writers.template import expression as ex
from kernelskill.writers.template.rowops import ROW_OPS
from kernelskill.writers.verify import compare

HINT = "correct family, operation or arguments in the task file, or leave them out"


def verify_declared(task: Task) -> None:
    """Runs the reference and the declared operation on the same inputs. Raises WriterError where they differ."""
    if not task.spec.check_sizes:
        return
    module = load_reference(task.spec.path)
    for sizes in task.spec.check_sizes[:2]:
        inputs = module.make_inputs(np.random.default_rng(task.spec.seed), **sizes)
        with np.errstate(all="ignore"):
            expected = module.reference(**{name: np.copy(value) for name, value in inputs.items()})
            if isinstance(expected, (tuple, list, dict)):
                raise WriterError(f"the reference returns a {type(expected).__name__}; the templates return one array",
                                  location=Location(task.spec.path), hint=HINT)
            got = evaluate(task, {name: np.asarray(value, np.float64) for name, value in inputs.items()}, np.shape(expected))
        compare(got, expected, f"the reference of {task.name} at sizes {sizes}", task, HINT)


def evaluate(task: Task, inputs: Mapping[str, Any], shape: tuple[int, ...]) -> Any:
    """The declared operation with NumPy in float64; element-wise results take the reference's shape where they broadcast."""
    arguments = task.arguments
    if task.family == "row_reduction":
        weight, bias = (inputs[arguments[role]] if role in arguments else None for role in ("weight", "bias"))
        op = ROW_OPS[task.operation]
        return op.reference(inputs[arguments["input"]], weight, bias, float(arguments.get("eps", op.eps)))
    if task.family == "transpose":
        return inputs[arguments["input"]].T
    if task.family == "matmul":
        product = inputs[arguments["a"]] @ inputs[arguments["b"]]
        return ex.evaluate(ex.parse(arguments.get("epilogue", "acc")), {**inputs, "acc": product})
    result = np.asarray(ex.evaluate(ex.parse(task.operation), inputs))
    return np.broadcast_to(result, shape) if result.ndim <= len(shape) and result.size == 1 else result
