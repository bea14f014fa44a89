"""Making arrays: `cupy.empty`, `zeros`, `asarray`, `from_dlpack`, ... with CuPy's rules for what may be converted."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from evaluator.simulator.standin.arrays import Shape, ndarray, new, share, unwrap, wrap
from evaluator.simulator.standin.memory import bytes_at
from evaluator.simulator.standin.state import registry

CPU_DLPACK = (1, 0)


def empty(shape: Shape, dtype: Any = float, order: str = "C") -> ndarray:
    """Uninitialised memory: poisoned with NaN in verify mode."""
    return new(shape, dtype, order, fresh="empty")


def zeros(shape: Shape, dtype: Any = float, order: str = "C") -> ndarray:
    """Zeros."""
    return new(shape, dtype, order)


def ones(shape: Shape, dtype: Any = float, order: str = "C") -> ndarray:
    """Ones."""
    return full(shape, 1, dtype, order)


def full(shape: Shape, fill_value: Any, dtype: Any = None, order: str = "C") -> ndarray:
    """A constant; its own dtype unless given."""
    made = new(shape, dtype if dtype is not None else np.asarray(unwrap(fill_value)).dtype, order)
    made[...] = fill_value
    return made


def _like(make: Callable[..., ndarray]) -> Callable[..., ndarray]:
    def like(a: ndarray, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> ndarray:
        """`a`'s shape, dtype and (order K) memory order."""
        if not isinstance(a, ndarray):
            raise TypeError(f"expected a cupy.ndarray, not {type(a)}")
        fortran = order == "F" or (order in "KA" and a.flags.f_contiguous and not a.flags.c_contiguous)
        return make(a.shape if shape is None else shape, dtype or a.dtype, order="F" if fortran else "C")

    return like


empty_like = _like(empty)
zeros_like = _like(zeros)
ones_like = _like(ones)


def full_like(
    a: ndarray, fill_value: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None,
) -> ndarray:
    """`a`'s shape and dtype, a constant."""
    made = empty_like(a, dtype, order, subok, shape)
    made[...] = fill_value
    return made


def array(
    obj: Any, dtype: Any = None, copy: bool = True, order: str = "K", subok: bool = False, ndmin: int = 0,
    blocking: bool = False,
) -> ndarray:
    """A new device array from anything array-like; `copy=False` keeps an array (or DLPack memory) where it is."""
    made = _on_device(obj)
    host = np.array(made._host, dtype, copy=True if copy else None, order=order, ndmin=ndmin)  # type: ignore[call-overload]
    return made if host is made._host else wrap(host)


def asarray(a: Any, dtype: Any = None, order: str | None = None, blocking: bool = False) -> ndarray:
    """`a` on the device, copied only when it must be."""
    return array(a, dtype, copy=False, order=order or "K")


def asanyarray(a: Any, dtype: Any = None, order: str | None = None, blocking: bool = False) -> ndarray:
    """As asarray."""
    return asarray(a, dtype, order)


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    """`a` in C order, at least one-dimensional."""
    made = asarray(a, dtype, "C")
    return made if made.ndim else made.reshape(1)


def asfortranarray(a: Any, dtype: Any = None) -> ndarray:
    """`a` in Fortran order."""
    return asarray(a, dtype, "F")


def copy(a: ndarray, order: str = "K") -> ndarray:
    """Own memory."""
    return a.copy(order)


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> np.ndarray[Any, Any]:
    """A copy as a NumPy array."""
    return a.get(order=order, out=out) if isinstance(a, ndarray) else np.asarray(a, order=order)  # type: ignore[call-overload]


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> ndarray:
    """As numpy.arange."""
    begin, end = (0, start) if stop is None else (start, stop)
    return wrap(np.arange(begin, end, step, dtype=dtype))


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None) -> Any:
    """As numpy.linspace."""
    return wrap(np.linspace(unwrap(start), unwrap(stop), num, endpoint, dtype=dtype))


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float, order: str = "C") -> ndarray:
    """As numpy.eye."""
    return wrap(np.eye(N, M, k, dtype))


def from_dlpack(tensor: Any, *, device: Any = None, copy: bool | None = None) -> ndarray:
    """The tensor's own memory as an array (no copy). Raises TypeError without DLPack, BufferError as the producer does."""
    if isinstance(tensor, ndarray):
        return tensor
    if not hasattr(tensor, "__dlpack__"):
        tensor = _Capsule(tensor) if type(tensor).__name__ == "PyCapsule" else _not_dlpack(tensor)
    _register_torch(tensor)
    host = np.from_dlpack(tensor)
    if host.size and registry.find(host.ctypes.data) is None:
        _lend(host, tensor)
    if host.size and not host.flags.writeable:
        host = _writable_alias(host)
    return share(host)


def _on_device(obj: Any) -> ndarray:
    if isinstance(obj, ndarray):
        return obj
    if _is_torch(obj):
        return from_dlpack(obj)
    if isinstance(obj, (list, tuple)) and any(isinstance(part, ndarray) for part in obj):
        return wrap(np.stack([unwrap(_on_device(part)) for part in obj]))
    host = np.asarray(obj)
    if host.dtype == object:
        raise ValueError("Unsupported dtype object")
    return wrap(host.copy() if host.size and registry.find(host.ctypes.data) else host)


class _Capsule:
    """A raw DLPack capsule, given the two methods NumPy asks for."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU_DLPACK


def _not_dlpack(obj: Any) -> Any:
    raise TypeError(f"{type(obj).__name__} does not support DLPack (no __dlpack__ method); use cupy.asarray")


def _is_torch(obj: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(obj, torch.Tensor)


def _register_torch(obj: Any) -> None:
    if _is_torch(obj):
        from evaluator.simulator.standin.torch_memory import lend_storage

        lend_storage(obj)


def _lend(host: np.ndarray[Any, Any], producer: Any) -> None:
    """Foreign memory without a lifetime of its own that we could watch: alive as long as NumPy's view of it."""
    alive = weakref.ref(host)
    registry.lend(host.ctypes.data, host.nbytes, f"{type(producer).__name__} {list(host.shape)}", lambda: alive() is None)


def _writable_alias(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """DLPack memory may arrive read-only in NumPy although the producer allows writes, as on a GPU."""
    reach = [(n - 1) * step for n, step in zip(host.shape, host.strides, strict=True)]
    below, above = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    raw = bytes_at(host.ctypes.data + below, above - below + host.itemsize, host)
    alias: np.ndarray[Any, Any] = np.ndarray(host.shape, host.dtype, raw.data, -below, host.strides)
    return alias
