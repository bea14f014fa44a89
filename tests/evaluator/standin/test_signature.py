"""Kernel signatures are read from CUDA source as people write it."""

from __future__ import annotations

import pytest

from evaluator.simulator.standin.signature import Parameter, signature_of, signatures

SOURCE = r"""
// __global__ void commented(int a)
const char* text = "__global__ void quoted(int a)";
template <typename T, int N = 4>
__global__ void __launch_bounds__(256, (1 + 1)) rows(const T* __restrict__ x, T *y, const size_t n, float4 v) { helper(x); }
extern "C" __global__ void saxpy(float a, const float* x, unsigned n, __half *h,
                                 int) { }
extern "C" __launch_bounds__(64) __global__ void first(long long rows[], cuda::std::int64_t b = 3, float** list) {}
__global__ static void none() {}
"""


def read(name):
    return next(s for s in signatures(SOURCE) if s.name == name)


def test_only_real_kernels_are_found():
    assert [s.name for s in signatures(SOURCE)] == ["rows", "saxpy", "first", "none"]
    assert read("none").parameters == ()


@pytest.mark.parametrize(("kernel", "expected"), [
    ("saxpy", [("a", "float", False), ("x", "float", True), ("n", "unsigned int", False), ("h", "__half", True),
               ("", "int", False)]),
    ("rows", [("x", "T", True), ("y", "T", True), ("n", "unsigned long long", False), ("v", "float4", False)]),
    ("first", [("rows", "long long", True), ("b", "long long", False), ("list", "float *", True)]),
])
def test_parameters(kernel, expected):
    assert read(kernel).parameters == tuple(Parameter(*each) for each in expected)


def test_template_arguments_are_filled_in():
    symbol = "_Z4rowsIdLi8EEvPKT_PS0_m6float4"
    found = signature_of(SOURCE, symbol, {"rows<double, 8>": symbol}, 4)
    assert found.parameters[0] == Parameter("x", "double", True)


def test_mangled_names_are_matched_and_doubt_stays_unknown():
    assert signature_of(SOURCE, "saxpy", {}, 5).name == "saxpy"
    assert signature_of(SOURCE, "_Z4nonev", {}, 0).name == "none"
    assert signature_of(SOURCE, "saxpy", {}, 4) is None
    overloaded = "__global__ void f(int a) {}\n__global__ void f(float a) {}"
    assert signature_of(overloaded, "_Z1fi", {}, 1) is None
