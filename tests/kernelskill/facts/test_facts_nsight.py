"""Exports of Nsight Compute as facts: a real one from an H200."""

from pathlib import Path

import pytest

from evaluator.ncu import read_profiles
from evaluator.types import KernelProfile, RuleResult
from kernelskill.facts.nsight import COUNTERS, add_nsight_facts, bottleneck, rule_fact, unknown_rules
from kernelskill.facts.table import FactTable

FOLDER = Path(__file__).parents[3] / "benchmarks" / "policy_corpus" / "nsight"
NAME = "h200_naive_gemm_relu_softmax.ncu"
RAW = (FOLDER / f"{NAME}-raw.csv").read_text(encoding="utf-8")
DETAILS = (FOLDER / f"{NAME}-details.csv").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def launches():
    return read_profiles(RAW, DETAILS)


def profile_with(*rules):
    return KernelProfile(kernel="k", rules=tuple(RuleResult(rule=r, description=d, speedup_pct=s) for r, d, s in rules))


def facts_of(profile):
    table = FactTable()
    add_nsight_facts(table, profile)
    return {name: fact.value for name, fact in table.facts().items()}


def test_every_launch_is_read_with_its_shape(launches):
    assert [(p.kernel, p.block, p.grid) for p in launches] == [
        ("gemm", (16, 16, 1), (128, 128, 1)), ("relu", (256, 1, 1), (262144, 1, 1)), ("softmax", (256, 1, 1), (4096, 1, 1))]


def test_metrics_become_facts_in_the_vocabularys_units(launches):
    gemm = facts_of(launches[0])
    assert gemm["kernel_time_us"] == pytest.approx(3180.5, abs=0.1)  # 3 180 510 ns
    assert (gemm["dram_bytes"], gemm["grid_blocks"], gemm["block_threads"]) == (45348864, 16384, 256)
    assert gemm["l1_throughput_pct"] == pytest.approx(97.74)
    assert (gemm["blocks_per_sm"], gemm["occupancy_limiter"]) == (8, "warps")


def test_nvidias_rules_become_facts(launches):
    gemm, relu, softmax = map(facts_of, launches)
    assert [f["nsight_bottleneck"] for f in (gemm, relu, softmax)] == ["l1", "latency", "latency"]
    assert relu["nsight_achieved_occupancy_speedup_pct"] == pytest.approx(28.93)
    assert softmax["nsight_launch_configuration_speedup_pct"] == 25
    assert "nsight_launch_configuration_speedup_pct" not in gemm
    assert unknown_rules(launches) == set()


def test_all_facts_have_the_provenance_of_the_tool(launches):
    table = FactTable()
    add_nsight_facts(table, launches[0])
    assert {fact.provenance for fact in table.facts().values()} == {"ncu"}


def test_without_a_details_page_there_are_no_rule_facts():
    assert not [name for p in read_profiles(RAW) for name in facts_of(p) if name.startswith("nsight_")]


@pytest.mark.parametrize(("text", "word"), [
    ("Memory is more heavily utilized than Compute: Look at ... to identify the L2 bottleneck.", "l2"),
    ("... greater than 80.0% ... Start by analyzing DRAM in the Memory Workload Analysis section.", "dram"),
    ("Compute is more heavily utilized than Memory: Look at ...", "compute"),
    ("Compute and Memory are well-balanced: To reduce runtime ...", "balanced"),
    ("This kernel grid is too small to fill the available resources on this device", "latency"),
    ("something that a later version says", "")])
def test_the_bottleneck_is_read_from_the_sentence(text, word):
    assert bottleneck(profile_with(("SOLBottleneck", text, None))) == word


def test_of_two_estimates_of_one_rule_the_larger_counts():
    profile = profile_with(("CPIStall", "", 12.0), ("CPIStall", "", 31.0))
    assert facts_of(profile) == {"nsight_cpi_stall_speedup_pct": 31}


def test_a_rule_that_the_vocabulary_does_not_know_is_named_and_adds_nothing():
    profile = profile_with(("BrandNewRule", "", 12.0))
    assert facts_of(profile) == {}
    assert unknown_rules([profile]) == {"BrandNewRule"}
    assert rule_fact("MemoryL2Compression") == "nsight_memory_l2_compression_speedup_pct"


def test_what_several_metrics_give_together():
    recorded = Path(__file__).parents[2] / "evaluator" / "tools" / "recorded"
    scale, _, block_sum = (facts_of(p) for p in read_profiles((recorded / "ncu_raw.csv").read_text()))
    assert (block_sum["shared_requests"], block_sum["local_requests"], block_sum["shared_bytes_per_block"]) == (46080, 0, 1024)
    assert (block_sum["shared_wavefronts_ratio"], block_sum["divergent_branch_pct"]) == (1, 0)
    assert scale["shared_bytes_per_block"] == 0
    assert not {"shared_wavefronts_ratio", "divergent_branch_pct"} & scale.keys()  # it has no such access, no such branch


def test_every_metric_that_names_a_fact_is_reported_by_the_tool():
    recorded = Path(__file__).parents[2] / "evaluator" / "tools" / "recorded"
    reported = read_profiles((recorded / "ncu_raw.csv").read_text())[2].metrics
    assert set(COUNTERS) - set(reported) == set()
