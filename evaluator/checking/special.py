"""What may be expected where inputs hold NaN, infinities, denormals or numbers near overflow.

An element is judged where the reference says the same in its own dtypes, in double precision, and with denormals flushed to
zero (CuPy compiles with -ftz=true): the same NaN, the same infinity, or a finite number within its own tolerance. Where these
differ, rounding decides, and the solution may return anything.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.comparison import Expected
from evaluator.oracle import Oracle, Problem
from evaluator.tolerance import SMALLEST_NORMAL, allowed_error, reduction_length, smooth_spread, working_roundoff
from evaluator.trees import Leaf, leaves, map_leaves, round_to

PERTURBATIONS = 2


def special_expected(oracle: Oracle, problem: Problem, seed: int) -> Any:
    """Tree of Expected. Raises TaskFault."""
    own = dict(leaves(oracle.outputs(problem), "out"))
    precise = oracle.precise_outputs(problem)
    flushed = dict(leaves(oracle.precise_outputs(_flushed(problem)), "out"))
    rng, roundoff = np.random.default_rng([seed, 1]), working_roundoff((problem.inputs, problem.state))
    moved = [dict(leaves(oracle.precise_outputs(problem, (roundoff, rng)), "out")) for _ in range(PERTURBATIONS)]
    terms = reduction_length((problem.inputs, problem.state), list(own.values()))

    def expect(path: str, leaf: Leaf) -> Expected:
        mine = own[path]
        if not leaf.is_float:
            differs = leaf.values != flushed[path].values if leaf.shape == flushed[path].shape else np.ones(leaf.shape, bool)
            return Expected(leaf.values, mine.dtype, np.zeros(leaf.shape),
                            free=np.asarray(differs | (leaf.values != mine.values)))
        values, others = leaf.as_float64(), [flushed[path].as_float64(), *(m[path].as_float64() for m in moved)]
        with np.errstate(invalid="ignore", over="ignore"):
            spread = smooth_spread([other - values for other in others])
        stored = [Leaf(round_to(v, mine.dtype), mine.dtype).as_float64() for v in (values, *others)]
        classes = [_classes(v) for v in (*stored, mine.as_float64())]
        free = np.any([c != classes[0] for c in classes[1:]], axis=0)
        allowed = allowed_error(values, mine.dtype, oracle.spec.tolerance, spread, terms)
        with np.errstate(invalid="ignore", over="ignore"):  # e.g. squares that overflow, divided by: 0 where 1 is right
            free |= (classes[0] == 0) & ~(np.abs(mine.as_float64() - values) <= allowed)
        return Expected(values, mine.dtype, allowed, free=np.asarray(free))

    by_identity = {id(leaf): expect(path, leaf) for path, leaf in leaves(precise, "out")}
    return map_leaves(lambda leaf: by_identity[id(leaf)], precise)


def _classes(values: NDArray[np.float64]) -> NDArray[np.int8]:
    """0 finite, 1 NaN, 2 and 3 the infinities."""
    return np.asarray(np.select([np.isnan(values), values == np.inf, values == -np.inf], [1, 2, 3], 0), np.int8)


def _flushed(problem: Problem) -> Problem:
    def flush(leaf: Any) -> Any:
        if not isinstance(leaf, Leaf) or not leaf.is_float:
            return leaf
        values = leaf.as_float64()
        values = np.where(np.abs(values) < SMALLEST_NORMAL[leaf.dtype], np.copysign(0.0, values), values)
        return Leaf(round_to(values, leaf.dtype), leaf.dtype, leaf.source)

    return Problem(map_leaves(flush, problem.inputs), problem.init, problem.state)
