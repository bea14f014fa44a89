"""NVRTC gives PTX, a cubin, lowered names and usable logs, without a driver."""

from __future__ import annotations

import pytest

from evaluator import toolkit
from evaluator.compile import CompileError, GuardError, compile_cuda, nvrtc_version
from evaluator.toolkit import ToolkitMissing, find_toolkit

SAXPY = 'extern "C" __global__ void saxpy(float a, const float* x, float* y) { y[threadIdx.x] += a * x[threadIdx.x]; }'
TEMPLATE = "template <typename T, int N> __global__ void scale(T* x) { x[threadIdx.x] *= N; }"


def test_ptx_and_cubin_for_the_architecture():
    compiled = compile_cuda(SAXPY, arch="sm_80")
    assert ".target sm_80" in compiled.ptx
    assert ".entry saxpy" in compiled.ptx
    assert compiled.cubin.startswith(b"\x7fELF")
    assert "Used" in compiled.log
    assert nvrtc_version() >= (12, 0)


def test_cupy_flags_flush_denormals_as_cupy_does():
    assert "fma.rn.ftz.f32" in compile_cuda(SAXPY).ptx


def test_line_numbers_reach_the_ptx():
    assert ".loc" in compile_cuda(SAXPY).ptx


def test_template_instances_have_their_lowered_names():
    compiled = compile_cuda(TEMPLATE, name_expressions=["scale<float, 3>", "scale<int, 4>"])
    assert set(compiled.lowered) == {"scale<float, 3>", "scale<int, 4>"}
    assert all(symbol in compiled.ptx for symbol in compiled.lowered.values())


def test_error_has_the_users_line_although_comments_and_continuations_precede_it():
    source = "/* a\n comment */\n#define TWICE(x) \\\n  ((x) + \\\n   (x))\n__global__ void f(float* a) {\n  a[0] = missing;\n}"
    with pytest.raises(CompileError) as caught:
        compile_cuda(source)
    assert caught.value.line == 7
    assert "kernel.cu(7): error" in caught.value.log
    assert "a[0] = missing;" in caught.value.log


@pytest.mark.parametrize(("source", "hint"), [
    ("#include <torch/extension.h>\n", "launch the kernel from Python"),
    ("#include <iostream>\n", "no host code"),
    ("#include <math.h>\n", "need no header"),
    ("#include <stdint.h>\n", "<cuda/std/cstdint>"),
    ("__global__ void f(float* a) { a[0] = INFINITY; }\n", "CUDART_INF_F"),
    ("__global__ void f(__half* a) { a[0] = a[1]; }\n", "cuda_fp16.h"),
    ("__global__ void f(int* a) { a[0] = sizeof(uint32_t); }\n", "cstdint"),
])
def test_common_mistakes_carry_a_hint(source, hint):
    with pytest.raises(CompileError) as caught:
        compile_cuda(source)
    assert not isinstance(caught.value, GuardError), "an honest mistake is no attack"
    assert caught.value.line == 1
    assert hint in caught.value.log.split("hint:", 1)[1]


@pytest.mark.parametrize("header", [
    "cuda_fp16.h", "cuda_bf16.h", "mma.h", "cooperative_groups.h", "cub/block/block_reduce.cuh", "cuda/std/limits",
    "math_constants.h",
])
def test_cuda_headers_compile(header):
    assert compile_cuda(f"#include <{header}>\n{SAXPY}").ptx


def test_the_options_people_pass_to_cupy_are_accepted():
    options = ("--std=c++17", "-use_fast_math", "-DTILE=16", "-D", "NAME", "--maxrregcount=64", "-Xptxas", "-O3",
               f"-I{find_toolkit().include_dirs[0]}")
    assert compile_cuda(f"#if !defined(NAME) || TILE != 16\n#error\n#endif\n{SAXPY}", options=options).ptx


def test_missing_toolkit_says_what_to_install(monkeypatch):
    monkeypatch.setattr(toolkit, "_nvrtc_candidates", lambda: iter(()))
    find_toolkit.cache_clear()
    try:
        with pytest.raises(ToolkitMissing, match="pip"):
            find_toolkit()
    finally:
        find_toolkit.cache_clear()
