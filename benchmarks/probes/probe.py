"""A probe: one kernel, its launch, its inputs by seed, and what its outputs must be."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class Relation:
    """How far an output may be from the reference, and the hardware from the simulator.

    `absolute` and `relative` are those of |got - expected| <= absolute + relative * |expected|; both 0: the same bits, where
    any NaN is as good as another (PTX leaves the payload open)."""

    absolute: float = 0.0
    relative: float = 0.0
    source: str = "IEEE 754 and the PTX ISA define every bit"

    @property
    def bitwise(self) -> bool:
        """Nothing may differ."""
        return not self.absolute and not self.relative


BITWISE = Relation()


def ulps(count: float, source: str, absolute: float = 0.0) -> Relation:
    """At most `count` units in the last place of f32, plus `absolute` where results come near zero."""
    return Relation(absolute, count * 2.0**-23, source)


@dataclass(frozen=True)
class Case:
    """The kernel's arguments in order, and the outputs as they should be."""

    arrays: Arrays
    """Device arrays, outputs included, with what they hold before the launch."""
    expected: Callable[[], Mapping[str, Any]] = dict
    """Output -> reference; called only where a comparison is made (it may need packages that a GPU machine lacks)."""
    scalars: Sequence[Any] = ()
    """NumPy scalars passed after the arrays."""


@dataclass(frozen=True)
class Probe:
    """See the module."""

    name: str
    group: str
    feature: str
    """What a table calls it."""
    code: str
    """CUDA C whose `extern "C"` kernel has the probe's name."""
    make: Callable[[np.random.Generator], Case]
    prelude: str = ""
    """Includes and helpers that the group shares."""
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] = (32,)
    shared: int = 0
    """Dynamic shared memory, bytes."""
    relation: Relation = BITWISE
    refused: str = ""
    """Not empty: the simulator does not execute it and says this in its refusal."""
    compiled_only: bool = False
    """Not launched on the card: it would need objects that only the driver makes."""
    cooperative: bool = False
    options: tuple[str, ...] = field(default=())
    arch: str = "sm_90"

    @property
    def source(self) -> str:
        """The whole translation unit."""
        return f"{self.prelude}\n{self.code}\n"

    def case(self) -> Case:
        """Arguments and expectation; the same in every process."""
        return self.make(np.random.default_rng(zlib.crc32(self.name.encode())))


class Group:
    """Probes that share a prelude: `@group.probe(parameters and body)` on the function that makes the case.

    That function's docstring names the feature, as tables show it."""

    def __init__(self, name: str, prelude: str = "", **defaults: Any) -> None:
        self.name, self.prelude, self.defaults = name, prelude, defaults
        self.probes: list[Probe] = []

    def probe(self, body: str, helpers: str = "", attributes: str = "", feature: str = "", **settings: Any,
              ) -> Callable[[Callable[[np.random.Generator], Case]], Callable[[np.random.Generator], Case]]:
        """`body` is the kernel from its parameter list on; `helpers` comes before it, `attributes` before its name."""
        def register(make: Callable[[np.random.Generator], Case]) -> Callable[[np.random.Generator], Case]:
            name = make.__name__
            named = feature or " ".join((make.__doc__ or name).split()).removesuffix(".")
            code = f'{helpers}\nextern "C" __global__ void {attributes} {name}{body}'
            self.probes.append(Probe(name, self.name, named, code, make, self.prelude, **{**self.defaults, **settings}))
            return make
        return register


def disagreement(probe: Probe, expected: Mapping[str, Any], got: Mapping[str, Any]) -> str:
    """The first output that is not what the probe's relation allows; "" if all are."""
    for name, wanted in expected.items():
        why = _different(probe.relation, np.asarray(wanted), np.asarray(got[name]))
        if why:
            return f"{name}{why}"
    return ""


def _different(relation: Relation, wanted: Array, got: Array) -> str:
    if wanted.shape != got.shape or wanted.dtype.itemsize != got.dtype.itemsize:
        return f": {wanted.dtype}{list(wanted.shape)} expected, {got.dtype}{list(got.shape)} found"
    if relation.bitwise:
        wrong = bits(wanted) != bits(got)
    else:
        x, y = wanted.astype("f8"), got.astype("f8")
        with np.errstate(invalid="ignore"):
            close = np.abs(x - y) <= relation.absolute + relation.relative * np.abs(x)
        wrong = ~(close | (x == y) | (np.isnan(x) & np.isnan(y)))
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{list(at)}: {wanted[at]!r} expected, {got[at]!r} found ({int(wrong.sum())} of {wrong.size} differ)"


def bits(array: Array) -> Array:
    """The bits of every element as unsigned integers; NaNs are made alike."""
    plain = np.ascontiguousarray(array)
    if plain.dtype.kind == "f" or plain.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        with np.errstate(invalid="ignore"):
            plain = np.where(np.isnan(plain), plain.dtype.type(np.nan), plain)
    return np.ascontiguousarray(plain).view(f"u{plain.dtype.itemsize}")
