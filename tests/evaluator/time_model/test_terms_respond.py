"""Every term moves the way the hardware's does when the code changes in one respect."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.simulator.time_facts import limiter
from tests.evaluator.time_model.small_kernels import aligned

N = 1 << 22

COPY = """extern "C" __global__ void copy(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}"""
COPY4 = """extern "C" __global__ void copy4(const float4* x, float4* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) y[i] = x[i];
}"""
STRIDED = """extern "C" __global__ void strided(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 16) y[i] = x[i * 16];
}"""
TILE = """extern "C" __global__ void turn(const float* x, float* y, int n) {
    __shared__ float s[32][WIDTH];
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
    s[threadIdx.y][threadIdx.x] = x[r * n + c];
    __syncthreads();
    y[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] = s[threadIdx.x][threadIdx.y];
}"""
GATHER = """extern "C" __global__ void gather(const int* p, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[p[i]];
}"""
ADD = """extern "C" __global__ void add(const float* x, float* y, int mask) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&y[i & mask], x[i]);
}"""
COUNT = """extern "C" __global__ void count(const float* x, unsigned* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] >= 0.0f) atomicAdd(y, 1u);
}"""
WORK = """extern "C" __global__ void work(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int k = 0; k < n; k++) v = v * 1.0001f + 0.5f;
    y[i] = v;
}"""


def copies(model, source=COPY, per_block=256):
    return model(source, (N // per_block,), (256,), [aligned(N), aligned(N), N])


def test_vector_accesses_need_fewer_instructions_and_requests(model):
    scalar, vector = copies(model), copies(model, COPY4, 1024)
    assert vector.counts["instructions_executed"] < 0.5 * scalar.counts["instructions_executed"]
    assert vector.counts["global_load_requests"] == pytest.approx(scalar.counts["global_load_requests"] / 4)
    assert vector.counts["global_load_sectors_per_request"] == 16 and scalar.counts["global_load_sectors_per_request"] == 4
    assert vector.time_us < scalar.time_us


def test_copy_moves_its_bytes_and_is_limited_by_dram(model):
    made = copies(model, COPY4, 1024)
    assert made.limiter == "dram"
    kept = 0.32 * 62914560  # the model lets this much of the last writes stay in L2
    assert made.counts["dram_bytes"] == pytest.approx(8 * N - min(4 * N, kept), rel=0.02)
    assert made.counts["global_load_efficiency_pct"] == made.counts["global_store_efficiency_pct"] == 100


def test_strided_loads_fetch_more_sectors_for_the_same_elements(model):
    strided = model(STRIDED, (N // 16 // 256,), (256,), [aligned(N), aligned(N // 16), N])
    dense = model(COPY, (N // 16 // 256,), (256,), [aligned(N // 16), aligned(N // 16), N // 16])
    assert strided.counts["global_load_sectors_per_request"] == 32
    assert strided.counts["global_load_efficiency_pct"] == pytest.approx(12.5)
    assert strided.terms_us["dram"] > 3 * dense.terms_us["dram"]
    assert strided.time_us > dense.time_us


def test_padding_a_tile_removes_bank_conflicts_and_time(model):
    n = 2048
    flat, padded = (model(TILE.replace("WIDTH", width), (n // 32, n // 32), (32, 32), [aligned(n * n), aligned(n * n), n])
                    for width in ("32", "33"))
    assert flat.counts["shared_wavefronts_ratio"] == pytest.approx(16.5)
    assert padded.counts["shared_wavefronts_ratio"] == 1 and padded.counts["shared_bank_conflicts"] == 0
    assert flat.limiter == "shared" and flat.time_us > 1.3 * padded.time_us


def test_random_reads_of_a_large_array_cost_dram_whole_granules(model):
    n, rng = 1 << 24, np.random.default_rng(1)
    order, x, y = aligned(n, np.int32), aligned(n), aligned(n)
    order[:] = np.arange(n)
    in_order = model(GATHER, (n // 256,), (256,), [order, x, y, n])
    order[:] = rng.permutation(n)
    at_random = model(GATHER, (n // 256,), (256,), [order, x, y, n])
    assert at_random.counts["dram_bytes"] > 3 * in_order.counts["dram_bytes"]
    assert at_random.time_us > 2 * in_order.time_us


def test_atomics_on_one_address_serialise_and_spread_ones_do_not(model):
    n = 1 << 20
    one, spread = (model(ADD, (n // 256,), (256,), [aligned(n), aligned(n), mask]) for mask in (0, n - 1))
    assert one.limiter == "atomics" and one.terms_us["atomics"] == pytest.approx(n * 1.76e-3, rel=0.05)
    assert spread.terms_us["atomics"] < 0.02 * one.terms_us["atomics"]


def test_integer_atomics_that_ptxas_merges_count_once_a_warp(model):
    n = 1 << 20
    made = model(COUNT, (n // 256,), (256,), [aligned(n), aligned(1, np.uint32), n])
    assert made.terms_us["atomics"] == pytest.approx(n / 32 * 0.77e-3, rel=0.05)


def test_a_block_too_many_leaves_multiprocessors_idle(model):
    full, over = (model(WORK, (blocks,), (1024,), [aligned(blocks * 1024), aligned(blocks * 1024), 2000])
                  for blocks in (132, 133))
    assert full.counts["tail_pct"] == 0
    assert over.counts["tail_pct"] > 40


def test_occupancy_hides_latency(model):
    """The same arithmetic with dynamic shared memory that lets only one small block live on a multiprocessor."""
    blocks = 132 * 16
    arrays = [aligned(blocks * 64), aligned(blocks * 64), 500]
    free = model(WORK, (blocks,), (64,), arrays)
    alone = model(WORK, (blocks,), (64,), arrays, dynamic_shared=200 * 1024)
    assert (free.blocks_per_sm, alone.blocks_per_sm) == (32, 1)
    assert alone.text_facts["occupancy_limiter"] == "shared_memory"
    assert alone.terms_us["sm"] > 3 * free.terms_us["sm"]
    assert alone.limiter == "latency"


def test_a_cold_start_is_never_faster(model):
    arrays = [aligned(N), aligned(N // 16), N]
    cold, warm = (model(STRIDED, (N // 16 // 256,), (256,), arrays, cold=cold) for cold in (True, False))
    assert cold.time_us > warm.time_us


def test_the_limiter_is_a_part_of_the_multiprocessor_only_where_that_dominates():
    terms = {"sm": 10.0, "issue": 6.0, "alu": 7.0, "latency": 2.0, "l2": 8.0, "dram": 9.0, "launch": 2.0}
    assert limiter(terms) == "alu"  # though l2 and dram are longer than this part
    assert limiter({**terms, "dram": 11.0}) == "dram"
    assert limiter({"sm": 3.0, "launch": 1.0}) == "sm"
    assert limiter({}) is None
