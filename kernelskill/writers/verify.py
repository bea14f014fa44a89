"""Proof that a recognised or declared operation is what the reference computes: both run on small inputs, with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from evaluator.kernelbench_module import load_module
from kernelskill.errors import Location, WriterError
from kernelskill.model import Task
from kernelskill.writers.base import BEYOND
from kernelskill.writers.template import expression as ex
from kernelskill.writers.template.rowops import ROW_OPS
from kernelskill.writers.torch_terms import Leaf, Product, RowOperation, Term

RTOL, ATOL = 1e-3, 1e-4
"""The reference runs in float32 in its own order; a different operation is off by far more."""


def verify(task: Task, term: Term, arguments: tuple[Leaf, ...]) -> None:
    """Runs Model on small inputs and the term with NumPy in float64. Raises WriterError where they differ."""
    import torch

    for sizes in task.spec.check_sizes[:2]:
        torch.manual_seed(task.spec.seed)
        module = load_module(task.spec.path, sizes)
        model, inputs = module.Model(*module.get_init_inputs()), module.get_inputs()
        with torch.no_grad():
            expected = model(*inputs).numpy()
        values = {leaf.name: x.numpy().astype(np.float64) for leaf, x in zip(arguments, inputs, strict=True)}
        values |= {leaf.name: _stored(model, leaf) for leaf in _all_leaves(term) if leaf.binding}
        compare(evaluate(term, values), expected, f"Model of {task.name} at sizes {sizes}", task)


def compare(got: Any, expected: Any, what: str, task: Task, hint: str = BEYOND) -> None:
    """Raises WriterError when the recognised operation's result differs from the reference's."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape or not np.allclose(got, expected, RTOL, ATOL, equal_nan=True):
        detail = f"shape {got.shape} for {expected.shape}" if got.shape != expected.shape else "other values"
        raise WriterError(f"the operation '{task.operation or task.family or 'recognised'}' does not compute what {what} "
                          f"computes ({detail})", location=Location(task.spec.path), hint=hint)


def evaluate(term: Term, values: dict[str, Any]) -> Any:
    """The term with NumPy."""
    if isinstance(term.root, Product):
        a, b = values[term.root.a.name], values[term.root.b.name]
        values = values | {"acc": (a.T if term.root.a_transposed else a) @ (b.T if term.root.b_transposed else b)}
    elif isinstance(term.root, RowOperation):
        values = values | {"acc": _row(term.root, values)}
    return ex.evaluate(term.expression, values)


def _row(root: RowOperation, values: dict[str, Any]) -> Any:
    x = values[root.input.name]
    lead = x.shape[: x.ndim - root.axes]
    weight, bias = (None if leaf is None else values[leaf.name].reshape(-1) for leaf in (root.weight, root.bias))
    op = ROW_OPS[root.operation]
    result = op.reference(x.reshape(*lead, -1), weight, bias, root.eps)
    if op.per_element:
        return result.reshape(x.shape)
    return result[..., None] if root.keepdim else result


def _all_leaves(term: Term) -> list[Leaf]:
    root = term.root
    extra = [root.a, root.b] if isinstance(root, Product) else [root.input, root.weight, root.bias] if root else []
    return [leaf for leaf in (*extra, *term.leaves) if leaf is not None]


def _stored(model: Any, leaf: Leaf) -> Any:
    """The parameter or buffer behind a leaf, as float64."""
    path = leaf.binding.split('"')[1]
    getter = model.get_parameter if "get_parameter" in leaf.binding else model.get_buffer
    return getter(path).detach().numpy().astype(np.float64)
