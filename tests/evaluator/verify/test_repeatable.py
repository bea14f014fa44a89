"""A verdict names the seed with which the same evaluation can be repeated."""

from __future__ import annotations

import re

from evaluator.pool import evaluate
from evaluator.types import Status

SCALE = """
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32)}
def reference(x):
    return 2 * x
"""
WRONG_BELOW_ZERO = "import cupy as cp\n\n\ndef run(x):\n    return cp.maximum(2 * x, 0)\n"
FAILS = "def run(x):\n    return x[99]\n"


def seed_of(text: str) -> int:
    return int(re.search(r"evaluation seed (\d+)", text)[1])


def test_the_same_seed_gives_the_same_verdict(bench):
    request = bench.request(bench.native(SCALE, [{"n": 64}], allow_library=("all",)), WRONG_BELOW_ZERO)
    first, second = evaluate(request), evaluate(request)
    assert first.status is Status.INCORRECT_NUMERICAL
    assert seed_of(first.mismatch.case) != seed_of(second.mismatch.case)
    again = evaluate(request.model_copy(update={"seed": seed_of(first.mismatch.case)}))
    assert (again.status, again.message, again.mismatch) == (first.status, first.message, first.mismatch)


def test_a_failure_names_the_seed_too(bench):
    request = bench.request(bench.native(SCALE, [{"n": 64}]), FAILS)
    assert seed_of(evaluate(request.model_copy(update={"seed": 12345})).message) == 12345
