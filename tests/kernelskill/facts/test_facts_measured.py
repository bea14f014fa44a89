"""Facts of an evaluation on a GPU: every one says who measured it, and nothing modelled is among them."""

from pathlib import Path

import pytest

from evaluator.ncu import read_profiles
from evaluator.types import Environment, Evaluation, KernelResources, LaunchRecord, Status, TimeEstimate, Timeline
from kernelskill.facts import collect
from kernelskill.facts.device import load_device
from kernelskill.facts.nsight import COUNTERS, DRAM_BYTES, L2_SECTORS, THREAD_INSTRUCTIONS
from kernelskill.tasks import load_task

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "benchmarks" / "policy_corpus" / "nsight"
NAME = "h200_naive_gemm_relu_softmax.ncu"
GEMM, RELU, SOFTMAX = read_profiles((FOLDER / f"{NAME}-raw.csv").read_text(), (FOLDER / f"{NAME}-details.csv").read_text())
WHERE = Environment(device="NVIDIA H200", simulated=False, arch="sm_90")
SOURCE = "import cupy as cp\n" + f'CODE = r"""{(FOLDER / "naive_gemm_relu_softmax.cu").read_text()}"""\n'
GIVEN = {"ncu", "cupti", "cuda_event", "launched", "ptxas", "sass", "source", "task", "device_card"}


def launched(profile, time_us, **more):
    return LaunchRecord(kernel=profile.kernel, grid=profile.grid, block=profile.block, time_us=time_us, **more)


def evaluation(launches, profiles, **more):
    fields = {
        "status": Status.PASSED, "message": "", "environment": WHERE, "launches": tuple(launches), "profiles": tuple(profiles),
        "time": TimeEstimate(provenance="cuda_event", time_us=4000.0),
        "task_facts": {"task_bytes": 1e8, "task_output_elements": 1e6},
        "timeline": Timeline(calls=7, span_us=3900.0, busy_us=3800.0, longest_gap_us=60.0),
        "resources": (KernelResources(kernel="gemm", registers=32, static_shared_bytes=0, stack_bytes=0, spill_store_bytes=0,
                                      spill_load_bytes=0),)}
    return Evaluation.model_validate(fields | more)


def facts_of(found):
    return collect(load_task(ROOT / "examples" / "row_softmax"), SOURCE, found, load_device("h200"))


def test_the_kernel_with_most_time_gets_its_counters_and_each_fact_its_source():
    launches = [launched(RELU, 150.0), launched(GEMM, 3200.0), launched(SOFTMAX, 450.0)]
    found = facts_of(evaluation(launches, [GEMM, RELU, SOFTMAX]))
    assert {fact.provenance for fact in found.values()} <= GIVEN
    assert (found["nsight_bottleneck"].value, found["l1_throughput_pct"].provenance) == ("l1", "ncu")
    assert (found["kernel_time_us"].value, found["kernel_time_us"].provenance) == (3200, "cupti")
    assert found["kernel_time_share_pct"].value == pytest.approx(100 * 3200 / 3800)
    assert (found["kernel_launches"].value, found["kernel_launches"].provenance) == (3, "cupti")
    assert found["device_busy_pct"].value == pytest.approx(100 * 3800 / 3900)
    assert (found["launch_overhead_pct"].value, found["longest_gap_us"].value) == (pytest.approx(5), 60)
    assert "counters_unavailable" not in found
    parts = [(150, RELU), (3200, GEMM), (450, SOFTMAX)]
    dram = sum(time * p.metrics["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"] for time, p in parts) / 3800
    assert found["solution_dram_throughput_pct"].value == pytest.approx(dram)


def test_a_librarys_kernel_is_never_the_target_and_leaves_the_sums_open():
    library = LaunchRecord(kernel="void cutlass::gemm()", grid=(8, 1, 1), block=(128, 1, 1), time_us=3200.0, library=True)
    found = facts_of(evaluation([library, launched(SOFTMAX, 800.0)], [SOFTMAX]))
    assert (found["library_launches"].value, found["library_time_share_pct"].value) == (1, 80)
    assert found["kernel_time_us"].value == 800
    assert "dram_traffic_ratio" not in found


def test_sums_over_the_solution_count_every_launch_of_a_kernel():
    measured = RELU.model_copy(update={"metrics": {**RELU.metrics, L2_SECTORS: 1e6, THREAD_INSTRUCTIONS: 4e6}})
    found = facts_of(evaluation([launched(RELU, 1.0), launched(RELU, 1.0)], [measured]))
    assert found["dram_traffic_ratio"].value == pytest.approx(2 * RELU.metrics[DRAM_BYTES] / 1e8)
    assert found["l2_traffic_ratio"].value == pytest.approx(2 * 32e6 / 1e8)
    assert (found["instructions_per_output"].value, found["instructions_per_output"].provenance) == (8, "ncu")


def test_without_counters_geometry_stays_and_the_reason_is_a_fact():
    found = facts_of(evaluation([launched(GEMM, None)], [], timeline=None,
                                unavailable={"ncu": "forbidden here: ERR_NVGPUCTRPERM", "cupti": "no libcupti was found"}))
    assert found["counters_unavailable"].value == "forbidden here: ERR_NVGPUCTRPERM"
    assert (found["grid_blocks"].value, found["grid_blocks"].provenance) == (16384, "launched")
    assert (found["theoretical_occupancy_pct"].value, found["blocks_per_sm"].value) == (100, 8)
    assert found["kernel_launches"].provenance == "launched"
    assert not {"dram_throughput_pct", "kernel_time_us", "device_busy_pct", "launch_overhead_pct"} & found.keys()


def test_every_counter_is_asked_for_once():
    assert len(COUNTERS) == len(set(COUNTERS))
