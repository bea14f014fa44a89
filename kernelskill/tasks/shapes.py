"""Smaller problems of a KernelBench task: its module-level integer constants, and other values for them.

What the constants mean is not declared anywhere, so these are *candidates*: small numbers that a reference may refuse
(channels that groups must divide, a kernel larger than its image). The evaluator runs the reference on each and drops
those it refuses.
"""

from __future__ import annotations

from collections.abc import Iterator

STRUCTURAL = 16
"""Constants up to here are taken for kernel sizes, strides, axes, counts of heads or groups, and kept."""
WORK_LIMIT = 1 << 17
"""Upper bound for the product of the shrunk constants: what the simulator checks in well under a second."""
_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67)
_LARGEST = 67


def propose_check_sizes(sizes: dict[str, int]) -> tuple[dict[str, int], ...]:
    """Candidate problems with the same constants, none larger than the original, most awkward first.

    Primes (no tile divides them), the same with equal constants kept equal, one row (batch 1), tails (a multiple of 32
    plus one), and all large constants divided by one power of two, which keeps their divisors and ratios. Constants of
    at most STRUCTURAL keep their values. Without any larger constant the task's own sizes are the only candidate.
    """
    large = [name for name, value in sizes.items() if value > STRUCTURAL]
    if not large:
        return (dict(sizes),)
    unique = {tuple(c.items()): c for c in _candidates(sizes, large)}
    return tuple(unique.values())


def _candidates(sizes: dict[str, int], large: list[str]) -> Iterator[dict[str, int]]:
    ceiling = _ceiling(len(large))
    primes = [p for p in _PRIMES if p <= ceiling][::-1]
    distinct = {name: min(primes[i % len(primes)], sizes[name]) for i, name in enumerate(large)}
    yield {**sizes, **distinct}
    by_value = {value: primes[i % len(primes)] for i, value in enumerate(dict.fromkeys(sizes[n] for n in large))}
    yield {**sizes, **{name: min(by_value[sizes[name]], sizes[name]) for name in large}}
    yield {**sizes, **distinct, large[0]: 1}
    tail = (ceiling - 1) // 32 * 32 + 1
    if tail > 1:
        yield {**sizes, **{name: min(tail, sizes[name]) for name in large}}
    yield {**sizes, **_scaled(sizes, large, ceiling)}


def _ceiling(count: int) -> int:
    """Largest value for each of `count` constants so that their product stays within the work limit."""
    return max(_PRIMES[0], min(_LARGEST, int(WORK_LIMIT ** (1 / count))))


def _scaled(sizes: dict[str, int], large: list[str], ceiling: int) -> dict[str, int]:
    divisor = 1
    while max(sizes[name] for name in large) // divisor > ceiling:
        divisor *= 2
    return {name: max(1, sizes[name] // divisor) for name in large}
