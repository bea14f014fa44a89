"""Counts against the textbook."""

from __future__ import annotations

import numpy as np
import pytest

SOURCE = r"""
extern "C" {
__global__ void strided(const float* a, float* b, int n, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[(i * stride) % n];
}
__global__ void wide(const float4* a, float4* b) { b[threadIdx.x] = a[threadIdx.x]; }
__global__ void shifted(const float* a, float* b) { b[threadIdx.x] = a[threadIdx.x + 1]; }
__global__ void broadcast(const float* a, float* b) { b[threadIdx.x] = a[0]; }
__global__ void transpose_conflicts(const float* a, float* b) {
  __shared__ float s[32][32];
  s[threadIdx.y][threadIdx.x] = a[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  b[threadIdx.y * 32 + threadIdx.x] = s[threadIdx.x][threadIdx.y];
}
__global__ void transpose_padded(const float* a, float* b) {
  __shared__ float s[32][33];
  s[threadIdx.y][threadIdx.x] = a[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  b[threadIdx.y * 32 + threadIdx.x] = s[threadIdx.x][threadIdx.y];
}
__global__ void two_way(const float* a, float* b) {
  __shared__ float s[64];
  s[threadIdx.x * 2] = a[threadIdx.x];
  __syncwarp();
  b[threadIdx.x] = s[threadIdx.x * 2];
}
__global__ void shared_vectors(const float4* a, float4* b) {
  __shared__ float4 s[32];
  s[threadIdx.x] = a[threadIdx.x];
  __syncwarp();
  b[threadIdx.x] = s[threadIdx.x];
}
__global__ void branches(const int* a, int* b) {
  int v = a[threadIdx.x];
  if (v & 1) { for (int k = 0; k < 20; k++) v = v * 3 + b[threadIdx.x]; b[threadIdx.x] = v; }
}
__global__ void all_atomic(int* a) { atomicAdd(a, 1); atomicAdd(&a[threadIdx.x], 1); }
}
"""


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (4, 16), (8, 32), (32, 32)])
def test_sectors_of_strided_loads(device, stride, sectors):
    a, b = device.array(np.arange(4096), "f4"), device.zeros(4096)
    counts = device.clean(SOURCE, "strided", 16, 256, [a, b, 4096, stride]).counts
    assert counts.global_loads.requests == counts.global_stores.requests == 128
    assert counts.global_loads.sectors == 128 * sectors
    assert counts.global_loads.ideal_sectors == counts.global_stores.sectors == 128 * 4
    assert counts.global_loads.nbytes == 4096 * 4


def test_vector_shifted_and_broadcast_loads(device):
    a, b = device.array(np.arange(512), "f4"), device.zeros(512)
    assert device.clean(SOURCE, "wide", 1, 128, [a, b]).counts.global_loads.sectors == 4 * 16
    assert device.clean(SOURCE, "shifted", 1, 32, [a, b]).counts.global_loads.sectors == 5
    assert device.clean(SOURCE, "broadcast", 1, 32, [a, b]).counts.global_loads.sectors == 1


def test_partial_warp(device):
    a, b = device.array(np.arange(32), "f4"), device.zeros(32)
    counts = device.clean(SOURCE, "strided", 1, 20, [a, b, 20, 1]).counts
    assert (counts.global_loads.sectors, counts.global_loads.nbytes) == (3, 80)
    assert counts.thread_instructions == 20 * counts.warp_instructions


@pytest.mark.parametrize(("kernel", "wavefronts"), [("transpose_conflicts", 1056), ("transpose_padded", 64)])
def test_bank_conflicts_of_a_transpose(device, kernel, wavefronts):
    a, b = device.array(np.arange(1024), "f4"), device.zeros(1024)
    counts = device.clean(SOURCE, kernel, 1, (32, 32), [a, b]).counts
    assert (counts.shared_requests, counts.shared_wavefronts, counts.shared_ideal_wavefronts) == (64, wavefronts, 64)
    assert counts.barriers == 32
    np.testing.assert_array_equal(b.reshape(32, 32), a.reshape(32, 32).T)


def test_two_way_conflict_and_vector_accesses(device):
    a, b = device.array(np.arange(128), "f4"), device.zeros(128)
    counts = device.clean(SOURCE, "two_way", 1, 32, [a, b]).counts
    assert (counts.shared_wavefronts, counts.shared_ideal_wavefronts) == (4, 2)
    counts = device.clean(SOURCE, "shared_vectors", 1, 32, [a, b]).counts
    assert (counts.shared_wavefronts, counts.shared_ideal_wavefronts) == (8, 8)


def test_divergent_branches(device):
    uniform, mixed, b = device.array(np.zeros(32), "i4"), device.array(np.arange(32), "i4"), device.zeros(32, "i4")
    calm = device.clean(SOURCE, "branches", 1, 32, [uniform, b]).counts
    split = device.clean(SOURCE, "branches", 1, 32, [mixed, b]).counts
    assert calm.divergent_branches == 0 and split.divergent_branches == 1
    assert split.branches == calm.branches > 0
    assert split.thread_instructions < 32 * split.warp_instructions


def test_atomics_and_instruction_mix(device):
    counts = device.clean(SOURCE, "all_atomic", 1, 32, [device.zeros(32, "i4")]).counts
    assert (counts.global_atomics.requests, counts.global_atomics.sectors) == (2, 5)
    assert counts.mix["ATOMIC"] == 2 and sum(counts.mix.values()) == counts.warp_instructions
