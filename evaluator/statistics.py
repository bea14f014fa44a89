"""Measured times as medians with bootstrap intervals, and the comparison of two of them.

A difference counts only where the 95 % interval of the ratio of medians lies beyond the noise floor: the interval covers
the scatter within one session, the floor what two sessions of the same solution differ by (measured as an A/A run).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from evaluator.types import TimeEstimate

RESAMPLES = 2000
"""Resamples of a bootstrap: enough that the 2.5 % point rests on 50 of them."""
NOISE = 0.01
"""Ratios closer to 1 are equal, however narrow the interval. The same solution measured in different sessions differed by up to
0.003, its intervals reached 0.007 (benchmarks/results/h200/timing.json, `noise`)."""
EVENT_STEP_US = 0.032
"""Steps of an event's time on that card; two of them decide nothing either, which matters below 6.4 us."""


ENOUGH = 0.0025
"""A median is known well enough where half of its 95 % interval is no wider than this share of it: a quarter of NOISE, so that
no verdict depends on more samples."""


class Comparison(NamedTuple):
    """How a second solution's time relates to a first one's."""

    verdict: Literal["faster", "equal", "slower"]
    ratio: float
    """First median / second median: above 1 the second is faster."""
    low: float
    high: float
    """95 % interval of the ratio."""

    def __str__(self) -> str:
        return f"{self.verdict}: {self.ratio:.3f}x, 95 % interval {self.low:.3f} to {self.high:.3f}"


def summarise(
    samples_us: Sequence[float], provenance: Literal["cuda_event", "cuda_graph"] = "cuda_event", seed: int = 0,
) -> TimeEstimate:
    """Median and its 95 % bootstrap interval (percentile method). Raises ValueError without samples."""
    if not samples_us:
        raise ValueError("no samples")
    data = np.asarray(samples_us, dtype=np.float64)
    low, high = _interval((data,), np.median, seed)
    return TimeEstimate(
        provenance=provenance, time_us=float(np.median(data)), low_us=low, high_us=high, samples=len(data),
        samples_us=tuple(round(float(sample), 3) for sample in data),
    )


def known(samples_us: Sequence[float]) -> bool:
    """Whether the samples give the median well enough; of very short calls, as well as events can tell."""
    found = summarise(samples_us)
    assert found.low_us is not None and found.high_us is not None
    return (found.high_us - found.low_us) / 2 <= max(ENOUGH * found.time_us, EVENT_STEP_US)


def noise_floor(first: TimeEstimate, second: TimeEstimate) -> float:
    """The ratio up to which two times count as equal."""
    return 1.0 + max(NOISE, 2.0 * EVENT_STEP_US / min(first.time_us, second.time_us))


def compare(first: TimeEstimate, second: TimeEstimate) -> Comparison:
    """Whether the second is faster, as far as the samples say. Raises ValueError for times of different provenance."""
    if first.provenance != second.provenance:
        raise ValueError(f"{first.provenance} and {second.provenance} times cannot be compared")
    ratio, low, high = ratio_of(first, second)
    verdict: Literal["faster", "equal", "slower"] = "equal"
    floor = noise_floor(first, second)
    if low > floor:
        verdict = "faster"
    elif high < 1 / floor:
        verdict = "slower"
    return Comparison(verdict, ratio, low, high)


def ratio_of(first: TimeEstimate, second: TimeEstimate) -> tuple[float, float, float]:
    """(first median / second median, low, high): the 95 % interval of times that took turns."""
    ratio = first.time_us / second.time_us
    return (ratio, *_ratio_interval(first, second, ratio))


def _ratio_interval(first: TimeEstimate, second: TimeEstimate, ratio: float) -> tuple[float, float]:
    if first.samples_us and second.samples_us:
        samples = (np.asarray(first.samples_us), np.asarray(second.samples_us))
        return _interval(samples, lambda a, b, axis: np.median(a, axis=axis) / np.median(b, axis=axis), 0)
    # Without samples the two intervals' ends bound the ratio, more widely than a bootstrap would.
    low = (first.low_us or first.time_us) / (second.high_us or second.time_us)
    high = (first.high_us or first.time_us) / (second.low_us or second.time_us)
    return min(low, ratio), max(high, ratio)


def _interval(samples: tuple[Any, ...], statistic: Any, seed: int) -> tuple[float, float]:
    if all(len(sample) == 1 for sample in samples):
        value = float(statistic(*samples, axis=-1))
        return value, value
    from scipy import stats  # half a second to import

    interval = stats.bootstrap(
        samples, statistic, n_resamples=RESAMPLES, confidence_level=0.95, method="percentile", vectorized=True,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(interval.low), float(interval.high)
