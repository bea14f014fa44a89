"""The watched CuPy: sources are checked and compiled, launches are noted, and everything still happens."""

from types import SimpleNamespace

import pytest

from evaluator.compile import GuardError
from evaluator.cuda_hook import watch


def test_sources_given_to_cupy_are_checked_and_compiled():
    """CuPy itself needs a GPU; its two classes only have to accept what the solution passes."""
    cupy, made, _ = fake_cupy()
    seen = watch(cupy, "sm_90")
    code = 'extern "C" __global__ void f(float* x) { x[threadIdx.x] = 1.f; }'
    cupy.RawKernel(code, "f")
    cupy.RawModule(code=code, options=("-std=c++17",))
    assert made == [(code, "f", ("-lineinfo",)), {"code": code, "options": ("-std=c++17", "-lineinfo")}]
    assert [bool(module.cubin) for module in seen.compiled] == [True, True]
    cupy.RawKernel("no CUDA at all", "f")
    assert len(seen.compiled) == 2
    with pytest.raises(GuardError):
        cupy.RawModule(code='#include "/etc/passwd"')
    assert len(made) == 3


def test_launches_of_watched_kernels_are_noted_and_still_happen():
    cupy, _, launched = fake_cupy()
    seen = watch(cupy, "sm_90", resources=False)
    code = 'extern "C" __global__ void f(float* x) { x[threadIdx.x] = 1.f; }'
    of_module, alone = cupy.RawModule(code=code).get_function("f"), cupy.RawKernel(code, "g")
    of_module((1,), (32,), ())  # while nobody records
    seen.log.open = True
    of_module((4, 2), (64,), (), shared_mem=512)
    alone((1,), (32,), ())
    of_module.max_dynamic_shared_size_bytes = 1 << 16
    assert [(la.kernel, la.grid, la.block, la.dynamic_shared_bytes) for la in seen.log.launches] == [
        ("f", (4, 2, 1), (64, 1, 1), 512), ("g", (1, 1, 1), (32, 1, 1), 0)]
    assert launched == [("f", (1,)), ("f", (4, 2)), ("g", (1,))]
    assert of_module.max_dynamic_shared_size_bytes == 1 << 16
    assert (seen.compiled, seen.sources) == ([], [code, code])


def fake_cupy():
    """CuPy's two classes as far as the hook uses them: (module, what was made, what was launched)."""
    made, launched = [], []

    class RawKernel:
        def __init__(self, code, name, *arguments, **options):
            made.append((code, name, *arguments))
            self.name = name

        def __call__(self, grid, block, args, *, shared_mem=0):
            launched.append((self.name, grid))

    class RawModule:
        def __init__(self, **options):
            made.append(options)

        def get_function(self, name):
            kernel = RawKernel("", name)
            made.pop()
            return kernel

    return SimpleNamespace(RawModule=RawModule, RawKernel=RawKernel), made, launched
