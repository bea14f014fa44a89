"""The recorded timings of the card say what docs/timing.md says of them."""

import json
from pathlib import Path

import pytest

from evaluator.statistics import NOISE

RECORD = json.loads((Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "h200" / "timing.json").read_text())
PAIRS = [pair for name, pair in RECORD["noise"].items() if name != "what"]


def test_the_record_says_where_it_is_from():
    where = RECORD["provenance"]
    assert where["device"] == "NVIDIA H200" and where["state_before"]["throttle_reasons"] == []
    assert where["state_after"]["throttle_reasons"] == []
    assert set(RECORD["sections"]) >= {"graph", "cheats", "baselines", "noise"}
    for made in RECORD["sections"].values():
        assert made["date"] and made["commit"] and made["command"].startswith("python -m benchmarks.h200 ")


@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_the_same_solution_twice_stays_below_the_noise_floor(pair):
    assert abs(pair["ratio"] - 1) < NOISE / 2 and pair["verdict"] == "equal"
    assert 1 - NOISE < pair["interval"][0] <= pair["ratio"] <= pair["interval"][1] < 1 + NOISE


@pytest.mark.parametrize("n", RECORD["graph"])
def test_events_do_not_time_the_host_even_for_the_smallest_kernels(n):
    row = RECORD["graph"][n]
    assert row["event"]["us"] == pytest.approx(row["graph"]["us"], rel=0.03)


def test_work_on_another_stream_costs_what_it_costs():
    honest, aside = (RECORD["cheats"][name]["event"]["us"] for name in ("honest", "works_on_another_stream"))
    assert aside == pytest.approx(honest, rel=0.03)
