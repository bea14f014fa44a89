"""Bulk copies, mbarrier objects, clusters: what goes wrong with them is found and named; what is right stays silent."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_bench import line_of

SOURCE = r"""
#include <cooperative_groups.h>
__device__ unsigned at_shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void initialise(unsigned b, unsigned n) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(b), "r"(n) : "memory"); }
__device__ void wait(unsigned b, unsigned parity) {
  asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra AGAIN; }"  // WAIT
    :: "r"(b), "r"(parity) : "memory"); }
__device__ void fetch(unsigned to, const int* from, unsigned b, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(b), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"  // BULK
    :: "r"(to), "l"(from), "r"(bytes), "r"(b) : "memory");
}
extern "C" {
__global__ void tile_copy(const int* a, int* out, int waits, int bytes) {
  __shared__ __align__(128) int tile[64];
  __shared__ unsigned long long bar;
  int t = threadIdx.x;
  if (t == 0) initialise(at_shared(&bar), 1);
  __syncthreads();
  if (t == 0) fetch(at_shared(tile), a, at_shared(&bar), bytes);
  if (waits) wait(at_shared(&bar), 0);
  out[t] = tile[63 - t];  // READ
}
__global__ void no_object(int* out) {
  __shared__ unsigned long long bar;
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at_shared(&bar)) : "memory");  // ARRIVE
  out[threadIdx.x] = 1;
}
__global__ void one_too_few(int* out) {
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) initialise(at_shared(&bar), 65);
  __syncthreads();
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at_shared(&bar)) : "memory");
  wait(at_shared(&bar), 0);
  out[threadIdx.x] = 1;
}
__global__ void two_waits(const int* a, int* out) {
  __shared__ __align__(128) int x[64], y[64];
  __shared__ unsigned long long first, second;
  int t = threadIdx.x;
  if (t == 0) { initialise(at_shared(&first), 1); initialise(at_shared(&second), 1); }
  __syncthreads();
  if (t == 0) { fetch(at_shared(x), a, at_shared(&first), 256); fetch(at_shared(y), a + 64, at_shared(&second), 256); }
  wait(at_shared(&first), 0);
  int sum = x[63 - t];
  wait(at_shared(&second), 0);
  out[t] = sum + y[t];
}
__global__ void ping_pong(int* out, int n) {
  __shared__ unsigned long long ping, pong;
  if (threadIdx.x == 0) { initialise(at_shared(&ping), 32); initialise(at_shared(&pong), 32); }
  __syncthreads();
  int count = 0;
  for (int k = 0; k < n; k++) {
    if (threadIdx.x >= 32) wait(at_shared(&ping), k & 1);
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at_shared(threadIdx.x < 32 ? &ping : &pong)) : "memory");
    if (threadIdx.x < 32) wait(at_shared(&pong), k & 1);
    count++;
  }
  out[threadIdx.x] = count;
}
__global__ void __cluster_dims__(2, 1, 1) neighbours(const int* a, int* out, int meets) {
  __shared__ int mine[64];
  auto cluster = cooperative_groups::this_cluster();
  int t = threadIdx.x;
  if (meets || cluster.block_rank() == 1) mine[t] = a[64 * blockIdx.x + t];
  if (meets != 2) cluster.sync();
  out[64 * blockIdx.x + t] = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1)[t + 64 * (meets == 3)];  // FAR
  if (meets != 2 && (meets != 4 || blockIdx.x == 0)) cluster.sync();  // MEET
}
}
"""


@pytest.fixture
def data(device, rng):
    return device.array(rng.integers(0, 99, 128), "i4", name="a"), device.zeros(128, "i4", name="out")


def test_a_tile_that_was_waited_for(device, data):
    a, out = data
    device.clean(SOURCE, "tile_copy", 1, 64, [a, out, 1, 256])
    np.testing.assert_array_equal(out[:64], a[63::-1])


def test_reading_a_tile_before_it_has_arrived_is_a_race(device, data):
    result = device.launch(SOURCE, "tile_copy", 1, 64, [*data, 0, 256])
    (finding,) = result.findings
    assert finding.kind == "shared_race" and "still copies" in finding.message and finding.line == line_of(SOURCE, "// READ")


@pytest.mark.parametrize(("bytes_copied", "kind", "message"), [
    (260, "misaligned", "bulk copy size"), (4096, "out_of_bounds", "past the end of a __shared__ array")])
def test_bulk_copies_of_wrong_sizes(device, data, bytes_copied, kind, message):
    result = device.launch(SOURCE, "tile_copy", 1, 64, [*data, 1, bytes_copied])
    assert result.fatal and result.findings[0].kind == kind and message in result.findings[0].message


def test_an_mbarrier_must_be_initialised(device, data):
    result = device.launch(SOURCE, "no_object", 1, 32, [data[1]])
    assert result.fatal and "mbarrier.init must come first" in result.findings[0].message
    assert result.findings[0].line == line_of(SOURCE, "// ARRIVE")


def test_a_phase_that_never_completes_ends_with_what_is_missing(device, data):
    result = device.launch(SOURCE, "one_too_few", 1, 64, [data[1]])
    assert result.fatal and result.findings[0].kind == "deadlock"
    assert "lacks 1 arrivals and 0 bytes" in result.findings[0].message


def test_warps_that_wait_for_each_other_for_long_are_no_deadlock(device, data):
    """Every turn of either warp ends with a failed poll."""
    device.clean(SOURCE, "ping_pong", 1, 64, [data[1], 12_000])
    assert (data[1][:64] == 12_000).all()


def test_labels_belong_to_their_braces(device, data):
    """The wait loop is inlined twice: each must jump to its own label."""
    a, out = data
    device.clean(SOURCE, "two_waits", 1, 64, [a, out])
    np.testing.assert_array_equal(out[:64], a[63::-1] + a[64:])


def test_blocks_of_a_cluster_read_each_other(device, data):
    a, out = data
    device.clean(SOURCE, "neighbours", 2, 64, [a, out, 1])
    np.testing.assert_array_equal(out, np.concatenate([a[64:], a[:64]]))


@pytest.mark.parametrize(("meets", "kind"), [(0, "uninitialised_shared"), (2, "uninitialised_shared"), (3, "out_of_bounds")])
def test_what_a_block_of_a_cluster_must_not_read(device, data, meets, kind):
    result = device.launch(SOURCE, "neighbours", 2, 64, [*data, meets])
    assert result.findings[0].kind == kind and result.findings[0].line == line_of(SOURCE, "// FAR")


def test_a_cluster_barrier_that_one_block_leaves_out_completes_without_it(device, data):
    """Threads that have ended count as arrived, as the ISA says."""
    a, out = data
    device.clean(SOURCE, "neighbours", 2, 64, [a, out, 4])
