"""How far an output element may be from the double-precision reference.

allowed = atol + rtol*|expected| + output_rounding + accumulation

* `atol`, `rtol`: the task's own.
  Where `atol` alone would nearly accept an output of zeros (it exceeds a tenth of the outputs' root mean square: a
  softmax over many columns), it is taken relative to that root mean square instead.
* output_rounding = 2 u_out |expected|: storing the result in the output dtype costs half an ulp (u_out is the unit
  roundoff, IEEE 754-2019 table 3.5); the factor 2 leaves room for a last operation that is not correctly rounded.
* accumulation = LAMBDA sqrt(n) spread: the probabilistic rounding error bound of an n-term accumulation (Higham and Mary,
  "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41(5), 2019: lambda sqrt(n) u in place of
  n u). `spread` is the conditioning: how far the double-precision reference moves when every input is perturbed by one
  relative u of the working dtype. It matters only where terms cancel; a kernel in the next lower precision
  (TF32: u = 2^-11 against 2^-24) still exceeds it by orders of magnitude.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.trees import Leaf, leaves
from evaluator.types import Tolerance

UNIT_ROUNDOFF = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
"""Half the distance from 1 to the next number. bfloat16: 8-bit significand (the other rows: IEEE 754-2019, table 3.5)."""
SMALLEST_NORMAL = {"bfloat16": 2.0**-126, "float16": 2.0**-14, "float32": 2.0**-126, "float64": 2.0**-1022}
"""Below it a result may be flushed to zero (CuPy compiles with -ftz=true)."""
LAMBDA = 4.0
"""The bound fails with probability at most 2 exp(-LAMBDA^2 / 2) = 7e-4 in each step's worst case (same paper, Theorem 2.4);
observed errors stay well below it."""


ZERO_PASSES = 10.0
"""An `atol` above 1/ZERO_PASSES of the outputs' size says nothing about them."""


def working_roundoff(inputs: Any) -> float:
    """Unit roundoff of the widest rounding among the floating-point inputs (float32 where there are none)."""
    found = [UNIT_ROUNDOFF[leaf.dtype] for _, leaf in leaves(inputs, "") if isinstance(leaf, Leaf) and leaf.is_float]
    return max(found, default=UNIT_ROUNDOFF["float32"])


def reduction_length(inputs: Any, outputs: Any) -> int:
    """An upper guess of how many terms one output accumulates: the longest input axis, or inputs per output element."""
    arrays = [leaf for _, leaf in leaves(inputs, "") if isinstance(leaf, Leaf) and leaf.is_float and leaf.shape]
    if not arrays:
        return 1
    longest = max(max(leaf.shape) for leaf in arrays)
    largest = max(leaf.values.size for leaf in arrays)
    smallest_output = min((leaf.values.size for _, leaf in leaves(outputs, "") if isinstance(leaf, Leaf)), default=1)
    return max(longest, largest // max(smallest_output, 1), 1)


def smooth_spread(samples: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Per element, the larger of its own responses and the root mean square over its last axis.

    A single random perturbation can leave one element unmoved by chance; its neighbours show the usual size.
    Elements that are not finite count as unmoved.
    """
    stacked = np.stack([np.where(np.isfinite(sample), np.abs(sample), 0.0) for sample in samples])
    own = stacked.max(axis=0)
    if own.ndim == 0 or own.size == 0:
        return np.asarray(own)
    return np.asarray(np.maximum(own, np.sqrt((stacked**2).mean(axis=(0, own.ndim), keepdims=True))[0]))


def allowed_error(
    expected: NDArray[np.float64], dtype: str, tolerance: Tolerance, spread: NDArray[np.float64] | float = 0.0, terms: int = 1
) -> NDArray[np.float64]:
    """Largest permitted |got - expected| per element (see the module's text); integers and bools get zero."""
    if dtype not in UNIT_ROUNDOFF:
        return np.zeros(expected.shape)
    magnitude = np.where(np.isfinite(expected), np.abs(expected), 0.0)
    rounding = 2.0 * UNIT_ROUNDOFF[dtype] * magnitude + SMALLEST_NORMAL[dtype]
    accumulation = LAMBDA * math.sqrt(terms) * np.asarray(spread)
    return _scaled_atol(tolerance.atol, magnitude) + tolerance.rtol * magnitude + rounding + accumulation


def _scaled_atol(atol: float, magnitude: NDArray[np.float64]) -> float:
    scale = float(np.sqrt((magnitude**2).mean())) if magnitude.size else 0.0
    return atol * scale if 0 < scale < ZERO_PASSES * atol else atol
