"""Every argument that a kernel would read as something else is found at the launch, with the Python line that passed it."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from evaluator.simulator.standin import SimulatedError

SOURCE = r"""
struct Pair { float first; int second; };
extern "C" __global__ void axpy(float* y, const float* x, int n, float a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void wide(long long* out, long long n, double d, bool flag, unsigned int u) {
  out[0] = n; out[1] = (long long)d; out[2] = flag; out[3] = u;
}
extern "C" __global__ void struct_by_value(float* out, Pair p) { out[0] = p.first; out[1] = p.second; }
extern "C" __global__ void bits(const uint4* in, unsigned char* out) { out[threadIdx.x] = in[0].x; }
extern "C" __global__ void strided(const float* x, float* y, int stride) { y[threadIdx.x] = x[threadIdx.x * stride]; }
template <typename T> __global__ void fill(T* x, T value) { x[threadIdx.x] = value; }
"""


@pytest.fixture
def module(cupy):
    return cupy.RawModule(code=SOURCE, name_expressions=["fill<float>", "fill<int>"])


@pytest.fixture
def axpy(module):
    return module.get_function("axpy")


@pytest.fixture
def arrays(cupy):
    return cupy.zeros(32, cupy.float32), cupy.ones(32, cupy.float32)


def finding_of(session, kernel, *args):
    """Launches and returns the error finding; checks that it names this line of this file."""
    line = inspect.currentframe().f_lineno + 2
    with pytest.raises(SimulatedError) as caught:
        kernel((1,), (32,), args)
    assert caught.value.finding in session.findings
    assert (caught.value.finding.file, caught.value.finding.line) == (__file__, line)
    return caught.value.finding


def test_what_the_signature_asks_for_is_accepted(session, axpy, arrays):
    y, x = arrays
    axpy((1,), (32,), (y, x, np.int32(32), np.float32(2)))
    axpy((1,), (32,), (y.data, x.data.ptr, 32, np.float32(2)))
    assert session.findings == []
    assert (y.get() == 4).all()


@pytest.mark.parametrize(("value", "words"), [
    (2.0, ["float a", "Python float 2.0", "float64", "numpy.float32(2.0)"]),
    (2, ["float a", "int64", "numpy.float32(2)"]),
    (np.float64(2), ["reads a float32", "float64"]),
    (np.int32(2), ["reads a float32", "int32"]),
    (np.float16(2), ["reads a float32", "float16"]),
])
def test_wrong_number_for_a_float_parameter(session, axpy, arrays, value, words):
    found = finding_of(session, axpy, *arrays, np.int32(32), value)
    assert found.kind == "argument_mismatch"
    assert all(word in found.message for word in words), found.message


@pytest.mark.parametrize(("value", "words"), [
    (32.0, ["int n", "Python float", "numpy.int32"]),
    (2**31, ["does not fit int32", "long long"]),
    (np.int64(-(2**40)), ["does not fit int32"]),
    (np.int16(3), ["reads 4 bytes", "int16 has 2"]),
    (np.bool_(True), ["reads 4 bytes", "bool has 1"]),
    (np.float32(3), ["reads a int32", "float32"]),
])
def test_wrong_number_for_an_int_parameter(session, axpy, arrays, value, words):
    found = finding_of(session, axpy, *arrays, value, np.float32(1))
    assert found.kind == "argument_mismatch"
    assert all(word in found.message for word in words), found.message


def test_wide_parameters(session, cupy, module):
    out = cupy.zeros(4, cupy.int64)
    wide = module.get_function("wide")
    wide((1,), (1,), (out, 2**40, 3.0, True, np.uint32(2**32 - 1)))
    assert out.tolist() == [2**40, 3, 1, 2**32 - 1]
    found = finding_of(session, wide, out, np.int32(7), 3.0, True, 1)
    assert "reads 8 bytes" in found.message
    found = finding_of(session, wide, out, 7, np.float32(3), True, 1)
    assert "reads a float64" in found.message


def test_none_is_no_null_pointer(session, axpy, arrays):
    found = finding_of(session, axpy, arrays[0], None, np.int32(0), np.float32(1))
    assert found.kind == "null_pointer"
    assert "numpy.uintp(0)" in found.message
    session.findings.clear()
    axpy((1,), (32,), (arrays[0], np.uintp(0), np.int32(0), np.float32(1)))
    assert session.findings == []


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int64"])
def test_array_of_another_dtype(session, cupy, axpy, arrays, dtype):
    found = finding_of(session, axpy, arrays[0], cupy.ones(32, dtype), np.int32(32), np.float32(1))
    assert found.kind == "argument_mismatch"
    assert "`float* x`" in found.message
    assert f"holds {dtype}" in found.message
    assert ".astype(cupy.float32)" in found.message


def test_template_instances_know_their_type(session, cupy, module):
    fill = module.get_function("fill<float>")
    x = cupy.zeros(32, cupy.float32)
    fill((1,), (32,), (x, np.float32(3)))
    assert (x.get() == 3).all()
    assert "holds float64" in finding_of(session, fill, cupy.zeros(32), np.float32(3)).message
    found = finding_of(session, module.get_function("fill<int>"), cupy.zeros(32, cupy.int32), np.float32(3))
    assert found.kernel == "fill<int>"


def test_reading_bits_through_unsigned_pointers_is_meant(session, cupy, module):
    module.get_function("bits")((1,), (4,), (cupy.ones(4, cupy.float32), cupy.zeros(4, cupy.bool_)))
    assert session.findings == []


@pytest.mark.parametrize("count", [0, 3, 5])
def test_wrong_number_of_arguments(session, axpy, arrays, count):
    found = finding_of(session, axpy, *(*arrays, np.int32(1), np.float32(1), np.float32(1))[:count])
    assert f"takes 4 arguments (y, x, n, a), {count} were passed" in found.message


def test_swapped_arguments(session, axpy, arrays):
    y, x = arrays
    assert "is a pointer" in finding_of(session, axpy, y, np.int32(3), x, np.float32(1)).message
    assert "is no pointer" in finding_of(session, axpy, y, x, x, np.float32(1)).message



def test_host_array_in_place_of_a_device_array(session, axpy, arrays):
    found = finding_of(session, axpy, arrays[0], np.ones(32, np.float32), np.int32(32), np.float32(1))
    assert "host memory" in found.message
    with pytest.raises(TypeError, match="Unsupported type <class 'list'>"):
        axpy((1,), (32,), (arrays[0], [1.0] * 32, np.int32(32), np.float32(1)))


def test_struct_by_value(session, cupy, module):
    pair = np.array((1.5, 7), np.dtype([("first", "f4"), ("second", "i4")]))
    out = cupy.zeros(2, cupy.float32)
    module.get_function("struct_by_value")((1,), (1,), (out, pair))
    assert out.tolist() == [1.5, 7]


def test_strided_view_is_warned_about_once_and_runs(session, cupy, axpy, arrays):
    y, _ = arrays
    view = cupy.ones((32, 2), cupy.float32)[:, 0]
    for _ in range(2):
        axpy((1,), (32,), (y, view, np.int32(32), np.float32(1)))
    (found,) = session.findings
    assert (found.kind, found.severity, found.file) == ("non_contiguous_argument", "warning", __file__)
    assert "strides (8,)" in found.message


def test_strided_view_with_its_stride_passed_is_meant(session, cupy, module):
    view = cupy.arange(64, dtype=cupy.float32).reshape(32, 2)[:, 0]
    y = cupy.empty(32, cupy.float32)
    module.get_function("strided")((1,), (32,), (view, y, np.int32(2)))
    assert session.findings == []
    assert y.tolist() == view.tolist()


def test_address_of_freed_memory(session, cupy, axpy, arrays):
    address = cupy.ones(32, cupy.float32).data.ptr
    found = finding_of(session, axpy, arrays[0], address, np.int32(32), np.float32(1))
    assert "belongs to no live array" in found.message


def test_findings_carry_the_sizes_of_the_run(session, axpy, arrays):
    session.sizes = {"rows": 4}
    assert finding_of(session, axpy, *arrays, np.int32(32), 2.0).sizes == {"rows": 4}
