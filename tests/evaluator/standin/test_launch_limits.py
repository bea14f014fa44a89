"""What a GPU refuses at launch is refused here, with the number that was exceeded and what to do."""

from __future__ import annotations

import pytest

from evaluator.simulator.standin import SimulatedError
from evaluator.simulator.standin.limits import LaunchShape, launch_bound, refusal
from evaluator.types import KernelResources

SOURCE = r"""
extern "C" __global__ void plain(float* x) { x[threadIdx.x] = 1; }
extern "C" __global__ void __launch_bounds__(128) bounded(float* x) { x[threadIdx.x] = 1; }
extern "C" __global__ void shared(float* x) {
  extern __shared__ float s[];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  x[threadIdx.x] = s[31 - threadIdx.x];
}
"""


@pytest.fixture
def module(cupy):
    return cupy.RawModule(code=SOURCE)


@pytest.mark.parametrize(("kernel", "grid", "block", "shared", "words"), [
    ("plain", (1,), (1025,), 0, "exceeds (1024, 1024, 64)"),
    ("plain", (1,), (33, 32), 0, "1056 threads; at most 1024"),
    ("plain", (1,), (1, 1, 65), 0, "exceeds (1024, 1024, 64)"),
    ("plain", (1, 65536), (32,), 0, "put the large extent into x"),
    ("plain", (2**31,), (32,), 0, "exceeds (2147483647"),
    ("bounded", (1,), (256,), 0, "__launch_bounds__ permits 128"),
    ("shared", (1,), (32,), 49153, "max_dynamic_shared_size_bytes before the launch"),
    ("shared", (1,), (32,), 300_000, "NVIDIA H200 has at most 232448"),
])
def test_refused(session, cupy, module, kernel, grid, block, shared, words):
    with pytest.raises(SimulatedError) as caught:
        module.get_function(kernel)(grid, block, (cupy.zeros(2048, cupy.float32),), shared_mem=shared)
    assert caught.value.finding.kind == "launch_limit"
    assert caught.value.finding.file == __file__
    assert words in caught.value.finding.message


GRID_WIDE = r"""
#include <cooperative_groups.h>
extern "C" __global__ void grid_wide(float* x) {
  x[threadIdx.x] = 1; cooperative_groups::this_grid().sync(); x[threadIdx.x] += 1; }
extern "C" __global__ void __cluster_dims__(2, 1, 1) pairs(float* x) { x[threadIdx.x] = 1; }
"""


def test_a_grid_that_synchronises_needs_a_cooperative_launch_that_fits(session, cupy):
    x = cupy.zeros(32, cupy.float32)
    with pytest.raises(SimulatedError, match="enable_cooperative_groups=True"):
        cupy.RawModule(code=GRID_WIDE).get_function("grid_wide")((4,), (32,), (x,))
    kernel = cupy.RawModule(code=GRID_WIDE, enable_cooperative_groups=True).get_function("grid_wide")
    with pytest.raises(SimulatedError, match=r"a cooperative launch of 100000 blocks: NVIDIA H200 holds 4224"):
        kernel((100_000,), (32,), (x,))
    kernel((1,), (32,), (x,))
    assert x.get().sum() == 64
    session.mode = "profile"
    kernel((4,), (32,), (x,))
    assert session.launches[-1].time_us is None  # no time is modelled for it


def test_a_grid_must_be_whole_clusters(session, cupy):
    with pytest.raises(SimulatedError, match=r"grid \(3, 1, 1\) is not a multiple of the cluster \(2, 1, 1\)"):
        cupy.RawModule(code=GRID_WIDE).get_function("pairs")((3,), (32,), (cupy.zeros(32, cupy.float32),))


def test_empty_grid_runs_one_block_as_in_cupy(cupy, module):
    x = cupy.zeros(64, cupy.float32)
    module.get_function("plain")((0,), (32,), (x,))
    assert x.get().sum() == 32


def test_large_dynamic_shared_memory_once_permitted(session, cupy, module):
    kernel = module.get_function("shared")
    kernel.max_dynamic_shared_size_bytes = 100_000
    x = cupy.empty(32, cupy.float32)
    kernel((1,), (32,), (x,), shared_mem=100_000)
    assert x.tolist() == list(range(31, -1, -1))
    assert session.findings == []
    with pytest.raises(SimulatedError, match="permits"):
        kernel.max_dynamic_shared_size_bytes = 232_449


def test_raw_kernel_passes_attributes_through(cupy):
    kernel = cupy.RawKernel(SOURCE, "shared")
    kernel.max_dynamic_shared_size_bytes = 65536
    assert kernel.kernel.max_dynamic_shared_size_bytes == 65536
    assert kernel.attributes["num_regs"] == kernel.num_regs > 0
    assert cupy.RawKernel(SOURCE, "bounded").max_threads_per_block == 128


def test_registers_times_threads(device):
    kernel = KernelResources(kernel="k", registers=70, static_shared_bytes=0, stack_bytes=0, spill_store_bytes=0,
                             spill_load_bytes=0)
    assert "use fewer threads" in refusal(LaunchShape((1, 1, 1), (1024, 1, 1), 0, 49152), kernel, None, device)
    assert refusal(LaunchShape((1, 1, 1), (896, 1, 1), 0, 49152), kernel, None, device) == "", "72 x 896 fits 65536"


def test_bounds_are_read_from_the_kernel_meant():
    ptx = ".visible .entry a(\n)\n.maxntid 64, 2, 1\n{\n}\n.visible .entry ab(\n)\n{\n}\n"
    assert launch_bound(ptx, "a") == 128
    assert launch_bound(ptx, "ab") is None


@pytest.mark.parametrize(("grid", "block"), [([1], (32,)), ((1,), 32), (1, (32,))])
def test_extents_must_be_tuples_as_cupy_wants_them(cupy, module, grid, block):
    with pytest.raises(TypeError, match="expected tuple"):
        module.get_function("plain")(grid, block, (cupy.zeros(32, cupy.float32),))
