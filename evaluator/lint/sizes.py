"""Smaller sizes of a KernelBench problem at which its values still behave as at the full size.

Other than the check sizes, which are awkward on purpose, these keep every reduction as long as the budget allows: what makes
a null candidate pass is often the length of a mean. So the batch shrinks first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from evaluator.kernelbench_module import SMALL, batch_constant
from evaluator.lint.cost import Cost

Sizes = dict[str, int]
LEAST_BATCH = 4
WORTH = 0.98
"""A step that leaves more than this share of the bytes and of the FLOPs is not taken."""


def reduced(sizes: Mapping[str, int], cost: Callable[[Sizes], Cost | None], max_bytes: float, max_flops: float) -> Sizes:
    """The sizes, halved step by step until `cost` says that bytes and FLOPs fit; sizes that it refuses (None) are passed over.

    Where the given sizes have no cost, only the batch is made small. They come back where nothing smaller runs.
    """
    current, refused = dict(sizes), set[tuple[str, ...]]()
    found = cost(current)
    if found is None:
        batch = batch_constant(sizes)
        return {**current, batch: min(LEAST_BATCH, current[batch])} if batch else current
    while found.bytes > max_bytes or found.flops > max_flops:
        step = next((s for s in _smaller(current, sizes) if tuple(s) not in refused), None)
        if step is None:
            return current
        tried = {**current, **step}
        now = cost(tried)
        if now is None or _no_gain(now, found):
            refused.add(tuple(step))
            continue
        current, found = tried, now
    return current


def _smaller(current: Sizes, sizes: Mapping[str, int]) -> Iterator[Sizes]:
    """One constant halved: the batch down to LEAST_BATCH, then the largest of the others; then all of one value together."""
    batch = batch_constant(sizes)
    if batch is not None and current[batch] >= 2 * LEAST_BATCH:
        yield {batch: current[batch] // 2}
    others = sorted((name for name in current if name != batch and current[name] > SMALL), key=lambda n: -current[n])
    for name in others:
        yield {name: current[name] // 2}
    for value in sorted({current[name] for name in others}, reverse=True):
        together = [name for name in current if current[name] == value]
        if len(together) > 1:
            yield dict.fromkeys(together, value // 2)


def _no_gain(now: Cost, before: Cost) -> bool:
    return now.bytes > WORTH * before.bytes and now.flops > WORTH * before.flops
