"""Precision class: how precise a solution's outputs are, whatever it says of itself.

The error is the root mean square of `got - expected` over that of `expected` (double precision), on the task's own inputs
and on normally distributed ones. It is held against the error that the reference makes in the task's own dtypes, at least
one unit roundoff u of them. For a float32 task:

* `fp32`: at most FULL times that;
* `near_fp32`: at most NEAR times that, or what recursive summation of the output's n terms explains: sqrt(n) times the larger
  of u and the response to a relative perturbation u of every input (the probabilistic bound that tolerance.py cites).
  Products split over several tensor-core products land here, and long serial sums;
* below: the smallest roundoff that explains the error, i.e. the first of `tf32` (2^-11) and `bf16` (2^-8) at which perturbing
  every input by that much moves the outputs as far. float16 has TF32's roundoff. Where the machine code holds
  instructions of exactly one low-precision format, that format is the name: it says `fp16` apart from `tf32`.

A task in float16 or bfloat16 is held against its own dtype's class in the same way. Error levels are all this can see:
a mean over a million elements in low precision can be as exact as one in float32, and is then classed so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from evaluator.tolerance import UNIT_ROUNDOFF
from evaluator.trees import leaves
from evaluator.types import KernelResources, PrecisionClass

FULL, NEAR = 4.0, 32.0
CLASSES: tuple[PrecisionClass, ...] = get_args(PrecisionClass)
OWN_CLASS: Mapping[str, PrecisionClass] = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
LOWER: Mapping[PrecisionClass, tuple[tuple[PrecisionClass, float], ...]] = {
    "fp64": (("fp32", 2.0**-24), ("tf32", 2.0**-11), ("bf16", 2.0**-8)),
    "fp32": (("tf32", 2.0**-11), ("bf16", 2.0**-8)),
}
"""(class, unit roundoff) below a task's own class, in turn."""


@dataclass(frozen=True)
class Yardstick:
    """What an output's error is held against. Errors are relative: root mean square over that of the expected values."""

    dtype: str
    """The least precise of the inputs' and the output's dtypes."""
    own: float
    """Error of the reference in the task's own dtypes."""
    spread: float = 0.0
    """How far the expected values move when every input is perturbed by one relative `roundoff`."""
    roundoff: float = UNIT_ROUNDOFF["float32"]
    terms: int = 1
    """How many terms one output accumulates (an upper guess)."""

    @property
    def unit(self) -> float:
        """The reference's own error, at least one roundoff of the dtype."""
        return max(self.own, UNIT_ROUNDOFF[self.dtype])


@dataclass
class Precision:
    """The errors of one solution over its cases."""

    seen: list[tuple[float, Yardstick]] = field(default_factory=list)

    def take(self, expected: Any, got: Any) -> None:
        """Adds the outputs of one right case: trees of Expected and of Leaf."""
        have = dict(leaves(got, ""))
        for path, want in leaves(expected, ""):
            if want.yardstick is not None:
                error = relative_error(have[path].as_float64(), want.values)
                if error is not None:
                    self.seen.append((error, want.yardstick))

    def ratio(self) -> float | None:
        """The largest error in units of the reference's own; None where no floating-point output was seen."""
        return max((error / yardstick.unit for error, yardstick in self.seen), default=None)

    def classify(self, formats: frozenset[PrecisionClass] = frozenset()) -> PrecisionClass | None:
        """The least precise class over all outputs and cases. `formats`: `formats_in` the machine code."""
        found = [classify(error, yardstick, formats) for error, yardstick in self.seen]
        return max(found, key=CLASSES.index, default=None)


def classify(error: float, yardstick: Yardstick, formats: frozenset[PrecisionClass] = frozenset()) -> PrecisionClass:
    """The class of one output (see the module's text)."""
    own = OWN_CLASS[yardstick.dtype]
    if error <= FULL * yardstick.unit:
        return own
    serial = math.sqrt(yardstick.terms) * max(UNIT_ROUNDOFF[yardstick.dtype], yardstick.spread)
    if error <= max(NEAR * yardstick.unit, serial):
        return "near_fp32" if own == "fp32" else own
    if own not in LOWER:
        return "bf16"
    if len(formats) == 1:
        return next(iter(formats))
    condition = max(yardstick.spread / yardstick.roundoff, 1.0)
    return next((name for name, roundoff in LOWER[own] if error <= condition * roundoff), "bf16")


def relative_error(values: NDArray[np.float64], expected: NDArray[np.float64]) -> float | None:
    """Root mean square of the difference over that of `expected`, finite elements only; None where that is zero."""
    finite = np.isfinite(values) & np.isfinite(expected)
    scale = float(np.sum(np.square(expected, where=finite, out=np.zeros_like(expected))))
    if scale <= 0:
        return None
    difference = np.subtract(values, expected, where=finite, out=np.zeros_like(expected))
    return math.sqrt(float(np.sum(np.square(difference))) / scale)


def allowed_classes(permitted: Iterable[str]) -> frozenset[PrecisionClass]:
    """The classes that a task accepts: full and nearly full precision, and what it permits with everything above it."""
    lowest = max((CLASSES.index(name) for name in permitted if name in CLASSES), default=CLASSES.index("near_fp32"))
    return frozenset(CLASSES[:max(lowest, CLASSES.index("near_fp32")) + 1])


def formats_in(resources: Iterable[KernelResources]) -> frozenset[PrecisionClass]:
    """Low-precision formats of the kernels' matrix products and conversions.

    Packed half instructions (HFMA2, HADD2) say nothing: ptxas also loads constants with them.
    """
    return frozenset(
        name for kernel in resources for opcode in kernel.sass for name in [_format(opcode.split("."))] if name is not None
    )


def _format(opcode: list[str]) -> PrecisionClass | None:
    if opcode[0] not in ("HMMA", "HGMMA", "F2F", "F2FP"):
        return None
    if "TF32" in opcode:
        return "tf32"
    if "BF16" in opcode:
        return "bf16"
    # The tensor-core products' default input format is float16; `F32` there names the accumulator.
    return "fp16" if "F16" in opcode or opcode[0] in ("HMMA", "HGMMA") else None
