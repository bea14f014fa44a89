"""The model ranks kernels as an H200 does. Deterministic, so the agreement can be asserted."""

from __future__ import annotations

import pytest

from benchmarks.model.measured import load
from benchmarks.model.modelled import model_all
from benchmarks.model.report import family_score
from benchmarks.model.score import score
from benchmarks.model.table import VARIANTS

FAMILIES = ("row_reduction", "softmax", "full_reduction", "layernorm", "matmul_fp32", "matmul_tensor", "scan", "small_blocks",
            "nbody")
"""Those with small arrays; `python -m benchmarks.model` runs all."""


@pytest.fixture(scope="module")
def results():
    return list(model_all(v for v in VARIANTS if v.family in FAMILIES))


def test_at_least_95_percent_of_the_pairs_rank_right(results):
    times = {r.variant.kernel: r.estimate.time_us for r in results}
    cold = {name: record.cold_us for name, record in load().items()}
    agreement = family_score(FAMILIES, times, cold, [r.variant for r in results])
    assert agreement.pairs > 80
    assert agreement.percent >= 95, agreement.wrong
    assert agreement.error_factor < 1.3


def test_resident_blocks_are_those_of_the_driver(results):
    assert {r.variant.kernel: r.estimate.blocks_per_sm for r in results} == {
        r.variant.kernel: load()[r.variant.kernel].blocks_per_sm for r in results}


def test_limiters_are_what_the_counters_say(results):
    limiter = {r.variant.kernel: r.estimate.limiter for r in results}
    assert limiter["fr_atomic_thread"] == "atomics"
    assert limiter["mm_uncoalesced"] == "l1"
    assert limiter["rr_float4"] == "dram"
    assert limiter["mt_wmma_smem_conflict"] == "shared"
    assert limiter["sb_32"] == "latency"


def test_score_counts_only_pairs_that_differ():
    measured = {"a": 10.0, "b": 11.0, "c": 15.0, "d": 100.0}
    agreement = score([["a", "b", "c", "d"]], {"a": 1.0, "b": 0.5, "c": 0.9, "d": 3.0}, measured)
    assert (agreement.pairs, agreement.right, agreement.hard_pairs) == (5, 4, 2)
    assert agreement.wrong == (("a", "c"),)
