"""The examples that Hypothesis draws, and the systematic ones that it tries first.

An example is drawn as a handful of integers, each an index into a list whose first entry is the simplest: so shrinking ends
at a small shape, and an example that is wanted (a boundary, one that failed before) can be written down as its integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.database import ExampleDatabase, choices_to_bytes

from evaluator.checking.types import Declaration, Example, Layout
from evaluator.types import TaskSpec

SEEDS, STRIDE = 1 << 16, 1009
SMALL = range(1, 10)
PRIMES = (11, 13, 17, 31, 37, 61, 67, 97, 127, 131, 251, 257, 509, 521, 1021, 1031, 4099, 65537, 1048573)
POWERS = (16, 64, 128, 512, 1024, 1 << 15, (1 << 15) + 1, 65536, 1 << 20, 1 << 22)
STRUCTURAL = 16
"""KernelBench: constants up to here are kernel sizes, strides, groups; they change only as the task's variants do."""
OWN = -1
"""Among a size's values: whatever the variant has."""
LONG = 9
"""How much longer than the work limit an example may be that is long in one size and the least, or next to it, in all
others."""
FLAT = (1021, 65537)
"""Lengths of one size where all others are the least, or next to it. The longer is beyond 16 bits and a grid's second axis."""
OTHER_SEEDS = (0, 1, 2)
SWEPT_ALONE = 3
"""Where one size is at a boundary, what the others are."""


