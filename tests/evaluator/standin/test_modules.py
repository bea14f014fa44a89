"""RawModule and RawKernel compile, find kernels and report compile errors as CuPy does."""

from __future__ import annotations

import io

import numpy as np
import pytest

from evaluator.simulator.standin import SimulatedError

SOURCE = r"""
__device__ float scale = 2.0f;
__constant__ int table[4];
extern "C" __global__ void times(float* x) { x[threadIdx.x] *= scale + table[threadIdx.x & 3]; }
__global__ void mangled(float* x) { x[0] = 1; }
template <int N> __global__ void add(float* x) { x[threadIdx.x] += N; }
"""


def test_template_instances(cupy, session):
    module = cupy.RawModule(code=SOURCE, options=("--std=c++17",), name_expressions=["add<3>", "mangled"])
    x = cupy.zeros(4, cupy.float32)
    module.get_function("add<3>")((1,), (4,), (x,))
    module.get_function("mangled")((1,), (1,), (x,))
    assert x.tolist() == [1, 3, 3, 3]
    assert {"times", "add<3>", "mangled"} == set(session.resources)
    assert session.compile_seconds > 0


@pytest.mark.parametrize(("name", "hint"), [
    ("mangled", 'extern "C"'), ("add<3>", "name_expressions=['add<3>']"), ("nothing", "it has"),
])
def test_missing_kernel_says_why(cupy, name, hint):
    with pytest.raises(SimulatedError, match="no kernel") as caught:
        cupy.RawKernel(SOURCE, name)((1,), (1,), (cupy.zeros(1, cupy.float32),))
    assert hint in str(caught.value)
    assert "times" in str(caught.value)


def test_global_variables(cupy):
    module = cupy.RawModule(code=SOURCE)
    cupy.ndarray(4, cupy.int32, module.get_global("table")).set(np.array([0, 1, 2, 3], np.int32))
    x = cupy.ones(4, cupy.float32)
    module.get_function("times")((1,), (4,), (x,))
    assert x.tolist() == [2, 3, 4, 5]
    with pytest.raises(SimulatedError, match="'absent'"):
        module.get_global("absent")


def test_options_must_be_a_tuple_as_cupy_wants_them(cupy):
    with pytest.raises(TypeError, match="expected tuple, got list"):
        cupy.RawKernel(SOURCE, "times", options=["--use_fast_math"])


def test_compile_error_is_cupys(cupy, session):
    with pytest.raises(cupy.cuda.compiler.CompileException) as caught:
        cupy.RawModule(code="extern \"C\" __global__ void f(float* a) {\n  a[0] = missing;\n}").get_function("f")
    assert "kernel.cu(2): error" in str(caught.value)
    assert session.compile_log == caught.value.get_message()
    dumped = io.StringIO()
    caught.value.dump(dumped)
    assert "   2   a[0] = missing;" in dumped.getvalue()


def test_refused_include_is_also_a_guard_finding(cupy, session):
    with pytest.raises(cupy.cuda.compiler.CompileException):
        cupy.RawModule(code='\n#include "/etc/passwd"\n').compile()
    (found,) = session.findings
    assert (found.kind, found.line) == ("guard", 2)


def test_log_stream_gets_the_compilers_report(cupy):
    log = io.StringIO()
    cupy.RawKernel(SOURCE, "times").compile(log_stream=log)
    assert "registers" in log.getvalue()


@pytest.mark.parametrize("arguments", [
    {"path": "k.cubin"}, {"code": SOURCE, "backend": "nvcc"}, {"code": SOURCE, "jitify": True},
])
def test_what_is_not_simulated(cupy, arguments):
    with pytest.raises(NotImplementedError, match="simulator compiles"):
        cupy.RawModule(**arguments)
