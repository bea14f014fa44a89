from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.types import Environment, Evaluation, KernelResources, LaunchRecord, Status, TimeEstimate
from kernelskill.facts import collect
from kernelskill.facts.device import load_device
from kernelskill.facts.resources import add_resource_facts
from kernelskill.facts.table import FactError, FactTable
from kernelskill.tasks import load_task
from kernelskill.vocabulary import VOCABULARY

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[2] / "examples"
H200 = load_device("h200")


def recorded(name):
    """An evaluation of the example's start, as the evaluator answered."""
    return Evaluation.from_json((HERE / "recorded" / f"{name}.json").read_text())


def facts_of(name, evaluation=None, source=None):
    task = load_task(EXAMPLES / name)
    return collect(task, task.start_source if source is None else source, evaluation or recorded(name), H200)


def values(facts):
    return {name: fact.value for name, fact in facts.items()}


def test_recorded_row_sum():
    facts = facts_of("row_sum")
    found = values(facts)
    assert found["task_bytes"] == 8192 * 4096 * 4 + 8192 * 4
    assert found["task_flops"] == 8192 * 4096
    assert (found["task_reduction_length"], found["task_row_count"], found["task_dtype"]) == (4096, 8192, "float32")
    assert found["task_arithmetic_intensity"] == pytest.approx(0.25, rel=1e-3)
    assert found["sol_time_us"] == pytest.approx(134250496 / 4.228e12 * 1e6)
    assert found["headroom"] == pytest.approx(found["time_us"] / found["sol_time_us"])
    assert found["global_load_sectors_per_request"] == 32
    assert found["global_load_efficiency_pct"] == 12.5
    assert (found["grid_blocks"], found["block_threads"], found["kernel_launches"]) == (128, 64, 1)
    assert found["dram_traffic_ratio"] == pytest.approx(1, abs=0.1)
    assert found["kernel_time_share_pct"] == 100
    assert found["occupancy_limiter"] == "grid"
    assert found["threads_per_row"] == 1
    assert found["device_sm"] == 90
    provenance = {name: fact.provenance for name, fact in facts.items()}
    assert provenance["time_us"] == provenance["headroom"] == provenance["dram_bytes"] == "modelled"
    assert provenance["global_load_requests"] == "simulated"
    assert (provenance["registers_per_thread"], provenance["sass_global_loads"]) == ("ptxas", "sass")
    assert (provenance["input_passes"], provenance["task_flops"], provenance["device_sm"]) == ("source", "task", "device_card")


def test_every_collected_fact_is_in_the_vocabulary_with_its_source():
    for name in ("row_sum", "bias_gelu"):
        for fact in facts_of(name).values():
            assert fact.provenance in VOCABULARY[fact.name].sources
            assert fact.unit == VOCABULARY[fact.name].unit


def test_two_kernels_target_is_the_one_with_the_largest_share():
    evaluation = recorded("bias_gelu")
    found = values(facts_of("bias_gelu", evaluation))
    times = {launch.kernel: launch.time_us for launch in evaluation.launches}
    slowest = max(times, key=times.get)
    assert (found["kernel_launches"], found["source_kernels"]) == (2, 2)
    assert found["kernel_time_us"] == pytest.approx(times[slowest])
    assert found["kernel_time_share_pct"] == pytest.approx(100 * times[slowest] / sum(times.values()))
    assert found["uses_transcendental"] is (slowest == "gelu")
    registers = {r.kernel: r.registers for r in evaluation.resources}
    assert found["registers_per_thread"] == registers[slowest]
    moved = sum(launch.counts["dram_bytes"] for launch in evaluation.launches)
    assert found["dram_traffic_ratio"] == pytest.approx(moved / found["task_bytes"])
    assert found["dram_traffic_ratio"] > 1.5


ENVIRONMENT = Environment(device="NVIDIA H200", simulated=True, arch="sm_90")


def test_failed_evaluation_leaves_measurements_unknown():
    evaluation = Evaluation(status=Status.COMPILE_ERROR, message="no", environment=ENVIRONMENT)
    found = values(facts_of("row_sum", evaluation))
    assert not {"time_us", "headroom", "sol_time_us", "task_bytes", "kernel_launches", "registers_per_thread"} & found.keys()
    assert found["task_flops"] == 8192 * 4096
    assert (found["block_threads"], found["reduction_style"]) == (64, "serial")