@dataclass(frozen=True)
class Space:
    """What may be drawn."""

    names: tuple[str, ...]
    sizes: tuple[tuple[int, ...], ...]
    """Beside `names`: candidate values, ascending. KernelBench: OWN at the end."""
    variants: tuple[Mapping[str, int], ...]
    """KernelBench: base problems, the smallest first. Native: one, empty."""
    values: tuple[str, ...]
    dtypes: tuple[str, ...] = ("",)
    layouts: tuple[Layout, ...] = ("contiguous",)
    work_limit: int = 1 << 16

    def example(self, choices: Sequence[int]) -> Example:
        """The example of one index for each of `limits`."""
        variant, *rest = choices
        count = len(self.names)
        sizes = self._sized(self.variants[variant], rest[:count])
        values, dtype, layout, seed = rest[count:]
        return Example(sizes=sizes, values=self.values[values], seed=seed, dtype=self.dtypes[dtype],
                       layout=self.layouts[layout])

    def limits(self) -> list[int]:
        """Numbers of choices, in order: variant, sizes, values, dtype, layout, seed."""
        return [len(self.variants), *map(len, self.sizes), len(self.values), len(self.dtypes), len(self.layouts), SEEDS]

    def choices(self, example: Example) -> list[int] | None:
        """The choices that give `example`; None where this space has none."""
        try:
            tail = [self.values.index(example.values), self.dtypes.index(example.dtype), self.layouts.index(example.layout)]
            for position, variant in enumerate(self.variants):
                others = {name: value for name, value in variant.items() if name not in self.names}
                if all(example.sizes.get(name) == value for name, value in others.items()):
                    sizes = [values.index(OWN if variant.get(name) == example.sizes[name] else example.sizes[name])
                             for name, values in zip(self.names, self.sizes, strict=True)]
                    found = [position, *sizes, *tail, example.seed]
                    return found if self.example(found) == example else None
        except (ValueError, KeyError):
            return None
        return None

    def least(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The sizes with each that varies at its least."""
        smallest = {name: min(v for v in values if v != OWN) for name, values in zip(self.names, self.sizes, strict=True)
                    if values != (OWN,)}
        return {**sizes, **smallest}

    def smaller(self, example: Example) -> Iterator[Example]:
        """The example with one of its sizes smaller, the smallest examples first, each with a few seeds.

        With another seed: what lies in a smaller array is drawn anew, and a fault of some values is not met at once.
        """
        sizes = [{**example.sizes, name: value} for name, values in zip(self.names, self.sizes, strict=True)
                 for value in values if value != OWN and value < example.sizes[name]]
        for found in sorted(sizes, key=lambda s: (math.prod(s.values()), str(s))):
            yield from (example.model_copy(update={"sizes": found, "seed": seed})
                        for seed in dict.fromkeys((example.seed, *OTHER_SEEDS)))

    def _sized(self, variant: Mapping[str, int], indices: Sequence[int]) -> dict[str, int]:
        """Sizes whose product stays within the work limit: a size that is too large is the largest candidate that fits."""
        room = self.work_limit * (LONG if sum(index > 1 for index in indices) <= 1 else 1)
        sizes = dict(variant)
        for name, values, index in zip(self.names, self.sizes, indices, strict=True):
            value = variant[name] if values[index] == OWN else values[index]
            if value > room:
                value = max((v for v in values if 0 < v <= room), default=min(v for v in values if v != OWN))
            sizes[name] = value
            room //= max(value, 1)
        return sizes


def examples_of(space: Space) -> st.SearchStrategy[Example]:
    """Examples of the space; they shrink to small sizes and simple values."""
    return st.tuples(*(st.integers(0, limit - 1) for limit in space.limits())).map(space.example)


def space_of(
    task: TaskSpec, declaration: Declaration, numbers: Iterable[int], values: Sequence[str], work_limit: int,
    known: Sequence[Example] = (), layouts: Sequence[Layout] = ("contiguous",), dtypes: Sequence[str] = ("",),
) -> Space:
    """What may be drawn for the task; `numbers` are the solution's dangers."""
    numbers = tuple(numbers)
    variants: tuple[Mapping[str, int], ...]
    names: tuple[str, ...]
    if task.shapes == "exact":
        variants, names = (dict(task.sizes),), ()
    elif task.kind == "kernelbench":
        variants = tuple(sorted(task.check_sizes or (task.sizes,), key=lambda sizes: (math.prod(sizes.values()), str(sizes))))
        names = tuple(name for name, value in task.sizes.items() if value > STRUCTURAL)
    else:
        variants, names = ({},), tuple(task.sizes)
    columns = []
    for name in names:
        cap = max([task.sizes[name], *(sizes[name] for sizes in task.check_sizes)])
        own = {cap, *(sizes[name] for sizes in task.check_sizes), *(e.sizes[name] for e in known if name in e.sizes)}
        found = _candidates(numbers, min(cap, LONG * work_limit), own, declaration.sizes.get(name, {}))
        columns.append((*found, OWN) if task.kind == "kernelbench" else found)
    return Space(names, tuple(columns), variants, tuple(values), tuple(dtypes), tuple(layouts), work_limit)


def _candidates(numbers: Sequence[int], cap: int, own: set[int], bounds: Mapping[str, int]) -> tuple[int, ...]:
    around = {n + d for n in numbers for d in (-1, 0, 1)} | {2 * n + d for n in numbers for d in (0, 1)}
    step, low, high = bounds.get("multiple_of", 1), bounds.get("min", 1), min(cap, bounds.get("max", cap))
    everything = {*SMALL, *around, *PRIMES, *POWERS, *own, *([0] if "min" in bounds else [])}
    if step > 1:
        everything = {value * step for value in everything} | everything
    kept = {value for value in everything if low <= value <= high and value % step == 0}
    return tuple(sorted(kept)) or (max(low, step),)


def prepared_of(space: Space, examples: Iterable[Example]) -> list[Example]:
    """Those of `examples` that the space has, each once, the smallest sizes first."""
    kept = dict.fromkeys(example for example in examples if space.choices(example) is not None)
    return sorted(kept, key=lambda example: math.prod(example.sizes.values()))


def sweep(space: Space, numbers: Iterable[int], anchors: Sequence[Mapping[str, int]], seed: int = 0) -> Iterator[Example]:
    """The systematic examples: the task's own check sizes, every size at every boundary alone, all sizes equal, long and flat.

    Kinds of values and their seeds go round, from another start for another `seed`.
    """
    kinds, layouts, dtypes = space.values, space.layouts, space.dtypes
    for number, sizes in enumerate(_swept_sizes(space, numbers, anchors), 1 + seed * STRIDE):
        seed = number % SEEDS
        # Of what is long the task's own values: alternating ones, say, look the same from many places.
        kind = kinds[seed % len(kinds) if math.prod(sizes.values()) <= space.work_limit else 0]
        yield Example(sizes=dict(sizes), values=kind, seed=seed, layout=layouts[seed % len(layouts)],
                      dtype=dtypes[seed % len(dtypes)])


def _swept_sizes(space: Space, numbers: Iterable[int], anchors: Sequence[Mapping[str, int]]) -> Iterator[Mapping[str, int]]:
    yield from anchors
    boundaries = sorted({*(n + d for n in numbers for d in (-1, 0, 1)), *SMALL, *PRIMES[:6]})
    for variant in space.variants:
        for name, values in zip(space.names, space.sizes, strict=True):
            alone = {other: _nearest(column, SWEPT_ALONE) for other, column in zip(space.names, space.sizes, strict=True)}
            swept = [value for value in values if value in boundaries]
            for value in swept if variant is space.variants[0] else swept[:4]:
                yield {**variant, **({} if variant else alone), name: value}
            if not variant:
                for width in (0, 1):
                    flat = {other: column[min(width, len(column) - 1)]
                            for other, column in zip(space.names, space.sizes, strict=True)}
                    yield from ({**flat, name: _nearest(values, length)} for length in FLAT)
    for value in (1, 2, 33) if len(space.names) > 1 and not space.variants[0] else ():
        yield {name: _nearest(column, value) for name, column in zip(space.names, space.sizes, strict=True)}


def _nearest(column: Sequence[int], value: int) -> int:
    return min(column, key=lambda candidate: (abs(candidate - value), candidate))


class FailedBefore(ExampleDatabase):
    """Hands Hypothesis an example as if it had failed before, so that it tries it first and shrinks it."""

    def __init__(self, space: Space, example: Example) -> None:
        super().__init__()
        choices = space.choices(example)
        self.entries = () if choices is None else (choices_to_bytes(choices),)

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """The example, among the secondary ones: what is found under the test's own key is not shrunk again."""
        return self.entries if key.endswith(b".secondary") else ()

    def save(self, key: bytes, value: bytes) -> None:
        """Nothing is kept: a report names its counterexamples itself."""

    def delete(self, key: bytes, value: bytes) -> None:
        """Nothing is kept."""
