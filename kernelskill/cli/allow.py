"""The option --allow-library, which several commands have."""

from __future__ import annotations

from collections.abc import Iterable

ALLOW_LIBRARY_HELP = (
    "Operators of torch or cupy that a solution may keep, comma-separated: names (conv2d), categories (conv, matmul, pool, "
    "norm, attention, rnn, softmax, reduction, indexing, random), or all. Without it whatever computes must be a kernel."
)


def split_names(values: Iterable[str]) -> tuple[str, ...]:
    """The names in all values of the option."""
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())
