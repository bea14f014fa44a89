"""Other cards: documented quantities move the estimate as they should."""

from __future__ import annotations

import pytest

from benchmarks.model.measured import H200
from evaluator.simulator.constants import H200_FITTED, Rates
from evaluator.simulator.occupancy import occupancy
from evaluator.types import DeviceSpec
from tests.evaluator.time_model.small_kernels import aligned
from tests.evaluator.time_model.test_terms_respond import COPY4, WORK, N

H100 = H200.model_copy(update={
    "name": "H100", "dram_bytes_per_s": 3.35e12, "measured_dram_bytes_per_s": None, "l2_bytes": 52428800})
A100 = DeviceSpec(
    name="A100", compute_capability=(8, 0), sm_count=108, sm_clock_hz=1.41e9, dram_bytes_per_s=2.039e12,
    fp32_flops_per_s=19.5e12, fp16_flops_per_s=312e12, l2_bytes=41943040, l1_shared_bytes_per_sm=196608,
    shared_bytes_per_sm=167936, shared_bytes_per_block=166912)
RTX4090 = DeviceSpec(
    name="RTX 4090", compute_capability=(8, 9), sm_count=128, sm_clock_hz=2.52e9, dram_bytes_per_s=1.008e12,
    fp32_flops_per_s=82.6e12, fp16_flops_per_s=165.2e12, l2_bytes=75497472, l1_shared_bytes_per_sm=131072,
    shared_bytes_per_sm=102400, shared_bytes_per_block=101376, max_threads_per_sm=1536, max_blocks_per_sm=24)


def test_a_copy_follows_the_bandwidth(model):
    n = 4 * N
    times = {d.name: model(COPY4, (n // 1024,), (256,), [aligned(n), aligned(n), n], device=d).time_us
             for d in (H200, H100, A100, RTX4090)}
    assert times["NVIDIA H200"] < times["H100"] < times["A100"] < times["RTX 4090"]
    assert times["RTX 4090"] / times["NVIDIA H200"] == pytest.approx(4.4 / (0.917 * 1.008), rel=0.25)


def test_arithmetic_follows_multiprocessors_lanes_and_clock(model):
    blocks = 108 * 132
    times = {d.name: model(WORK, (blocks,), (256,), [aligned(blocks * 256), aligned(blocks * 256), 3000], device=d)
             for d in (H200, A100, RTX4090)}
    assert times["A100"].terms_us["fma"] / times["NVIDIA H200"].terms_us["fma"] == pytest.approx(66.9 / 19.5, rel=0.05)
    assert times["RTX 4090"].time_us < times["NVIDIA H200"].time_us < times["A100"].time_us


@pytest.mark.parametrize(("device", "lanes"), [(H200, 1), (A100, 2), (RTX4090, 1)])
def test_fma_lanes_come_from_the_card(device, lanes):
    assert Rates(device, H200_FITTED).fma_cycles == lanes


@pytest.mark.parametrize(("device", "per_cycle"), [(A100, 512), (RTX4090, 128)])
def test_tensor_rate_comes_from_the_card(device, per_cycle):
    assert Rates(device, H200_FITTED).mma_flops_per_cycle == pytest.approx(per_cycle, rel=0.01)


@pytest.mark.parametrize(("threads", "registers", "shared", "blocks", "limiter"), [
    (256, 32, 0, 8, "warps"), (256, 33, 0, 6, "registers"), (256, 255, 0, 1, "registers"), (32, 16, 0, 32, "blocks"),
    (128, 32, 48 * 1024, 4, "shared_memory"), (1024, 32, 0, 2, "warps"), (96, 40, 0, 16, "registers"),
])
def test_occupancy_as_the_calculator_counts_it(threads, registers, shared, blocks, limiter):
    found = occupancy(H200, threads, registers, shared, 10**6)
    assert (found.blocks_per_sm, found.limiter) == (blocks, limiter)


def test_a_small_grid_is_its_own_limit():
    assert occupancy(H200, 256, 32, 0, 132).limiter == "grid"
    assert occupancy(H200, 256, 32, 0, 132 * 8).limiter == "warps"


def test_a_smaller_card_holds_fewer_blocks(model):
    assert occupancy(RTX4090, 256, 32, 0, 10**6).blocks_per_sm == 6
    made = model(COPY4, (64,), (256,), [aligned(1 << 16), aligned(1 << 16), 1 << 16], device=RTX4090, dynamic_shared=60 * 1024)
    assert made.blocks_per_sm == 1
