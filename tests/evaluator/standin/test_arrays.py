"""Arrays behave as CuPy's: what CuPy refuses is refused, views share memory, fresh memory is poisoned."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.simulator.standin.memory import ALIGNMENT, GUARD_BYTES
from evaluator.simulator.standin.state import registry


def test_numpy_does_not_take_an_array_silently(cupy):
    x = cupy.zeros(3)
    with pytest.raises(TypeError, match=r"\.get\(\)"):
        np.asarray(x)
    with pytest.raises(TypeError, match=r"Unsupported type <class 'numpy\.ndarray'>"):
        x + np.ones(3)
    with pytest.raises(TypeError, match="Unsupported type"):
        np.ones(3) + x
    with pytest.raises(TypeError, match="Unsupported type"):
        cupy.exp(np.ones(3))
    with pytest.raises(ValueError, match="cannot be used for fill"):
        x[:] = np.ones(3)
    with pytest.raises(TypeError, match=r"Only numpy\.ndarray"):
        x.set([1, 2, 3])


def test_there_and_back(cupy):
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = cupy.asarray(host)
    host[0, 0] = 99
    assert x.get()[0, 0] == 0, "the device has its own memory"
    assert isinstance(cupy.asnumpy(x), np.ndarray)
    x.set(host)
    assert x[0, 0].item() == 99
    assert cupy.array(x) is not x
    assert cupy.asarray(x) is x


def test_views_share_memory_and_copies_do_not(cupy):
    x = cupy.arange(12, dtype=cupy.float32).reshape(3, 4)
    views = [x.T, x[1:], x[:, ::2], x.reshape(4, 3), x.ravel(), x.view(cupy.int32)]
    start, end = x.data.ptr, x.data.ptr + x.nbytes
    assert all(start <= view.data.ptr < end for view in views)
    assert all(not start <= c.data.ptr < end for c in (x.copy(), x.astype(cupy.float64), cupy.ascontiguousarray(x.T)))
    x.T[0, 1] = -1
    assert x[1, 0].item() == -1
    assert x[:, ::2].strides == (16, 8)
    assert not x.T.flags.c_contiguous


def test_empty_is_poisoned_when_verifying_and_zero_when_profiling(cupy, session):
    assert all(np.isnan(cupy.empty(5, dtype).get()).all() for dtype in (cupy.float16, cupy.float32, cupy.float64))
    assert (cupy.empty(5, cupy.int32).get() != 0).all()
    assert np.isnan(cupy.empty_like(cupy.zeros((2, 2), cupy.float32)).get()).all()
    assert np.isnan(cupy.ndarray((2, 2), cupy.float32).get()).all()
    session.mode = "profile"
    assert (cupy.empty(5).get() == 0).all()


def test_making_arrays(cupy):
    assert (cupy.ones((2, 2), cupy.float16).get() == 1).all()
    assert cupy.full(3, 7).dtype == np.int64
    assert cupy.zeros((2, 3), order="F").strides == (8, 16)
    assert cupy.zeros_like(cupy.ones((2, 3), cupy.int8)).dtype == np.int8
    assert cupy.array([[1.0, 2.0], [3.0, 4.0]], cupy.float32).shape == (2, 2)
    assert cupy.eye(2)[0].tolist() == [1.0, 0.0]
    assert cupy.float32 is np.float32
    assert cupy.zeros((2, 0)).size == 0
    with pytest.raises(ValueError, match="object"):
        cupy.array([None])


def test_operators_and_reductions_give_arrays_and_count_as_library_calls(cupy, session):
    x = cupy.arange(6, dtype=cupy.float32).reshape(2, 3)
    session.forget_library_calls()
    total = (2 * x + 1 - x / 2).sum()
    assert isinstance(total, cupy.ndarray)
    assert total.shape == ()
    assert cupy.concatenate([x, x]).shape == (4, 3)
    assert float(total) == pytest.approx(28.5)
    x += 1
    assert (x @ x.T).shape == (2, 2)
    assert cupy.maximum(x, 3).min().item() == 3
    calls = {call.name: call.count for call in session.library_calls}
    computing = {"multiply", "add", "concatenate", "matmul", "sum", "maximum", "min"}
    assert {f"cupy.{name}" for name in computing} <= set(calls)
    assert all(call.place.file == __file__ for call in session.library_calls)


def test_allocation_views_and_casts_are_no_library_calls(cupy, session):
    x = cupy.zeros((4, 4), cupy.float32)
    for _ in (x.T, x[1:], x.reshape(-1), x.astype(cupy.float64), x.copy(), cupy.ascontiguousarray(x.T), cupy.empty_like(x),
              cupy.asarray(np.ones(3)), cupy.expand_dims(x, 0),
              cupy.broadcast_to(x, (2, 4, 4))):
        pass
    x[0] = 1
    assert session.library_calls == []


def test_a_copy_to_the_host_is_one_since_the_host_may_compute(cupy, session):
    cupy.asnumpy(cupy.zeros(4))
    assert [call.name for call in session.library_calls] == ["cupy.get"]


def test_only_calls_from_the_solution_are_counted(cupy, session):
    session.solution_file = "/somewhere/else.py"
    cupy.exp(cupy.ones(3))
    assert session.library_calls == []
    solution = compile("def run(cupy, x):\n    y = x\n    return cupy.exp(y)\n", "/somewhere/else.py", "exec")
    scope = {}
    exec(solution, scope)
    scope["run"](cupy, cupy.ones(3))
    (call,) = session.library_calls
    assert (call.name, call.place.line, call.count) == ("cupy.exp", 3, 1)


@pytest.mark.parametrize("name", ["ElementwiseKernel", "ReductionKernel", "fuse"])
def test_what_is_not_simulated_says_what_to_use(cupy, name):
    with pytest.raises(NotImplementedError, match="RawModule"):
        getattr(cupy, name)("float32 x", "float32 y", "y = x")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = cupy.nonsense


def test_events_cannot_time(cupy):
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    with cupy.cuda.Stream() as stream, cupy.cuda.Device(0):
        start.record()
        end.record(stream)
        stream.synchronize()
    with pytest.raises(RuntimeError, match="no clock"):
        cupy.cuda.get_elapsed_time(start, end)


def test_device_is_the_card(cupy, device):
    assert cupy.cuda.Device().compute_capability == "90"
    assert cupy.cuda.Device().attributes["MultiProcessorCount"] == device.sm_count
    assert b"simulated" in cupy.cuda.runtime.getDeviceProperties(0)["name"]
    with pytest.raises(RuntimeError, match="InvalidDevice"):
        cupy.cuda.Device(1)


def test_every_allocation_has_gaps_and_leaves_the_registry_when_freed(cupy):
    a, b = cupy.zeros(10), cupy.zeros(10)
    first, second = sorted((a.data.ptr, b.data.ptr))
    assert first % ALIGNMENT == second % ALIGNMENT == 0
    assert second - first >= 2 * GUARD_BYTES
    assert registry.find(a.data.ptr + a.nbytes) is None
    assert registry.find(a.data.ptr - 1) is None
    pointer, view = a.data.ptr, a[5:]
    del a
    assert registry.find(pointer) is not None, "the view keeps it alive"
    del view
    assert registry.find(pointer) is None


def test_memory_pointers(cupy):
    x = cupy.arange(8, dtype=cupy.float32)
    y = cupy.ndarray((2, 2), cupy.float32, x.data + 16)
    y[0, 0] = -1
    assert x.tolist() == [0, 1, 2, 3, -1, 5, 6, 7]
    raw = cupy.cuda.alloc(64)
    assert registry.find(raw.ptr) is not None
    owned = cupy.cuda.UnownedMemory(x.data.ptr, x.nbytes, x)
    assert cupy.ndarray(8, cupy.float32, cupy.cuda.MemoryPointer(owned, 0))[7].item() == 7


def test_read_only_dlpack_memory_stays_writable_for_kernels(cupy):
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    view = host[::-1, ::2]
    view.flags.writeable = False
    x = cupy.from_dlpack(_Producer(view))
    assert x.tolist() == view.tolist()
    x[0, 0] = -5
    assert host[2, 0] == -5


class _Producer:
    """Exports a read-only array as newer DLPack producers do."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(max_version=(1, 0))

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()