def launch(kernel, time_us=None, counts=None, block=(256, 1, 1), grid=(1000, 1, 1), **more):
    return LaunchRecord(kernel=kernel, grid=grid, block=block, counts=counts or {}, time_us=time_us, **more)


def passed(launches, **more):
    return Evaluation(
        status=Status.PASSED,
        message="ok",
        environment=ENVIRONMENT,
        launches=tuple(launches),
        task_facts={"task_bytes": 1e9, "task_output_elements": 1e6},
        **more,
    )


def test_sums_over_launches_need_every_part():
    full = {"dram_bytes": 1e9, "l2_bytes": 2e9, "instructions_executed": 1e5, "warp_execution_efficiency_pct": 50.0}
    estimate = TimeEstimate(provenance="modelled", time_us=100.0)
    found = values(
        facts_of(
            "row_sum",
            passed(
                [launch("a", 60.0, full, terms_us={"launch": 2.0}), launch("a", 30.0, full, terms_us={"launch": 2.0})],
                time=estimate,
            ),
        )
    )
    assert (found["dram_traffic_ratio"], found["l2_traffic_ratio"]) == (2, 4)
    assert found["instructions_per_output"] == 2 * 1e5 * 32 * 0.5 / 1e6
    assert (found["kernel_time_us"], found["kernel_time_share_pct"], found["launch_overhead_pct"]) == (60, 100, 4)
    found = values(facts_of("row_sum", passed([launch("a", 60.0, full), launch("b", 30.0)], time=estimate)))
    assert not {"dram_traffic_ratio", "l2_traffic_ratio", "instructions_per_output", "launch_overhead_pct"} & found.keys()


def test_target_is_decided_by_share_not_by_longest_launch():
    many = [launch("small", 40.0, block=(32, 1, 1)) for _ in range(3)] + [launch("big", 100.0, block=(64, 1, 1))]
    assert values(facts_of("row_sum", passed(many)))["block_threads"] == 32
    untimed = [launch("wide", block=(512, 1, 1)), launch("narrow", block=(64, 1, 1))]
    assert values(facts_of("row_sum", passed(untimed)))["block_threads"] == 512


def test_dominating_term():
    terms = {"sm": 50.0, "issue": 10.0, "l1": 45.0, "latency": 3.0, "dram": 20.0, "launch": 2.0}
    assert values(facts_of("row_sum", passed([launch("a", 60.0, terms_us=terms)])))["time_limiter"] == "l1"
    assert values(facts_of("row_sum", passed([launch("a", 60.0, terms_us={**terms, "dram": 55.0})])))["time_limiter"] == "dram"
    assert "time_limiter" not in facts_of("row_sum", passed([launch("a", 60.0)]))


def test_count_that_is_no_fact_is_an_error():
    with pytest.raises(FactError, match="the profile counts 'sectors', which is no fact"):
        facts_of("row_sum", passed([launch("a", 60.0, {"sectors": 5.0})]))


def test_occupancy_where_the_profile_does_not_say():
    resources = (
        KernelResources(
            kernel="a", registers=96, static_shared_bytes=100, stack_bytes=0, spill_store_bytes=4, spill_load_bytes=8
        ),
    )
    found = values(facts_of("row_sum", passed([launch("a", 9.0, dynamic_shared_bytes=924)], resources=resources)))
    assert (found["blocks_per_sm"], found["occupancy_limiter"], found["shared_bytes_per_block"]) == (2, "registers", 1024)
    assert found["theoretical_occupancy_pct"] == 25
    assert found["waves_per_sm"] == pytest.approx(1000 / (2 * 132))
    assert found["spill_bytes"] == 12
    assert "sass_instructions" not in found


