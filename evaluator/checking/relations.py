"""Metamorphic relations: what must become of the outputs when the inputs are permuted, shifted, scaled, added, cut, fed back.

Which of them a task has is not assumed: each candidate is tried on the reference in double precision, on several inputs, and
kept where it holds. The solution is then held to it on its own outputs, with no reference in between but the tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from evaluator.checking.lab import Lab
from evaluator.checking.relation_kinds import PERMUTED_COLUMNS, TRANSPOSED, Array, Changed, Outputs, Relation, candidates
from evaluator.checking.types import Example
from evaluator.oracle import Problem, TaskFault
from evaluator.trees import Leaf, leaves, round_to

TRIALS = 3
MOST = 8
EXACT = 1e-9
"""Relative: the reference is evaluated in double precision."""


def relations_of(lab: Lab, examples: Sequence[Example], resize: bool) -> list[Relation]:
    """The relations that the reference has on all of `examples`; a task without any has an empty list.

    `resize`: those too that change an input's shape.
    """
    posed = [(example.seed, quantised(lab.oracle.own_problem(example.sizes, example.seed))) for example in examples[:TRIALS]]
    if not posed or not _plain(lab, posed[0][1]):
        return []
    found = []
    for inputs in _targets(posed[0][1].inputs):
        for group in candidates(inputs, len(inputs) == 1, resize):
            if not _same_twice(group[0], posed[0][1]):
                found += [relation for relation in group if _holds(lab, relation, posed)][:1]
    return list({relation.title: relation for relation in found}.values())[:MOST]


def _same_twice(relation: Relation, problem: Problem) -> bool:
    """Whether it speaks of the columns of what has rows only, or turns it over."""
    columns = isinstance(relation, Changed) and relation.cause in (PERMUTED_COLUMNS, TRANSPOSED)
    return columns and all(len(problem.inputs[name].shape) == 1 for name in relation.inputs)


def quantised(problem: Problem) -> Problem:
    """Floating-point inputs rounded to sixteenths within ±8, so that every change is exact."""
    def rounded(value: Any) -> Any:
        if not isinstance(value, Leaf) or not value.is_float:
            return value
        values = np.clip(np.round(np.nan_to_num(value.as_float64()) * 16) / 16, -8, 8)
        return Leaf(round_to(values, value.dtype), value.dtype, value.source)

    return Problem({name: rounded(value) for name, value in problem.inputs.items()}, problem.init, problem.state)


def arrays_of(tree: Any) -> Outputs:
    """The leaves of an output tree in double precision."""
    return [leaf.as_float64() for _, leaf in leaves(tree, "out")]


def _targets(inputs: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Each of the first three floating-point arrays alone, and those that share the first one's first axis together."""
    arrays = [(name, leaf) for name, leaf in inputs.items() if isinstance(leaf, Leaf) and leaf.is_float and leaf.shape]
    for name, _ in arrays[:3]:
        yield (name,)
    together = tuple(name for name, leaf in arrays if leaf.shape[0] == arrays[0][1].shape[0])
    if len(together) > 1:
        yield together


def _plain(lab: Lab, problem: Problem) -> bool:
    """Whether every output is a floating-point array: others have no such relations."""
    try:
        return all(leaf.is_float and leaf.shape for _, leaf in leaves(lab.oracle.precise_outputs(problem), "out"))
    except TaskFault:
        return False


def _holds(lab: Lab, relation: Relation, posed: Sequence[tuple[int, Problem]]) -> bool:
    moved = False
    for seed, first in posed:
        try:
            outputs = [arrays_of(lab.oracle.precise_outputs(first))]
            while len(outputs) < relation.calls:
                outputs.append(arrays_of(lab.oracle.precise_outputs(relation.next_problem(first, outputs, seed))))
            wanted = relation.wanted(first, outputs[:-1], seed)
            seen = [relation.seen(array) for array in outputs[-1]]
        except (TaskFault, IndexError, ValueError):
            return False
        if any(not _close(array, want) for array, want in zip(seen, wanted, strict=True)):
            return False
        moved |= any(bool(np.any(array)) for array in outputs[-1])
    return moved


def _close(array: Array, want: Array) -> bool:
    if want.shape and want.shape != array.shape:
        return False
    scale = max(float(np.abs(want).max(initial=0.0)), float(np.abs(array).max(initial=0.0)), 1e-6)
    return bool(np.isfinite(array).all() and np.isfinite(want).all() and (np.abs(array - want) <= EXACT * scale).all())
