"""Nsight Compute's pages read, its refusals told, and the filter that keeps libraries out."""

from pathlib import Path

import pytest

from evaluator.ncu import NotAnExport, own_kernels, read_profiles, reason

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
