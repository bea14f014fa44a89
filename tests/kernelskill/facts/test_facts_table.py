from __future__ import annotations

import pytest

from kernelskill.facts.table import FactError, FactTable

WRONG = [
    ("dram_troughput_pct", 5.0, "modelled", "no fact is called 'dram_troughput_pct'"),
    ("dram_throughput_pct", 5.0, "source", "fact 'dram_throughput_pct' cannot come from 'source', only from modelled, ncu"),
    ("dram_throughput_pct", 101.0, "modelled", "fact 'dram_throughput_pct' = 101 % is outside 0 to 100"),
    ("dram_throughput_pct", -1.0, "modelled", "fact 'dram_throughput_pct' = -1 % is outside 0 to 100"),
    ("dram_throughput_pct", float("nan"), "modelled", "fact 'dram_throughput_pct' is nan"),
    ("time_us", float("inf"), "modelled", "fact 'time_us' is inf"),
    ("time_us", True, "modelled", "fact 'time_us' is a number, got True"),
    ("time_us", "5", "modelled", "fact 'time_us' is a number, got '5'"),
    ("grid_blocks", -1, "simulated", "fact 'grid_blocks' = -1 blocks is outside 0 to inf"),
    ("uses_restrict", 1, "source", "fact 'uses_restrict' is a bool, got 1"),
    (
        "reduction_style",
        "tree",
        "source",
        "fact 'reduction_style' is a text of none, serial, shared_tree, warp_shuffle, atomic, got 'tree'",
    ),
    ("device_name", "", "device_card", "fact 'device_name' is a text, got ''"),
]


@pytest.mark.parametrize(("name", "value", "provenance", "message"), WRONG)
def test_fact_that_contradicts_the_vocabulary_is_refused(name, value, provenance, message):
    with pytest.raises(FactError) as caught:
        FactTable().add(name, value, provenance)
    assert caught.value.message == message


def test_facts_carry_unit_and_provenance():
    table = FactTable()
    table.add("dram_throughput_pct", 62.0, "modelled")
    table.add("failed_here.launch_tuning", 2, "history")
    table.add("time_us", None, "modelled")
    facts = table.facts()
    assert list(facts) == ["dram_throughput_pct", "failed_here.launch_tuning"]
    assert (facts["dram_throughput_pct"].value, facts["dram_throughput_pct"].unit, facts["dram_throughput_pct"].provenance) == (
        62,
        "%",
        "modelled",
    )
    assert table.number("time_us") is None


def test_rounding_noise_of_a_percentage_becomes_its_bound():
    table = FactTable()
    table.add("l1_hit_rate_pct", 100.2, "modelled")
    assert table.value("l1_hit_rate_pct") == 100
