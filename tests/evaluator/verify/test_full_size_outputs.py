"""At the full sizes: outputs that kernels leave unwritten, and honest solutions that only look as if they did."""

from __future__ import annotations

import pytest

from evaluator.profile_sim import implausible_time
from evaluator.types import Status, TimeEstimate

BOTH = ("verify", "profile")
SMALL, FULL = {"rows": 6, "cols": 40}, {"rows": 2048, "cols": 1024}
HEAD = """
def make_inputs(rng, rows, cols):
    return {"x": rng.standard_normal((rows, cols), dtype=np.float32)}
def reference(x):
"""
DOUBLE = HEAD + "    return 2 * x\n"


def rows(code: str, run: str) -> str:
    return f'''
import cupy as cp
import numpy as np

CODE = r"""
extern "C" {{{code}}}
"""
module = cp.RawModule(code=CODE, options=("--std=c++17",))


def run(x):
    rows, cols = x.shape
{run}
'''


def double(grid: str = "rows", width: str = "cols", output: str = "cp.empty_like(x)") -> str:
    code = f"""
__global__ void twice(const float* x, float* y, int cols) {{
  long long row = (long long)blockIdx.x * cols;
  for (int c = threadIdx.x; c < {width}; c += blockDim.x) y[row + c] = 2.f * x[row + c];
}}
"""
    run = f"""    y = {output}
    module.get_function("twice")(({grid},), (256,), (x, y, np.int32(cols)))
    return y"""
    return rows(code, run)


def profile(bench, reference: str, solution: str, full=FULL):
    return bench.evaluate(bench.native(reference, [SMALL], full), solution, stages=BOTH)


@pytest.mark.parametrize(("solution", "share"), [
    (double(grid="min(rows, 128)"), 128 / 2048), (double(width="min(cols, 256)"), 256 / 1024)])
def test_a_capped_grid_or_loop_is_an_error_at_the_full_sizes(bench, solution, share):
    evaluation = profile(bench, DOUBLE, solution)
    assert evaluation.status is Status.RUNTIME_ERROR, evaluation.message
    finding, = (f for f in evaluation.findings if f.kind == "uninitialised_output")
    assert (finding.kernel, finding.sizes, finding.severity) == ("twice", FULL, "error")
    assert f"at most {int(share * 2048 * 1024 * 4)} of the {2048 * 1024 * 4} output bytes" in finding.message
    assert evaluation.time is None


def test_torch_output_that_stays_unwritten_is_found(bench):
    problem = """
    rows = 2048
    class Model(nn.Module):
        def forward(self, x):
            return x * 2
    def get_inputs():
        return [torch.rand(rows, 256)]
    def get_init_inputs():
        return []
    """
    solution = '''
import cupy, torch
import numpy as np

KERNEL = cupy.RawKernel(r"""
extern "C" __global__ void twice(const float* x, float* y, int cols) {
  long long row = (long long)blockIdx.x * cols;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) y[row + c] = 2.f * x[row + c];
}
""", "twice")

class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        KERNEL((GRID,), (256,), (x.data_ptr(), y.data_ptr(), np.int32(x.shape[1])))
        return y
'''
    task = bench.kernelbench(problem, [{"rows": 5}], {"rows": 2048})
    honest = bench.evaluate(task, solution.replace("GRID", "x.shape[0]"), stages=BOTH)
    assert honest.status is Status.PASSED and honest.time is not None, honest.message
    capped = bench.evaluate(task, solution.replace("GRID", "min(x.shape[0], 64)"), stages=BOTH)
    assert [f.kind for f in capped.findings] == ["uninitialised_output"], capped.message


SUM = HEAD + "    return x.sum(axis=1)\n"
ATOMIC_SUM = rows("""
__global__ void add_up(const float* x, float* y, int cols) {
  float sum = 0.f;
  for (int c = blockIdx.y * blockDim.x + threadIdx.x; c < cols; c += gridDim.y * blockDim.x)
    sum += x[(long long)blockIdx.x * cols + c];
  for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(~0u, sum, o);
  if (threadIdx.x % 32 == 0) atomicAdd(y + blockIdx.x, sum);
}
""", """    y = cp.zeros(rows, dtype=x.dtype)
    module.get_function("add_up")((rows, 4), (128,), (x, y, np.int32(cols)))
    return y""")
