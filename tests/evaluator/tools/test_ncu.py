"""Nsight Compute's pages read, its refusals told, and the filter that keeps libraries out."""

from pathlib import Path

import pytest

from evaluator import ncu, profile_cuda
from evaluator.attached import ToolFailed
from evaluator.ncu import FORBIDDEN, SECTIONS, SETS, NotAnExport, own_kernels, read_profiles, reason

FOLDER = Path(__file__).parents[3] / "benchmarks" / "policy_corpus" / "nsight"
NAME = "h200_naive_gemm_relu_softmax.ncu"
RAW = (FOLDER / f"{NAME}-raw.csv").read_text(encoding="utf-8")
DETAILS = (FOLDER / f"{NAME}-details.csv").read_text(encoding="utf-8")


def test_metrics_are_in_microseconds_and_bytes_and_rules_stand_beside_them():
    gemm, relu, softmax = read_profiles(RAW, DETAILS)
    assert gemm.metrics["gpu__time_duration.avg"] == pytest.approx(3180.5, abs=0.1)  # 3 180 510 ns
    assert gemm.metrics["dram__bytes.sum"] == 45348864
    assert (softmax.kernel, softmax.block, softmax.grid) == ("softmax", (256, 1, 1), (4096, 1, 1))
    assert {rule.rule for rule in relu.rules} >= {"SOLBottleneck", "AchievedOccupancy"}


def test_without_a_details_page_there_are_metrics_and_no_rules():
    assert all(profile.metrics and not profile.rules for profile in read_profiles(RAW))


@pytest.mark.parametrize("text", ["", "==PROF== Connected\n==PROF== Disconnected\n", "a,b\n1,2\n"])
def test_a_text_that_is_no_export_is_refused(text):
    with pytest.raises(NotAnExport, match="no raw page of Nsight Compute"):
        read_profiles(text)


def test_an_export_without_a_row_of_units_is_read():
    text = '"ID","Kernel Name","Block Size","Grid Size","dram__bytes.sum"\n"0","k","(32, 1, 1)","(2, 1, 1)","1,024"\n'
    (only,) = read_profiles(text)
    assert only.metrics == {"dram__bytes.sum": 1024}


def test_counters_that_the_driver_refuses_are_told_with_the_way_out():
    printed = ("==PROF== Connected to process 12 (/usr/bin/python3.12)\n==ERROR== ERR_NVGPUCTRPERM - The user does not have "
               "permission to access NVIDIA GPU Performance Counters on the target device 0.\n==PROF== Disconnected\n")
    assert reason(printed).startswith("forbidden here: ERR_NVGPUCTRPERM; ")
    assert "NVreg_RestrictProfilingToAdminUsers=0" in reason(printed)


def test_another_error_is_repeated_and_silence_gives_no_reason():
    assert reason("==ERROR== Profiling is not supported on device 0.\n") == "ncu: Profiling is not supported on device 0."
    assert reason("==PROF== Connected to process 12\n") == ""


def test_only_the_solutions_own_kernels_are_measured():
    assert own_kernels(["softmax", "shift<float, 3>", "ns::k", "softmax"]) == "regex:^(k|shift|softmax)$"


def test_a_full_profile_of_ncu_2025_with_templates_and_shared_memory():
    """Recorded with the evaluator's own settings; `ncu_raw.csv` keeps the columns that facts are made of."""
    recorded = Path(__file__).parent / "recorded"
    raw, details = ((recorded / f"ncu_{page}.csv").read_text() for page in ("raw", "details"))
    scale, shift, block_sum = read_profiles(raw, details)
    assert shift.kernel == "void shift<float, 3>(const T1 *, T1 *, int)"
    assert scale.metrics["gpu__time_duration.avg"] == pytest.approx(49.92)
    assert block_sum.metrics["sass__inst_executed_shared_loads"] == 25600
    assert all("SOLBottleneck" in {rule.rule for rule in profile.rules} for profile in (scale, shift, block_sum))


@pytest.fixture
def profilers(bench, monkeypatch):
    """Profilers whose ncu answers each set of sections with a reason, or with "" for counters."""
    def make(answers, counter_set="facts"):
        asked = []

        class Target:
            deadline = 0.0

            def __init__(self, request):
                self.request = request

            def __enter__(self):
                return self

            def __exit__(self, *_):
                return None

        def measure(target, problem):
            asked.append(target.request.counter_set)
            if answers[target.request.counter_set]:
                raise ToolFailed(answers[target.request.counter_set])
            return ("counters",)

        monkeypatch.setattr(ncu, "start", lambda request, kernels, deadline: Target(request))
        monkeypatch.setattr(ncu, "measure", measure)
        monkeypatch.setattr(profile_cuda, "Attached", lambda *_: None)
        task = bench.native("def make_inputs(rng, n):\n    return {}\ndef reference():\n    return 1\n", [{"n": 1}])
        request = bench.request(task, "").model_copy(update={"counters": ("dram__bytes.sum",), "counter_set": counter_set})
        return profile_cuda.Profilers(request, ["k"], 0.0), asked

    return make


UNKNOWN = "ncu: Unable to find section WorkloadDistribution"


@pytest.mark.parametrize(("answers", "counter_set", "found", "asked"), [
    ({"facts": "", "full": "unasked"}, "facts", (("counters",), ""), ["facts"]),
    ({"facts": UNKNOWN, "full": ""}, "facts", (("counters",), ""), ["facts", "full"]),
    ({"facts": UNKNOWN, "full": "ncu: no"}, "facts", ((), "ncu: no"), ["facts", "full"]),
    ({"facts": f"forbidden here: {FORBIDDEN}", "full": ""}, "facts", ((), f"forbidden here: {FORBIDDEN}"), ["facts"]),
    ({"full": UNKNOWN}, "full", ((), UNKNOWN), ["full"]),
])
def test_a_version_without_a_section_is_asked_for_its_full_set(profilers, answers, counter_set, found, asked):
    made, seen = profilers(answers, counter_set)
    assert made.counters(None) == found and seen == asked


def test_the_sets_are_what_the_command_line_of_ncu_takes():
    assert SETS["full"] == ("--set", "full")
    assert SETS["facts"][:2] == ("--section", "SpeedOfLight") and SETS["facts"].count("--section") == len(SECTIONS)
