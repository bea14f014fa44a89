"""Every kind of finding: planted where it is, with line, block and thread; and the honest kernel that looks like it."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_bench import Device, line_of

SOURCE = r"""
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
extern "C" {
__global__ void store_past_end(const float* a, float* b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  b[i] = a[i];  // store past
}
__global__ void load_before_start(const float* a, float* b) {
  b[threadIdx.x] = a[(int)threadIdx.x - 1];  // load before
}
__global__ void null_load(const float* a, float* b) {
  float v = a[threadIdx.x];  // null
  b[threadIdx.x] = v;
}
__global__ void misaligned(const float* a, float4* b) {
  b[threadIdx.x] = *(const float4*)(a + 1 + 4 * threadIdx.x);  // misaligned
}
__global__ void write_input(float* a) {
  a[threadIdx.x] = 1.0f;
}
__global__ void shared_array_overrun(const float* a, float* b) {
  __shared__ float s[64];
  __shared__ float t[64];
  t[threadIdx.x & 63] = 0.0f;
  s[threadIdx.x] = a[threadIdx.x];  // overrun
  __syncthreads();
  b[threadIdx.x] = s[threadIdx.x & 63] + t[threadIdx.x & 63];
}
__global__ void dynamic_overrun(const float* a, float* b) {
  extern __shared__ float d[];
  d[threadIdx.x] = a[threadIdx.x];  // dynamic overrun
  __syncthreads();
  b[threadIdx.x] = d[threadIdx.x ^ 1];
}
__global__ void local_overrun(const int* at, float* b) {
  volatile float v[4];
  for (int i = 0; i < 4; i++) v[i] = i;
  v[at[threadIdx.x]] = 2.0f;  // local overrun
  b[threadIdx.x] = v[threadIdx.x & 3];
}
__global__ void race_read(const float* a, float* b) {
  __shared__ float s[256];
  s[threadIdx.x] = a[threadIdx.x];
  float v = s[threadIdx.x ^ 128];  // race read
  b[threadIdx.x] = v;
}
__global__ void race_overwrite(const float* a, float* b) {
  __shared__ float s[256];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  float v = s[threadIdx.x ^ 128];
  s[threadIdx.x] = v + 1.0f;  // race overwrite
  __syncthreads();
  b[threadIdx.x] = s[threadIdx.x];
}
__global__ void race_write_write(const float* a, float* b) {
  __shared__ float s;
  s = a[threadIdx.x];  // race write
  __syncthreads();
  b[threadIdx.x] = s;
}
__global__ void missing_second_barrier(const float* a, float* b, int steps) {
  __shared__ float s[128];
  float sum = 0.0f;
  for (int k = 0; k < steps; k++) {
    s[threadIdx.x] = a[k * 128 + threadIdx.x];  // loop store
    __syncthreads();
    sum += s[127 - threadIdx.x];  // loop load
  }
  b[threadIdx.x] = sum;
}
__global__ void lanes_without_syncwarp(const float* a, float* b) {
  __shared__ float s[32];
  s[threadIdx.x] = a[threadIdx.x];
  float v = s[31 - threadIdx.x];  // no syncwarp
  b[threadIdx.x] = v;
}
__global__ void copy_not_waited(const float* a, float* b) {
  __shared__ float s[32];
  __pipeline_memcpy_async(&s[threadIdx.x], &a[threadIdx.x], 4);
  __pipeline_commit();
  b[threadIdx.x] = s[threadIdx.x];  // not waited
}
__global__ void uninitialised(const float* a, float* b) {
  __shared__ float s[256];
  if (threadIdx.x < 200) s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  float v = s[threadIdx.x];  // uninitialised
  b[threadIdx.x] = v;
}
__global__ void divergent(const float* a, float* b) {
  __shared__ float s[128];
  s[threadIdx.x] = a[threadIdx.x];
  if (threadIdx.x < 40) {
    __syncthreads();  // first barrier
    s[threadIdx.x] += 1.0f;
  } else {
    s[threadIdx.x] += 2.0f;
    __syncthreads();  // second barrier
  }
  b[threadIdx.x] = s[threadIdx.x];
}
__global__ void skipped(const float* a, float* b) {
  __shared__ float s[256];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 100) __syncthreads();  // skipped barrier
  for (int i = 0; i < 4; i++) b[4 * threadIdx.x + i] = s[threadIdx.x ^ i];
}
__global__ void skipped_in_a_tree(const float* a, float* b) {
  __shared__ float s[256];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  for (int step = 128; step > 0; step >>= 1) {
    if (threadIdx.x < step) {
      s[threadIdx.x] += s[threadIdx.x + step];
      __syncthreads();  // tree barrier
    }
  }
  b[threadIdx.x] = s[0];
}
__global__ void returned_early(const float* a, float* b, int n) {
  __shared__ float s[256];
  if (threadIdx.x >= n) return;
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  for (int i = 0; i < n; i++) b[threadIdx.x] += s[(threadIdx.x + i) % n];
}
__global__ void shuffle_deadlock(const float* a, float* b) {
  float v = a[threadIdx.x];
  if (threadIdx.x < 16) {
    v = __shfl_sync(0xffffffffu, v, 3);  // deadlock
    b[threadIdx.x] = v;
  } else {
    __syncthreads();
    b[threadIdx.x] = 0.0f;
  }
}
__global__ void spin(volatile int* flag) {
  while (flag[0] == 0) { }  // spin
}
__global__ void shuffle_outside(const float* a, float* b) {
  float v = a[threadIdx.x];
  if (threadIdx.x < 16) {
    v += __shfl_down_sync(0x0000ffffu, v, 12);  // outside
    b[threadIdx.x] = v;
  }
}
__global__ void failed_trap(const float* a, float* b) {
  if (a[threadIdx.x] > 1e6f) asm volatile("trap;");  // trap
  b[threadIdx.x] = a[threadIdx.x];
}
}
"""


def arrays(device: Device, n: int = 1024) -> tuple[np.ndarray, np.ndarray]:
    return device.array(np.arange(1, n + 1), "f4", "a"), device.zeros(n, name="b")


def only(result, kind: str, marker: str, severity: str = "error"):
    finding = next((f for f in result.findings if f.kind == kind), None)
    assert finding is not None, result.findings
    assert (finding.line, finding.severity) == (line_of(SOURCE, f"// {marker}"), severity), finding
    return finding


def test_store_past_the_end_names_buffer_distance_block_and_thread(device):
    a = device.array(np.ones(1024), "f4", "a")
    b = device.zeros(1000, name="b")
    result = device.launch(SOURCE, "store_past_end", 4, 256, [a, b])
    finding = only(result, "out_of_bounds", "store past")
    assert result.fatal
    assert (finding.block, finding.thread) == ((3, 0, 0), (232, 0, 0))
    assert "4-byte global store" in finding.message
    assert "0 bytes past the end of b (4000 bytes)" in finding.message
    device.clean(SOURCE, "store_past_end", 2, 256, [a, b])


def test_load_before_the_start(device):
    a, b = arrays(device)
    finding = only(device.launch(SOURCE, "load_before_start", 1, 64, [a, b]), "out_of_bounds", "load before")
    assert finding.thread == (0, 0, 0)
    assert "4 bytes before the start of a" in finding.message


def test_null_pointer(device):
    _, b = arrays(device)
    finding = only(device.launch(SOURCE, "null_load", 1, 32, [bytes(8), b]), "null_pointer", "null")
    assert "null pointer" in finding.message


def test_misaligned_vector_load(device):
    a, b = arrays(device)
    finding = only(device.launch(SOURCE, "misaligned", 1, 32, [a, b]), "misaligned", "misaligned")
    assert "16-byte global load" in finding.message


def test_read_only_buffer_cannot_be_written(device):
    a = device.array(np.zeros(32), "f4", "input", writable=False)
    result = device.launch(SOURCE, "write_input", 1, 32, [a])
    assert [f.kind for f in result.findings] == ["out_of_bounds"]
    assert "read-only" in result.findings[0].message and "input" in result.findings[0].message
    assert not a.any()


def test_overrun_from_one_shared_array_into_the_next(device):
    a, b = arrays(device)
    finding = only(device.launch(SOURCE, "shared_array_overrun", 1, 128, [a, b]), "out_of_bounds", "overrun")
    assert finding.thread[0] == 64
    device.clean(SOURCE, "shared_array_overrun", 1, 64, [a, b])


def test_dynamic_shared_memory_ends_where_the_launch_says(device):
    a, b = arrays(device)
    result = device.launch(SOURCE, "dynamic_overrun", 1, 64, [a, b], dynamic_shared=32 * 4)
    finding = only(result, "out_of_bounds", "dynamic overrun")
    assert finding.thread[0] == 32
    device.clean(SOURCE, "dynamic_overrun", 1, 64, [a, b], dynamic_shared=64 * 4)


def test_local_array_overrun(device):
    at = device.array([0, 1, 2, 5000], "i4")
    finding = only(device.launch(SOURCE, "local_overrun", 1, 4, [at, device.zeros(4)]), "out_of_bounds", "local overrun")
    assert finding.thread[0] == 3 and "local" in finding.message


@pytest.mark.parametrize(("kernel", "marker", "text"), [
    ("race_read", "race read", "reads what another warp wrote"),
    ("race_overwrite", "race overwrite", "overwrites what another warp read"),
    ("race_write_write", "race write", "overwrites what another warp wrote"),
])
def test_race_between_warps(device, kernel, marker, text):
    a, b = arrays(device)
    result = device.launch(SOURCE, kernel, 1, 256, [a, b])
    races = [f for f in result.findings if f.line == line_of(SOURCE, f"// {marker}") and f.kind == "shared_race"]
    assert races and races[0].severity == "error" and text in races[0].message, result.findings
    assert not result.fatal


def test_loop_without_its_second_barrier(device):
    a, b = arrays(device)
    result = device.launch(SOURCE, "missing_second_barrier", 1, 128, [a, b, 4])
    lines = {f.line for f in result.findings if f.kind == "shared_race" and f.severity == "error"}
    assert lines and lines <= {line_of(SOURCE, "// loop store"), line_of(SOURCE, "// loop load")}
    device.clean(SOURCE, "missing_second_barrier", 1, 128, [a, b, 1])


def test_lanes_of_one_warp_without_syncwarp_is_a_warning(device):
    a, b = arrays(device)
    finding = only(device.launch(SOURCE, "lanes_without_syncwarp", 1, 32, [a, b]), "shared_race", "no syncwarp", "warning")
    assert "__syncwarp" in finding.message


def test_async_copy_read_before_its_wait(device):
    a, b = arrays(device)
    finding = only(device.launch(SOURCE, "copy_not_waited", 1, 32, [a, b]), "shared_race", "not waited")
    assert "cp.async" in finding.message


def test_uninitialised_shared_memory(device):
    a, b = arrays(device)
    finding = only(device.launch(SOURCE, "uninitialised", 1, 256, [a, b]), "uninitialised_shared", "uninitialised", "warning")
    assert finding.thread == (200, 0, 0)
    assert np.isnan(b[200:256]).all()
    device.clean(SOURCE, "uninitialised", 1, 192, [a, b])


def test_divergent_barrier(device):
    a, b = arrays(device)
    result = device.launch(SOURCE, "divergent", 1, 128, [a, b])
    finding = next(f for f in result.findings if f.kind == "divergent_barrier")
    lines = {line_of(SOURCE, "// first barrier"), line_of(SOURCE, "// second barrier")}
    assert finding.line in lines and str((lines - {finding.line}).pop()) in finding.message


def test_barrier_that_a_part_of_the_block_skips_is_a_warning(device):
    a, b = arrays(device)
    finding = only(device.launch(SOURCE, "skipped", 1, 256, [a, b]), "divergent_barrier", "skipped barrier", "warning")
    assert "went past it" in finding.message
    device.clean(SOURCE, "skipped", 1, 64, [a, b])


def test_skipped_barrier_and_the_race_it_causes_are_both_told(device):
    a, b = arrays(device)
    result = device.launch(SOURCE, "skipped_in_a_tree", 1, 256, [a, b])
    assert {"shared_race", "divergent_barrier"} <= {f.kind for f in result.findings}
    barriers = [f.line for f in result.findings if f.kind == "divergent_barrier"]
    assert line_of(SOURCE, "// tree barrier") in barriers


@pytest.mark.parametrize("n", [40, 64, 255, 256])
def test_threads_that_return_before_a_barrier_are_no_mistake(device, n):
    a, b = arrays(device)
    device.clean(SOURCE, "returned_early", 1, 256, [a, b, n])


def test_deadlock_in_a_shuffle(device):
    a, b = arrays(device)
    finding = only(device.launch(SOURCE, "shuffle_deadlock", 1, 32, [a, b]), "deadlock", "deadlock")
    assert "never arrive" in finding.message


def test_endless_loop_ends_in_the_budget(device):
    flag = device.zeros(1, "i4")
    finding = only(device.launch(SOURCE, "spin", 1, 32, [flag], budget=50_000), "runaway", "spin")
    assert "without finishing" in finding.message
    flag[0] = 1
    device.clean(SOURCE, "spin", 1, 32, [flag], budget=50_000)


def test_shuffle_from_a_lane_outside_the_mask(device):
    a, b = arrays(device)
    finding = only(device.launch(SOURCE, "shuffle_outside", 1, 32, [a, b]), "shuffle_outside_mask", "outside", "warning")
    assert finding.thread == (4, 0, 0)


def test_trap_stops_only_where_it_is_reached(device):
    a, b = arrays(device)
    device.clean(SOURCE, "failed_trap", 1, 32, [a, b])
    a[5] = 2e6
    finding = only(device.launch(SOURCE, "failed_trap", 1, 32, [a, b]), "trap", "trap")
    assert finding.thread == (5, 0, 0)


def test_findings_of_one_place_are_reported_once(device):
    a, b = arrays(device)
    result = device.launch(SOURCE, "race_read", 8, 256, [a, b])
    places = [(f.kind, f.line, f.message.split("(")[0]) for f in result.findings]
    assert len(places) == len(set(places)) <= 3
    assert all(f.block == (0, 0, 0) for f in result.findings)
