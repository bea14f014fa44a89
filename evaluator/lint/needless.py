"""Which operators of a KernelBench reference are not needed, tried on the task's inputs and on others of the same shapes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from evaluator.inputs import vary
from evaluator.lint import graph
from evaluator.lint.reference import TorchReference
from evaluator.lint.report import Needless
from evaluator.torch_leaves import as_leaf, as_tensor
from evaluator.trees import map_leaves

SEED = 11
OTHERS = ("normal", "large", "negative")
"""Distributions that an operator without effect must have none on either."""
TRIED = 200
"""Operators tried at most."""

Call = Callable[[], Sequence[Any]]


def needless(reference: TorchReference, budget_s: float, larger: TorchReference | None = None) -> Needless:
    """Records one call, then repeats it with one operator after the other left out, within the budget.

    What has no effect must have none at the `larger` sizes either: a mean over an image that was reduced to one pixel has none.
    """
    own = reference.inputs(SEED)
    given = {name: map_leaves(as_leaf, value) for name, value in zip(reference.names, own, strict=True)}
    redrawn = [list(map_leaves(as_tensor, vary(given, name, SEED)).values()) for name in OTHERS]
    calls: list[Call] = [_call(reference, inputs) for inputs in (own, *redrawn)]
    nodes, storages, identities = graph.record(calls[0])
    dead = graph.dead_operators(nodes, storages)
    positions = [i for i in graph.replaceable(nodes, identities) if i not in dead]
    always, only_own, untried = _tried(positions, calls, budget_s)
    if larger is not None and always:
        always = _confirmed(always, len(nodes), larger)
    return Needless(
        operators=sum(node.computes for node in nodes), dead=_named(nodes, dead), no_effect=_named(nodes, always),
        no_effect_on_own_inputs=_named(nodes, only_own), reduced_products=tuple(graph.reduced_products(nodes)), untried=untried,
    )


def _call(reference: TorchReference, inputs: Sequence[Any]) -> Call:
    return lambda: reference.outputs_and_buffers([v.clone() if isinstance(v, torch.Tensor) else v for v in inputs])


def _tried(positions: Sequence[int], calls: Sequence[Call], budget_s: float) -> tuple[list[int], list[int], int]:
    """(no effect on any inputs, on the task's own only, number not tried)."""
    expected = [call() for call in calls]
    always: list[int] = []
    only_own: list[int] = []
    began = time.monotonic()
    for count, position in enumerate(positions):
        if count == TRIED or time.monotonic() - began > budget_s:
            return always, only_own, len(positions) - count
        if not _same(graph.without(position, calls[0]), expected[0]):
            continue
        elsewhere = all(_same(graph.without(position, c), want) for c, want in zip(calls[1:], expected[1:], strict=True))
        (always if elsewhere else only_own).append(position)
    return always, only_own, 0


def _confirmed(positions: Sequence[int], count: int, larger: TorchReference) -> list[int]:
    """Those without effect there too; all of them where it runs other than `count` operators."""
    call = _call(larger, larger.inputs(SEED))
    if len(graph.record(call)[0]) != count:
        return list(positions)
    expected = call()
    return [position for position in positions if _same(graph.without(position, call), expected)]


def _same(got: Sequence[Any] | None, expected: Sequence[Any]) -> bool:
    if got is None:
        return False
    pairs = zip(got, expected, strict=True)
    return all(np.array_equal(a.numpy(), b.numpy(), equal_nan=b.is_floating_point()) for a, b in pairs)


def _named(nodes: Sequence[graph.Node], positions: Sequence[int]) -> tuple[str, ...]:
    return tuple(f"{nodes[position].name} #{position}" for position in positions)