TWO_LAUNCHES = rows("""
__global__ void partial_sums(const float* x, float* parts, int cols) {
  float sum = 0.f;
  for (int c = blockIdx.y * 32 + threadIdx.x; c < cols; c += 8 * 32) sum += x[(long long)blockIdx.x * cols + c];
  for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(~0u, sum, o);
  if (threadIdx.x == 0) parts[blockIdx.x * 8 + blockIdx.y] = sum;
}
__global__ void total(const float* parts, float* y, int rows) {
  int row = blockIdx.x * 128 + threadIdx.x;
  float sum = 0.f;
  if (row < rows) for (int i = 0; i < 8; i++) sum += parts[row * 8 + i];
  if (row < rows) y[row] = sum;
}
""", """    parts, y = cp.empty((rows, 8), dtype=x.dtype), cp.empty(rows, dtype=x.dtype)
    module.get_function("partial_sums")((rows, 8), (32,), (x, parts, np.int32(cols)))
    module.get_function("total")(((rows + 127) // 128,), (128,), (parts, y, np.int32(rows)))
    return y""")
LATE_ROWS = rows("""
__global__ void late(const float* x, float* y, int rows, int cols) {
  int tile = (int)gridDim.x - 1 - (int)blockIdx.x;  // the first quarter of the grid has nothing to do
  if (blockIdx.x < gridDim.x / 4) return;
  long long stride = gridDim.x / 4 * 3LL * blockDim.x;
  for (long long i = (long long)tile * blockDim.x + threadIdx.x; i < (long long)rows * cols; i += stride)
    y[i] = 2.f * x[i];
}
""", """    y = cp.empty_like(x)
    module.get_function("late")((65536,), (128,), (x, y, np.int32(rows), np.int32(cols)))
    return y""")
FILLED = double(grid="rows // 2").replace("y = cp.empty_like(x)", "y = cp.empty_like(x)\n    y[...] = 0")
HALF = HEAD + "    y = 2 * x\n    y[x.shape[0] // 2:] = 0\n    return y\n"


@pytest.mark.parametrize(("reference", "solution"), [
    (DOUBLE, double()), (SUM, ATOMIC_SUM), (SUM, TWO_LAUNCHES), (DOUBLE, LATE_ROWS), (HALF, FILLED)],
    ids=["plain", "atomics", "two_launches", "idle_first_blocks", "filled_before"])
def test_honest_solutions_pass(bench, reference, solution):
    evaluation = profile(bench, reference, solution)
    assert evaluation.status is Status.PASSED, evaluation.message
    assert evaluation.time is not None and evaluation.findings == ()


def test_a_time_below_the_speed_of_light_is_a_warning(bench):
    device = bench.request(bench.native(DOUBLE, [SMALL]), double()).device
    estimate = TimeEstimate(provenance="modelled", time_us=400.0)
    assert implausible_time(estimate, 400e-6 * device.dram_bytes_per_s, device, FULL) is None
    finding = implausible_time(estimate, 1000e-6 * device.dram_bytes_per_s, device, FULL)
    assert finding.severity == "warning" and "1e+03 us" in finding.message


def test_reading_a_part_of_the_input_is_told(bench):
    full = {"rows": 4096, "cols": 4096}
    code = """
__global__ void first(const float* x, float* y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) y[row] = x[(long long)row * cols];
}
"""
    run = """    y = cp.empty(rows, dtype=x.dtype)
    module.get_function("first")(((rows + 255) // 256,), (256,), (x, y, np.int32(rows), np.int32(cols)))
    return y"""
    evaluation = profile(bench, HEAD + "    return x[:, 0].copy()\n", rows(code, run), full)
    assert evaluation.status is Status.PASSED, evaluation.message
    assert [f.kind for f in evaluation.findings] == ["implausible_time"]
