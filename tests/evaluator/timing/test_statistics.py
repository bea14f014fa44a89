"""Medians, intervals and the verdict on two times."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.statistics import compare, ratio_of, summarise
from evaluator.types import TimeEstimate


def samples(median: float, spread: float = 0.01, count: int = 100, seed: int = 1) -> list[float]:
    return (median * (1 + spread * np.random.default_rng(seed).standard_normal(count))).tolist()


def test_the_interval_holds_the_median_and_narrows_with_more_samples():
    few, many = summarise(samples(100, 0.05, 20)), summarise(samples(100, 0.05, 200))
    assert few.low_us < few.time_us < few.high_us
    assert many.high_us - many.low_us < few.high_us - few.low_us
    assert many.samples == len(many.samples_us) == 200


def test_the_interval_covers_the_true_median_about_as_often_as_it_says():
    covered = sum(
        estimate.low_us <= 100 <= estimate.high_us
        for estimate in (summarise(samples(100, 0.05, 40, seed)) for seed in range(60))
    )
    assert 50 <= covered <= 60


def test_one_outlier_moves_nothing():
    clean = samples(100, 0.01, 50)
    assert summarise([*clean, 5000.0]).time_us == pytest.approx(summarise(clean).time_us, rel=0.01)


@pytest.mark.parametrize("second,verdict", [(80.0, "faster"), (101.0, "equal"), (99.0, "equal"), (125.0, "slower")])
def test_verdicts(second, verdict):
    found = compare(summarise(samples(100)), summarise(samples(second, seed=2)))
    assert found.verdict == verdict
    assert found.low <= found.ratio <= found.high
    assert found.ratio == pytest.approx(100 / second, rel=0.02)


def test_a_wide_scatter_is_no_speedup():
    noisy = compare(summarise(samples(100, 0.6, 20)), summarise(samples(92, 0.6, 20, 2)))
    assert noisy.verdict == "equal" and noisy.low < 1 < noisy.high


def test_a_real_but_small_difference_stays_below_the_noise_floor():
    first, second = summarise(samples(100, 0.001)), summarise(samples(99.5, 0.001, seed=2))
    assert compare(first, second).low > 1
    assert compare(first, second).verdict == "equal"
    assert compare(first, summarise(samples(98, 0.001, seed=2))).verdict == "faster"


def test_single_steps_of_the_event_clock_decide_nothing():
    assert compare(summarise([3.456] * 50), summarise([3.392] * 50)).verdict == "equal"
    assert compare(summarise([3.456] * 50), summarise([3.328] * 50)).verdict == "faster"


def test_times_without_samples_are_compared_by_their_intervals():
    def time(middle: float, half: float) -> TimeEstimate:
        return TimeEstimate(provenance="cuda_event", time_us=middle, low_us=middle - half, high_us=middle + half)

    assert compare(time(100, 1), time(80, 1)).verdict == "faster"
    assert compare(time(100, 15), time(80, 15)).verdict == "equal"
    assert ratio_of(time(100, 1), time(80, 1)) == (1.25, 99 / 81, 101 / 79)


def test_modelled_and_measured_times_are_not_compared():
    with pytest.raises(ValueError, match="modelled and cuda_event"):
        compare(TimeEstimate(provenance="modelled", time_us=1), summarise([1.0, 1.0]))


def test_no_samples_are_refused():
    with pytest.raises(ValueError, match="no samples"):
        summarise([])
