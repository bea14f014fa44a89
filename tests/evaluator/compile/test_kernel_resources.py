"""Registers, spills, shared memory and machine instructions are those of the compiled kernel."""

from __future__ import annotations

import pytest

from evaluator.compile import compile_cuda
from evaluator.resources import instruction_counts, kernel_resources
from evaluator.toolkit import find_toolkit

SOURCE = r"""
template <int WIDTH> __global__ void copy(float4* out, const float4* in) { out[threadIdx.x * WIDTH] = in[threadIdx.x]; }
extern "C" __global__ void tile(float* a) {
  __shared__ float s[64];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void spilling(float* a, int n) {
  float values[100];
  for (int i = 0; i < 100; i++) values[i] = a[i];
  a[0] = values[n];
}
"""


@pytest.fixture(scope="module")
def resources():
    compiled = compile_cuda(SOURCE, name_expressions=["copy<2>"])
    return {kernel.kernel: kernel for kernel in kernel_resources(compiled)}


def test_every_kernel_is_listed_by_its_launch_name(resources):
    assert set(resources) == {"copy<2>", "tile", "spilling"}


def test_shared_memory_and_stack(resources):
    assert resources["tile"].static_shared_bytes == 256
    assert resources["copy<2>"].static_shared_bytes == 0
    assert resources["spilling"].stack_bytes >= 400
    assert all(0 < kernel.registers <= 255 for kernel in resources.values())


def test_register_limit_makes_spills():
    source = """__global__ void f(float* a) {
      float r[64];
      #pragma unroll
      for (int i = 0; i < 64; i++) r[i] = a[i * a[0] > 3];
      float s = 0;
      __syncthreads();
      #pragma unroll
      for (int i = 0; i < 64; i++) s += r[i] * r[63 - i];
      a[0] = s;
    }"""
    (kernel,) = kernel_resources(compile_cuda(source, options=("--maxrregcount=24",)))
    assert kernel.registers <= 24
    assert kernel.spill_store_bytes > 0


def test_sass_keeps_the_access_width(resources):
    if find_toolkit().nvdisasm is None:
        pytest.skip("nvdisasm is not installed (pip install nvidia-cuda-nvdisasm)")
    assert resources["copy<2>"].sass["LDG.E.128"] == 1
    assert "LDG.E.128" not in resources["tile"].sass
    assert sum(n for op, n in resources["tile"].sass.items() if op.startswith("BAR")) == 1
    assert sum(n for op, n in resources["spilling"].sass.items() if op.startswith("STL")) >= 1


def test_missing_nvdisasm_is_no_error(monkeypatch):
    compiled = compile_cuda(SOURCE)
    without = type(find_toolkit())(find_toolkit().nvrtc, find_toolkit().include_dirs, None)
    monkeypatch.setattr("evaluator.resources.find_toolkit", lambda: without)
    assert instruction_counts(compiled.cubin) == {}
    assert kernel_resources(compiled)[0].registers > 0