def test_template_instance_finds_its_resources_and_source():
    resources = (
        KernelResources(
            kernel="row_sum<float, 4>",
            registers=40,
            static_shared_bytes=0,
            stack_bytes=0,
            spill_store_bytes=0,
            spill_load_bytes=0,
        ),
    )
    evaluation = passed([launch("row_sum<float,4>", 9.0)], resources=resources)
    assert values(facts_of("row_sum", evaluation))["registers_per_thread"] == 40


def test_measured_time_keeps_its_provenance():
    environment = Environment(device="NVIDIA H200", simulated=False, arch="sm_90")
    evaluation = Evaluation(
        status=Status.PASSED,
        message="ok",
        environment=environment,
        task_facts={"task_bytes": 4.228e8},
        time=TimeEstimate(provenance="cuda_event", time_us=200.0),
    )
    facts = facts_of("row_sum", evaluation)
    assert (facts["time_us"].provenance, facts["headroom"].provenance, facts["headroom"].value) == (
        "cuda_event",
        "cuda_event",
        2,
    )


def test_compute_bound_speed_of_light():
    task = load_task(EXAMPLES / "matmul")
    evaluation = passed([], time=TimeEstimate(provenance="modelled", time_us=1000.0)).model_copy(
        update={"task_facts": {"task_bytes": 25165824.0}}
    )
    found = values(collect(task, task.start_source, evaluation, H200))
    assert found["task_flops"] == 2 * 2048 * 2048 * 512
    assert found["sol_time_us"] == pytest.approx(found["task_flops"] / H200.fp32_flops_per_s * 1e6)
    assert found["task_reduction_length"] == 512


def test_a_foreign_convolution_is_known_by_what_the_reference_calls():
    task = replace(load_task(EXAMPLES / "matmul"), family="", operation="", flops="", arguments={})

    def found(time_us):
        evaluation = passed([], time=TimeEstimate(provenance="modelled", time_us=time_us)).model_copy(
            update={"task_facts": {"task_bytes": 4.2e6, "task_flops": 6e12}, "task_operator": "conv_transpose2d"})
        return values(collect(task, task.start_source, evaluation, H200))

    slow = found(200_000.0)
    assert slow["task_operation"] == "conv_transpose2d" and "task_family" not in slow
    assert slow["sol_time_us"] == pytest.approx(6e12 / H200.fp32_flops_per_s * 1e6)
    shortcut = found(5_000.0)
    assert shortcut["sol_time_us"] == pytest.approx(4.2e6 / H200.measured_dram_bytes_per_s * 1e6)


def test_sass_counts():
    sass = {
        "LDG.E.128.CONSTANT": 2,
        "LDG.E": 3,
        "STG.E.64": 1,
        "LDS.128": 4,
        "LDS": 1,
        "LDGSTS.E.BYPASS.128": 5,
        "SHFL.BFLY": 6,
        "REDUX.SUM": 1,
        "BAR.SYNC.DEFER_BLOCKING": 2,
        "ATOMG.E.ADD": 1,
        "RED.E.ADD": 2,
        "ATOMS.ADD": 9,
        "MUFU.EX2": 7,
        "FFMA": 8,
        "FFMA.FTZ": 1,
        "HMMA.16816.F32": 3,
        "HGMMA.64x64x8": 1,
        "LDL": 1,
        "STL.64": 1,
        "NOP": 20,
        "IMAD": 4,
        "IMMA.8816": 2,
    }
    table = FactTable()
    add_resource_facts(
        table,
        KernelResources(
            kernel="k", registers=1, static_shared_bytes=0, stack_bytes=0, spill_store_bytes=0, spill_load_bytes=0, sass=sass
        ),
    )
    found = {name: fact.value for name, fact in table.facts().items()}
    expected = {
        "sass_global_loads": 5,
        "sass_global_stores": 1,
        "sass_global_loads_128": 2,
        "sass_shared_loads_128": 4,
        "sass_async_copies": 5,
        "sass_shuffles": 7,
        "sass_barriers": 2,
        "sass_atomics": 3,
        "sass_mufu": 7,
        "sass_ffma": 9,
        "sass_tensor": 6,
        "sass_local": 2,
        "sass_instructions": sum(sass.values()) - 20,
        "vector_load_bytes": 16,
        "vector_store_bytes": 8,
    }
    assert {name: found[name] for name in expected} == expected
