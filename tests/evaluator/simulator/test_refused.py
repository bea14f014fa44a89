"""What the simulator does not execute is refused by name, never run wrongly; and nothing that is fed to it ends the process."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.compile import compile_cuda
from evaluator.simulator.interpreter import Buffer, Module, Unsupported, run


def lowered(source: str) -> Module:
    module = Module(compile_cuda(source).ptx)
    for name in module.entries:
        module.code(name)
    return module


@pytest.mark.parametrize(("body", "named"), [
    ('asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 16;" :: "l"(a), "r"(0));',
     "cp.reduce.async.bulk.global"),
    ('asm volatile("atom.add.noftz.f16x2 %0, [%1], %2;" : "=r"(a[0]) : "l"(a), "r"(a[1]));'
     'asm volatile("cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%0, {%1}];" :: "l"(a), "r"(0));', "prefetch.tensor"),
    ('asm volatile("fence.proxy.tensormap::generic.release.gpu;");', "fence.proxy.tensormap"),
    ("asm volatile(\"mov.u32 %0, %%aggr_smem_size;\" : \"=r\"(a[0]));", "%aggr_smem_size"),
])
def test_unknown_instructions_are_named_with_their_line(body, named):
    source = f'extern "C" __global__ void k(int* a) {{\n  a[1] = 2;\n  {body}\n}}\n'
    with pytest.raises(Unsupported) as refusal:
        lowered(source)
    assert named in refusal.value.message and refusal.value.line == 3


def test_unknown_modifiers_are_named():
    ptx = compile_cuda('extern "C" __global__ void k(float* a) { a[0] = a[1] + a[2]; }').ptx
    changed = ptx.replace("add.ftz.f32", "add.strange.ftz.f32")
    assert changed != ptx
    with pytest.raises(Unsupported, match=r"add\.strange\.ftz\.f32"):
        Module(changed).code("k")
    changed = ptx.replace("st.global.f32", "st.global.f32.sideways").replace("ld.global.f32", "ld.upside.global.f32")
    with pytest.raises(Unsupported, match="upside"):
        Module(changed).code("k")


def test_recursion_is_refused():
    source = """__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    extern "C" __global__ void k(int* a) { a[0] = fib(a[1]); }"""
    with pytest.raises(Unsupported, match=r"recursive function .*fib"):
        lowered(source)


def test_function_pointers_and_device_malloc_are_refused():
    with pytest.raises(Unsupported, match="function pointer"):
        lowered("""__device__ float f(float x) { return x + 1; } __device__ float g(float x) { return x * 2; }
        typedef float (*F)(float); __device__ F table[2] = {f, g};
        extern "C" __global__ void k(float* a, int i) { a[0] = table[i](a[0]); }""")
    with pytest.raises(Unsupported, match="malloc"):
        lowered('extern "C" __global__ void k(int** a) { a[0] = (int*)malloc(16); }')


def test_a_kernel_for_the_whole_grid_or_for_clusters_needs_its_launch():
    grid = lowered("""#include <cooperative_groups.h>
        extern "C" __global__ void k(int* a) { cooperative_groups::this_grid().sync(); a[0] = 1; }""")
    a = np.zeros(8, "i4")
    call = ((32,), a.ctypes.data.to_bytes(8, "little"), [Buffer(a.ctypes.data, a.nbytes, "a", True)])
    with pytest.raises(ValueError, match="only a cooperative launch"):
        run(grid, "k", (2,), *call)
    with pytest.raises(ValueError, match="cannot all be resident"):
        run(grid, "k", (1 << 20,), *call, cooperative=True)
    assert not run(grid, "k", (2,), *call, cooperative=True).findings
    pairs = lowered('extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int* a) { a[blockIdx.x] = 1; }')
    with pytest.raises(ValueError, match="do not divide the grid"):
        run(pairs, "k", (3,), *call)
    assert run(pairs, "k", (4,), *call, blocks=[3, 2]).blocks_run == 2


def test_printf_is_accepted_and_says_nothing():
    module = lowered('extern "C" __global__ void k(int* a) { printf("value %d\\n", a[0]); a[1] = 7; }')
    a = np.zeros(2, "i4")
    assert not run(module, "k", (1,), (1,), a.ctypes.data.to_bytes(8, "little"), [Buffer(a.ctypes.data, 8, "a", True)]).findings
    assert a[1] == 7


def simple() -> str:
    return compile_cuda("""extern "C" __global__ void k(const float* a, float* b, int n) {
      __shared__ float s[64]; int i = blockIdx.x * blockDim.x + threadIdx.x;
      s[threadIdx.x & 63] = a[i]; __syncthreads();
      if (i < n) b[i] = s[(threadIdx.x + 1) & 63] * 2.0f; }""").ptx


@pytest.mark.parametrize("text", ["", "hello", ".version 8.0\n.entry k( {", "int main() { return 0; }"])
def test_text_that_is_not_ptx(text):
    with pytest.raises((Unsupported, KeyError)):
        Module(text).code("k")


def test_damaged_ptx_never_ends_the_process():
    ptx = simple()
    rng = np.random.default_rng(3)
    a = np.ones(256, "f4")
    b = np.zeros(256, "f4")
    packed = a.ctypes.data.to_bytes(8, "little") + b.ctypes.data.to_bytes(8, "little") + (256).to_bytes(4, "little")
    buffers = [Buffer(a.ctypes.data, a.nbytes, "a", False), Buffer(b.ctypes.data, b.nbytes, "b", True)]
    start = ptx.index("{")
    for _ in range(150):
        text = list(ptx)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(start, len(text)))
            text[at] = str(rng.choice(list("0123456789%rdfp[];,.+-{}_ \n")))
        try:
            run(Module("".join(text)), "k", (4,), (64,), packed, buffers, budget=20_000)
        except (Unsupported, KeyError, ValueError):
            continue


@pytest.mark.parametrize(("grid", "block", "packed", "message"), [
    ((1,), (2048,), 20, "at most 1024 threads"),
    ((0,), (32,), 20, "positive"),
    ((1, 1, 1, 1), (32,), 20, "one to three"),
    ((1,), (32,), 12, "20 bytes of arguments, 12"),
    ((1, 70000), (32,), 20, "65535"),
])
def test_impossible_launches(grid, block, packed, message):
    with pytest.raises(ValueError, match=message):
        run(Module(simple()), "k", grid, block, bytes(packed), [])


def test_more_shared_memory_than_any_gpu():
    with pytest.raises(ValueError, match="bytes of shared memory a block"):
        run(Module(simple()), "k", (1,), (32,), bytes(20), [], dynamic_shared=1 << 21)


def test_unknown_kernel_and_overlapping_buffers():
    module = Module(simple())
    with pytest.raises(KeyError, match="no kernel other in the module; it has k"):
        run(module, "other", (1,), (1,), b"", [])
    a = np.zeros(64, "f4")
    twice = [Buffer(a.ctypes.data, 256, "first", True), Buffer(a.ctypes.data + 128, 64, "second", True)]
    with pytest.raises(ValueError, match="`first` and `second` overlap"):
        run(module, "k", (1,), (1,), bytes(20), twice)


def test_parameters_and_variables():
    module = Module(compile_cuda("""__device__ float v[3]; struct S { double d; char c[3]; };
        extern "C" __global__ void k(const float* a, int n, S s, float* out) { v[0] = a[n]; out[0] = s.d + s.c[1]; }""").ptx)
    places = [(p.offset, p.size, p.align, p.is_pointer) for p in module.parameters("k")]
    assert places == [(0, 8, 8, True), (8, 4, 4, False), (16, 16, 8, False), (32, 8, 8, True)]
    assert module.global_address("v")[1] == 12
    with pytest.raises(KeyError, match="no __device__ or __constant__ variable w"):
        module.global_address("w")
