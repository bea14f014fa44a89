"""Smaller problems of a KernelBench task: other values for the integers that state its sizes.

What they mean is not declared anywhere, so these are *candidates*: small numbers that a reference may refuse (channels that
groups must divide, a kernel larger than its image). The evaluator runs the reference on each, leaves out those it refuses, says
so, and searches for more where too few are left (`evaluator/shapes.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from evaluator.kernelbench_module import SMALL, batch_constant

Sizes = dict[str, int]
WORK_LIMIT = 1 << 17
"""Upper bound for the product of the shrunk constants: what the simulator checks in well under a second."""
BATCH_LIMIT = 1 << 22
"""The same where only the first constant (the batch) is shrunk."""
LEAST = 8
"""What a large constant is divided down to at most."""
_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67)
_LARGEST = 67
_LARGEST_COMMON = 64


def propose_check_sizes(sizes: Sizes) -> tuple[Sizes, ...]:
    """Candidate problems with the same constants, none larger than the original, most awkward first.

    Primes (no tile divides them), the same with equal constants kept equal, one row (batch 1), tails (a multiple of 32
    plus one), odd multiples of what the structural constants divide, powers of two with the original's ratios, the
    original over a power of two, and the original with a batch of one where that is small. Constants of at most SMALL keep
    their values, but for one that is named a batch. Without any larger constant the task's own sizes are the only candidate.
    """
    large = [name for name, value in sizes.items() if value > SMALL]
    if not large:
        return (dict(sizes),)
    varied = [name for name, value in sizes.items() if value > SMALL or "batch" in name.lower()]
    unique = {tuple(c.items()): c for c in _candidates(sizes, varied)}
    return tuple(unique.values())


def last_resorts(sizes: Sizes) -> tuple[Sizes, ...]:
    """What to try where the problem refuses every candidate: all divided alike, then the full sizes with a small batch.

    These may take minutes to check: an image size that the layers fix stays as it is.
    """
    batch, divided = batch_constant(sizes), _divided(sizes)
    small = [{**sizes, batch: rows} for rows in (2, 1, 3) if rows != sizes[batch]] if batch is not None else []
    return (*([divided] if divided else ()), *small)


def _candidates(sizes: Sizes, large: list[str]) -> Iterator[Sizes]:
    ceiling = _ceiling(len(large))
    primes = [p for p in _PRIMES if p <= ceiling][::-1]
    distinct = {name: min(primes[i % len(primes)], sizes[name]) for i, name in enumerate(large)}
    yield {**sizes, **distinct}
    by_value = dict(zip(dict.fromkeys(sizes[name] for name in large), _cycle(primes, len(large)), strict=False))
    yield {**sizes, **{name: min(by_value[sizes[name]], sizes[name]) for name in large}}
    yield {**sizes, **distinct, large[0]: 1}
    tail = (ceiling - 1) // 32 * 32 + 1
    if tail > 1:
        yield {**sizes, **{name: min(tail, sizes[name]) for name in large}}
    common = {name: _common_divisor(sizes[name], sizes) for name in large}
    if any(divisor > 1 for divisor in common.values()):
        yield {**sizes, **_odd_multiples(sizes, common)}
    divisor = 1
    while max(sizes[name] for name in large) // divisor > ceiling:
        divisor *= 2
    yield {**sizes, **{name: max(common[name], sizes[name] // divisor) for name in large}}
    divided = _divided(sizes)
    if divided is not None and math.prod(divided.values()) <= BATCH_LIMIT:
        yield divided
    batch_of_one = {**sizes, large[0]: 1}
    if math.prod(batch_of_one.values()) <= BATCH_LIMIT:
        yield batch_of_one


def _divided(sizes: Sizes) -> Sizes | None:
    """All large constants over one power of two that divides them, which keeps their ratios; the batch at most 2.

    None where nothing divides them.
    """
    large, divisor = [name for name, value in sizes.items() if value > SMALL], 1
    while large and all(sizes[name] % (2 * divisor) == 0 and sizes[name] // (2 * divisor) >= LEAST for name in large):
        divisor *= 2
    smaller = {name: value // divisor if name in large else value for name, value in sizes.items()}
    batch = batch_constant(sizes)
    if batch is not None:
        smaller[batch] = min(2, sizes[batch])
    return smaller if divisor > 1 else None


def _odd_multiples(sizes: Sizes, common: Sizes) -> Sizes:
    """Small odd multiples of the divisors that must be kept, as large as the work limit allows."""
    for factors in ((3, 5), (1, 3), (1, 1)):
        odd = dict(zip(common, _cycle(factors, len(common)), strict=True))
        multiples = {name: min(common[name] * odd[name], sizes[name]) for name in common}
        if math.prod(multiples.values()) <= WORK_LIMIT:
            break
    return multiples


def _cycle(values: Sequence[int], count: int) -> list[int]:
    return [values[i % len(values)] for i in range(count)]


def _ceiling(count: int) -> int:
    """Largest value for each of `count` constants so that their product stays within the work limit."""
    return max(_PRIMES[0], min(_LARGEST, int(WORK_LIMIT ** (1 / count))))


def _common_divisor(value: int, sizes: Sizes) -> int:
    """Least common multiple of the structural constants that divide the value."""
    result = 1
    for small in sizes.values():
        if 1 < small <= SMALL and value % small == 0:
            result = math.lcm(result, small)
    return result if result <= _LARGEST_COMMON else 1
