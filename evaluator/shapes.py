"""Other sizes of a KernelBench problem: which proposals are small, a search beside them, and what counts as an output.

A file does not say which values its sizes may take. Proposals are guesses; where too few of them run, the search shrinks one
size after the other as far as the problem's own code allows, on meta tensors, which hold no data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from evaluator.kernelbench_module import SMALL, batch_constant
from evaluator.trees import leaves

Sizes = dict[str, int]
Runs = Callable[[Sizes], bool]
ENOUGH = 3
"""With so many small problems accepted, neither the search nor a large one is tried."""
SMALL_PROBLEM = (2e7, 2e8)
"""Bytes and FLOPs of a call at most: seconds in the simulator, milliseconds on a CPU."""
MEDIUM_PROBLEM = (2e8, 4e9)
"""The same for a second on a CPU."""
LEAST = 7
"""No size is shrunk below it."""
BATCHES = (2, 3, 1, 5)
ODD = 3
"""Some found problems have a size that is this many times the smallest: no power of two."""


def searched(sizes: Mapping[str, int], runs: Runs) -> Iterator[Sizes]:
    """Small problems that run: the smallest found by halving, then some with another batch and an odd multiple of one size.

    `runs` is asked some dozen times. Nothing where the problem does not run with a small batch.
    """
    batch = batch_constant(sizes)
    smallest = {**sizes, **({batch: min(BATCHES[0], sizes[batch])} if batch is not None else {})}
    if not runs(smallest):
        return
    groups = _groups(sizes, batch)
    if groups:  # sizes that keep a ratio shrink together
        smallest = _halved(smallest, [name for names in reversed(groups) for name in names], runs)
    for _ in range(2):  # a size that another one bounds from below shrinks after it has
        for names in groups:
            smallest = _halved(smallest, names, runs)
    yield smallest
    shrunk = [names for names in groups if smallest[names[0]] < sizes[names[0]]]
    for rows, names in zip(BATCHES[1:], [*shrunk, (), (), ()], strict=False):
        same = {**smallest, **({batch: rows} if batch is not None else {})}
        larger = {**same, **{name: min(ODD * smallest[name], sizes[name]) for name in names}}
        other = next((tried for tried in (larger, same) if tried != smallest and runs(tried)), None)
        if other is not None:
            yield other


def _groups(sizes: Mapping[str, int], batch: str | None) -> list[tuple[str, ...]]:
    """The large sizes, the largest value first; equal values (an image's height and width) belong together."""
    values = sorted({value for name, value in sizes.items() if value > SMALL and name != batch}, reverse=True)
    return [tuple(name for name, value in sizes.items() if value == wanted and name != batch) for wanted in values]


def _halved(current: Sizes, names: Sequence[str], runs: Runs) -> Sizes:
    """The named sizes, the smallest first, halved as often as the problem runs: as often as may be, then by bisection."""
    value = current[names[0]]
    times, refused = 0, 1
    while value >> refused >= LEAST:
        refused += 1
    step = refused - 1
    while times < step < refused:
        if runs(_over(current, names, step)):
            times = step
        else:
            refused = step
        step = (times + refused) // 2
    return _over(current, names, times)


def _over(current: Sizes, names: Sequence[str], times: int) -> Sizes:
    """The named sizes halved so many times."""
    return {**current, **{name: current[name] >> times for name in names}}


def nonsense(outputs: Any) -> str:
    """Why outputs say nothing about a solution: one is empty, or holds NaN or infinities; "" where they do."""
    for path, leaf in leaves(outputs, "out"):
        if leaf.values.size == 0:
            return f"{path} is empty"
        if leaf.is_float and not np.isfinite(leaf.as_float64()).all():
            return f"{path} holds NaN or infinities"
    return ""
