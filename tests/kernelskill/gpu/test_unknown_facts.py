"""What a GPU run knows and does not know is said: in `why --not`, and once in what `evaluate` prints."""

from pathlib import Path

from evaluator.ncu import read_profiles
from evaluator.types import Environment, Evaluation, Status
from kernelskill.model import Fact
from kernelskill.policy import Policy, load_rules, why_not
from kernelskill.report.evaluation import counter_lines, seconds_line, unknown_lines

RULES = """
rules:
  - id: widen
    title: Wider loads
    when: {all: [{fact: dram_throughput_pct, op: ">=", value: 60}, {fact: task_family, value: matmul}]}
    then: [{propose: vectorized_access, gain: 1.2}]
    priority: 500
    because: "DRAM is busy"
    source: "a guide"
"""
REASON = "forbidden here: ERR_NVGPUCTRPERM; counters are for administrators only here"


def lacking(tmp_path, facts):
    (tmp_path / "own.yaml").write_text(RULES)
    book = load_rules([tmp_path], ["vectorized_access"])
    return why_not(Policy(book).decide({fact.name: fact for fact in facts}), "vectorized_access", book)


def test_why_not_names_the_reason_for_counters_and_for_nothing_else(tmp_path):
    text = lacking(tmp_path, [Fact(name="counters_unavailable", value=REASON, provenance="ncu")])
    assert f"dram_throughput_pct is unknown: needs ncu ({REASON})" in text
    assert "task_family is unknown: needs task" in text


def test_without_a_reason_the_sources_are_named(tmp_path):
    text = lacking(tmp_path, [Fact(name="task_family", value="matmul", provenance="task")])
    assert "dram_throughput_pct is unknown: needs modelled or ncu" in text


def test_an_evaluation_says_what_stays_unknown_and_why():
    where = Environment(device="NVIDIA H200", simulated=False, arch="sm_90")
    evaluation = Evaluation(status=Status.PASSED, message="", environment=where,
                            unavailable={"ncu": REASON, "cupti": "no libcupti was found"})
    assert unknown_lines(evaluation) == [
        f"unknown   hardware counters (throughputs, stalls, cache hits, sectors, NVIDIA's rules): {REASON}",
        "unknown   times of single kernels, gaps between them, launch overhead: no libcupti was found"]


def test_an_evaluation_says_what_limits_each_kernel_and_what_nvidias_rules_expect():
    folder = Path(__file__).parents[3] / "benchmarks" / "policy_corpus" / "nsight"
    raw, details = ((folder / f"h200_naive_gemm_relu_softmax.ncu-{page}.csv").read_text() for page in ("raw", "details"))
    where = Environment(device="NVIDIA H200", simulated=False, arch="sm_90")
    evaluation = Evaluation(status=Status.PASSED, message="", environment=where, profiles=tuple(read_profiles(raw, details)))
    gemm, relu, _ = counter_lines(evaluation)
    assert gemm.startswith("counters  gemm: DRAM 0 %, L2 20 %, L1 98 %, SM 65 % of peak; Nsight Compute names l1")
    assert relu.endswith("its rules estimate HighPipeUtilization 84 %, IssueSlotUtilization 46 %, CPIStall 46 %")


def test_where_the_seconds_of_an_evaluation_went_is_said_the_longest_part_first():
    where = Environment(device="NVIDIA H200", simulated=False, arch="sm_90")
    evaluation = Evaluation(status=Status.PASSED, message="", environment=where,
                            stage_seconds={"guard": 0.002, "verify": 0.61, "counters": 5.42, "close": 0.06})
    assert seconds_line(evaluation) == "took      6.1 s: counters 5.4, verify 0.6, close 0.1"
