"""The judge's own clock against the times that a solution's process reports, which shares that process with the timing code.

Calls in a row are timed from outside: the difference between many and one, divided by their number. It is no measurement (the
caches are warm, Python's own time counts), but no work can take longer here than what was reported allows.
"""

from __future__ import annotations

import time

from evaluator.failures import rejection
from evaluator.runner import Ended, Runner
from evaluator.types import Finding

BUDGET_US = 20_000.0
CALLS = (2, 50)
REPEATS = 3
FACTOR, HOST_US = 2.0, 250.0
"""A call may take this many times the reported time, and what Python and the driver need to queue it."""


def check_reported(runner: Runner, reported_us: float) -> float:
    """Microseconds of a call by the judge's clock. Raises Ended where they contradict the reported time."""
    calls = int(min(max(BUDGET_US / max(reported_us, 1.0), CALLS[0]), CALLS[1]))
    one, many = (min(_seconds(runner, count) for _ in range(REPEATS)) for count in (1, 1 + calls))
    own_us = 1e6 * (many - one) / calls
    if own_us > FACTOR * reported_us + HOST_US:
        raise Ended(rejection([Finding(kind="guard", message=(
            f"the solution's process reports {reported_us:.6g} us a call, the judge's clock says {own_us:.6g} us: the timing "
            "was tampered with"))]))
    return own_us


def _seconds(runner: Runner, calls: int) -> float:
    began = time.perf_counter()
    runner.time("repeat", calls=calls)
    return time.perf_counter() - began
