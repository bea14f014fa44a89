"""What sampled blocks say of the whole grid's memory, against what the grid really touches."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.model.measured import H200
from evaluator.simulator.interpreter import Buffer, prepare
from evaluator.simulator.sharing import Pattern, Slot, choose_samples, distinct_by_chance, window_that_fits
from evaluator.simulator.timed_pass import SampledBlockFailed, run_sharing
from tests.evaluator.time_model.small_kernels import aligned, built

STENCIL = """extern "C" __global__ void stencil(const float* x, float* y, int n) {
    int c = blockIdx.x * 32 + threadIdx.x + 1, r = blockIdx.y * 8 + threadIdx.y + 1, w = n + 2;
    y[r * w + c] = x[r * w + c] + x[r * w + c - 1] + x[r * w + c + 1] + x[(r - 1) * w + c] + x[(r + 1) * w + c];
}"""
PRODUCT = """extern "C" __global__ void product(const float* a, const float* b, float* c, int n) {
    int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    float v = 0;
    for (int k = 0; k < n; k++) v += a[row * n + k] * b[k * n + col];
    c[row * n + col] = v;
}"""
BEYOND = 'extern "C" __global__ void beyond(float* x, int n) { x[blockIdx.x * 256 + threadIdx.x + n] = 1; }'
CAPACITY = 0.35 * H200.l2_bytes


def sharing(source, grid, block, arrays, n, capacity=CAPACITY, wave=1056):
    module, resources = built(source, "sm_90")
    packed = b"".join(a.ctypes.data.to_bytes(8, "little") for a in arrays) + n.to_bytes(4, "little")
    launch = prepare(module, resources.kernel, grid, block, packed,
                     [Buffer(a.ctypes.data, a.nbytes, f"a{i}", True) for i, a in enumerate(arrays)], checks=False)
    return run_sharing(launch, 12, 1_500_000, capacity, wave)


def test_neighbours_of_a_stencil_share_their_halo():
    n = 2048
    cells = (n + 2) ** 2
    found = sharing(STENCIL, (n // 32, n // 8), (32, 8), [aligned(cells), aligned(cells)], n)
    assert found.distinct_granules[0] == pytest.approx(cells * 4 / 64, rel=0.05)
    assert found.distinct_granules[4] == pytest.approx(n * n * 4 / 64, rel=0.05)


@pytest.mark.parametrize("capacity", [CAPACITY, 1.0])
def test_blocks_of_a_matrix_product_share_rows_and_columns(capacity):
    n = 512
    a, b, c = aligned(n * n), aligned(n * n), aligned(n * n)
    found = sharing(PRODUCT, (n // 16, n // 16), (16, 16), [a, b, c], n, capacity)
    granules = n * n * 4 / 64
    assert found.distinct_granules[[0, 3, 7]] == pytest.approx([granules] * 3, rel=0.01)
    fetched = found.dram_share[0] * (n // 16) ** 2 * 16 * n * 4 / 64  # 1024 blocks of 16 rows
    assert fetched == pytest.approx(granules, rel=0.05)  # one wave holds the grid: each is fetched once, however small L2 is


def test_random_blocks_estimate_what_all_touch():
    """1000 blocks use 300 of 20,000 granules each at random: together 1 - 0.985^1000 of them, practically all."""
    rng = np.random.default_rng(5)
    met = np.zeros(20_000, int)
    for _ in range(24):
        met[rng.choice(20_000, 300, replace=False)] += 1
    sharers = np.bincount(met, minlength=32)[:32].astype(float)
    sharers[0] = 0
    assert distinct_by_chance(sharers, 24, 1000) == pytest.approx(20_000, rel=0.15)


def stream(blocks: int, size: float) -> Slot:
    alone = Pattern(size, 1, 1, 1, 1)
    return Slot(alone, alone, blocks * size, 1, 1)


def test_a_stream_is_fetched_once_and_fits_in_proportion():
    slot, grid = stream(10_000, 16), (10_000, 1, 1)
    assert slot.window(2500, grid) == pytest.approx(40_000)
    assert slot.slope(2500, grid, 1) == pytest.approx(16)
    assert window_that_fits([slot], grid, 64 * 40_000) == pytest.approx(2500, rel=0.02)


def test_chance_sharing_misses_less_the_more_l2_holds():
    """Each granule is used by 16 random blocks: with half of them held, about half of the touches miss."""
    alone = Pattern(16, 1, 1, 1, 1)
    slot, grid = Slot(alone, alone, 10_000, 16, 1), (10_000, 1, 1)
    window = window_that_fits([slot], grid, 64 * 5_000)
    assert slot.window(window, grid) == pytest.approx(5_000, rel=0.02)
    assert slot.slope(window, grid, 1) / 16 == pytest.approx(0.5, abs=0.04)


def test_samples_have_neighbours_and_repeat():
    rows = choose_samples((40, 30, 1), 12)
    assert (rows == choose_samples((40, 30, 1), 12)).all()
    assert (rows[:, 1] == rows[:, 0] - 1).all() and (rows[:, 2] == rows[:, 0] - 40).all() and (rows[:, 3] == -1).all()


def test_a_sampled_block_out_of_bounds_is_reported_not_timed():
    with pytest.raises(SampledBlockFailed, match="a0"):
        sharing(BEYOND, (64,), (256,), [aligned(64 * 256)], 64 * 256)
