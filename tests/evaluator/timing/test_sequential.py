"""When sampling ends: decided on the samples of real runs, as if each sample had just been taken."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from evaluator.judge_timing import LOOKS
from evaluator.statistics import NOISE, compare, known, summarise

RECORDED = json.loads((Path(__file__).parent / "recorded" / "samples.json").read_text())
RUNS = ("row_softmax", "transpose")


def stopped(samples):
    """The samples that would have been taken."""
    return next((samples[:look] for look in LOOKS if known(samples[:look])), samples)


@pytest.mark.parametrize("kind", ["samples_us", "graph_us"])
def test_fewer_samples_give_the_same_median_far_within_the_noise_floor(kind):
    rows = [row[kind] for run in RUNS for row in RECORDED[run] if kind in row]
    shares = []
    for samples in rows:
        short, whole = stopped(samples), np.median(samples)
        assert abs(np.median(short) / whole - 1) < NOISE / 4, (np.median(short), whole)
        shares.append(len(short) / len(samples))
    assert np.mean(shares) < 0.6


@pytest.mark.parametrize("run", RUNS)
def test_every_attempt_gets_the_verdict_that_all_its_samples_gave(run):
    rows, verdicts = RECORDED[run], []
    best = rows[0]["samples_us"]
    for _, row in pairwise(rows):
        child = row["samples_us"]
        whole = compare(summarise(best), summarise(child)).verdict
        assert compare(summarise(stopped(best)), summarise(stopped(child))).verdict == whole
        verdicts.append(whole)
        best = child if whole == "faster" else best
    assert verdicts[0] == "faster" and (run == "transpose" or {"equal", "slower"} <= set(verdicts))


def test_the_width_of_the_interval_ends_it_and_not_the_time():
    rng = np.random.default_rng(5)
    scattered = list(100 + 5 * rng.standard_normal(200))
    assert not known(scattered[:40]) and len(stopped(scattered)) == 200
    steady = list(100 + 0.1 * rng.standard_normal(200))
    assert [len(stopped([factor * sample for sample in steady])) for factor in (0.2, 1.0, 5.0)] == [40, 40, 40]


def test_times_of_a_few_steps_of_the_clock_are_known_to_a_step():
    samples = [3.424, 3.456] * 40
    assert known(samples[:40]) and not known([3.424, 3.6] * 20)
