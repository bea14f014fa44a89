"""`cupy.ndarray` over host memory: a wrapper, not a NumPy subclass, so that NumPy never takes it silently for its own.

As in CuPy, `numpy.asarray(x)` raises, mixing with a NumPy array raises, reductions give 0-d arrays, and views share memory.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from evaluator.simulator.standin.memory import HostMemory, MemoryPointer, bytes_at, poison
from evaluator.simulator.standin.state import registry, session

IMPLICIT = ("Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly.")
COMPUTING_METHODS = frozenset(
    ["all", "any", "argmax", "argmin", "argsort", "argpartition", "choose", "clip", "compress", "conj", "conjugate", "cumprod",
     "cumsum", "dot", "max", "mean", "min", "nonzero", "partition", "prod", "ptp", "put", "repeat", "round", "searchsorted",
     "sort", "std", "sum", "take", "trace", "var"]
)
PASSIVE_FUNCTIONS = frozenset(
    ["reshape", "ravel", "transpose", "swapaxes", "moveaxis", "rollaxis", "expand_dims", "squeeze", "broadcast_to",
     "broadcast_arrays", "atleast_1d", "atleast_2d", "atleast_3d", "split", "array_split", "hsplit", "vsplit", "flip", "fliplr",
     "flipud", "rot90", "copyto", "may_share_memory", "shares_memory", "shape", "size", "ndim", "result_type", "promote_types",
     "can_cast", "iscomplexobj", "isrealobj", "isscalar", "array_repr", "array_str", "ix_", "diagonal", "identity", "indices",
     "matrix_transpose", "permute_dims"]
)
"""NumPy functions that make views, allocate, copy or ask: no kernel of a library computes, so no library call."""
WRITES_ITS_FIRST_ARGUMENT = frozenset(["copyto", "put", "partition", "sort", "place", "putmask", "fill_diagonal"])
PASSIVE_METHODS = frozenset(["diagonal", "byteswap"])
Shape = int | Sequence[int]


class ndarray:
    """CuPy's array. `shape` in elements, `dtype` a NumPy dtype, `strides` in bytes; memory is poisoned in verify mode."""

    __slots__ = ("__weakref__", "_host")
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100
    _host: np.ndarray[Any, Any]

    def __init__(
        self, shape: Shape, dtype: Any = float, memptr: MemoryPointer | None = None, strides: Sequence[int] | None = None,
        order: str = "C",
    ) -> None:
        if memptr is None:
            self._host = new(shape, dtype, order, fresh="empty")._host
        else:
            self._host = _at_pointer(_dims(shape), np.dtype(dtype), memptr, strides, order)

    shape = property(lambda self: self._host.shape, lambda self, value: setattr(self._host, "shape", value))
    dtype = property(lambda self: self._host.dtype)
    strides = property(lambda self: self._host.strides)
    size = property(lambda self: self._host.size)
    ndim = property(lambda self: self._host.ndim)
    nbytes = property(lambda self: self._host.nbytes)
    itemsize = property(lambda self: self._host.itemsize)
    flags = property(lambda self: self._host.flags)
    T = property(lambda self: wrap(self._host.T))
    mT = property(lambda self: wrap(np.swapaxes(self._host, -1, -2)))
    real = property(lambda self: wrap(self._host.real))
    imag = property(lambda self: wrap(self._host.imag))
    flat = property(lambda self: wrap(self._host.reshape(-1)))

    @property
    def data(self) -> MemoryPointer:
        """The address of the first element."""
        return MemoryPointer(HostMemory(self._host.ctypes.data, self._host.nbytes, self._host))

    @property
    def device(self) -> Any:
        """The one simulated device."""
        from evaluator.simulator.standin.cuda import Device

        return Device(0)

    @property
    def base(self) -> ndarray | None:
        """The array this one is a view of (itself wrapped anew), or None."""
        return wrap(self._host.base) if isinstance(self._host.base, np.ndarray) else None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        host = self._host
        strides = None if host.flags.c_contiguous else host.strides
        return {"shape": host.shape, "typestr": host.dtype.str, "data": (host.ctypes.data, False), "strides": strides,
                "version": 3, "stream": 1}

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> np.ndarray[Any, Any]:
        """A copy as a NumPy array."""
        session().record_library_call("cupy.get")
        if out is None:
            return np.array(self._host, order=order)  # type: ignore[call-overload,no-any-return]
        out[...] = self._host
        return out  # type: ignore[no-any-return]

    def set(self, arr: np.ndarray[Any, Any], stream: Any = None) -> None:
        """Copies a NumPy array of the same shape and dtype in. Raises TypeError, ValueError as CuPy does."""
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if arr.dtype != self._host.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self._host.dtype} array")
        if arr.shape != self._host.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self._host.shape}, new shape: {arr.shape}")
        _written(self)
        self._host[...] = arr

    def item(self, *args: Any) -> Any:
        """One element as a Python scalar."""
        return self._host.item(*args)

    def tolist(self) -> Any:
        """Nested Python lists."""
        return self._host.tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """The elements' bytes."""
        return self._host.tobytes(order)  # type: ignore[arg-type]

    def reshape(self, *shape: Any, order: str = "C") -> ndarray:
        """A view where strides permit, else a copy."""
        return wrap(self._host.reshape(*shape, order=order))  # type: ignore[call-overload]

    def ravel(self, order: str = "C") -> ndarray:
        """One dimension; a view where strides permit."""
        return wrap(self._host.ravel(order))  # type: ignore[arg-type]

    def flatten(self, order: str = "C") -> ndarray:
        """One dimension, copied."""
        return wrap(self._host.flatten(order))  # type: ignore[arg-type]

    def astype(self, dtype: Any, order: str = "K", casting: str | None = None, subok: bool | None = None,
               copy: bool = True) -> ndarray:
        """Converted elements; a copy unless nothing changes and `copy` is False."""
        if not copy and self._host.dtype == np.dtype(dtype):
            return self
        return wrap(self._host.astype(dtype, order=order))  # type: ignore[call-overload]

    def copy(self, order: str = "C") -> ndarray:
        """Own memory."""
        return wrap(self._host.copy(order))  # type: ignore[arg-type]

    def view(self, dtype: Any = None) -> ndarray:
        """The same bytes as another dtype."""
        return wrap(self._host.view() if dtype is None else self._host.view(dtype))

    def transpose(self, *axes: Any) -> ndarray:
        """A view with permuted axes."""
        return wrap(self._host.transpose(*axes))

    def swapaxes(self, axis1: int, axis2: int) -> ndarray:
        """A view with two axes exchanged."""
        return wrap(self._host.swapaxes(axis1, axis2))

    def squeeze(self, axis: Any = None) -> ndarray:
        """A view without axes of length 1."""
        return wrap(self._host.squeeze(axis))

    def fill(self, value: Any) -> None:
        """Sets every element to a scalar."""
        self[...] = value

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in COMPUTING_METHODS or name in PASSIVE_METHODS:
            return lambda *args, **kwargs: _method(self, name, args, kwargs)
        raise AttributeError(f"the simulated cupy.ndarray has no attribute {name!r}")

    def __getitem__(self, index: Any) -> ndarray:
        return wrap(self._host[unwrap(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.shape:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill; move it with cupy.asarray first")
        _written(self)
        self._host[unwrap(index)] = unwrap(value)

    def __iter__(self) -> Iterator[ndarray]:
        return (wrap(part) for part in self._host)

    def __len__(self) -> int:
        return len(self._host)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        raise TypeError(IMPLICIT)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return apply(getattr(ufunc, method), ufunc.__name__, inputs, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return apply(func, func.__name__, args, kwargs, func.__name__ not in PASSIVE_FUNCTIONS)

    def __dlpack__(self, **kwargs: Any) -> Any:
        kwargs.pop("stream", None)
        return self._host.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._host.__dlpack_device__()

    def toDlpack(self) -> Any:
        """A DLPack capsule (CuPy's old spelling)."""
        return self._host.__dlpack__()

    def __bool__(self) -> bool:
        return bool(self._host)

    def __int__(self) -> int:
        return int(self._host)

    def __float__(self) -> float:
        return float(self._host)

    def __complex__(self) -> complex:
        return complex(self._host)

    def __index__(self) -> int:
        return operator.index(self._host)

    def __repr__(self) -> str:
        return repr(self._host)

    def __str__(self) -> str:
        return str(self._host)

    def __format__(self, spec: str) -> str:
        return format(self._host, spec)


def new(shape: Shape, dtype: Any = float, order: str = "C", fresh: str = "zeros") -> ndarray:
    """Guarded memory for an array; `fresh`: "zeros", or "empty" (poisoned in verify mode, zeros in profile mode)."""
    kind = np.dtype(dtype)
    dims = _dims(shape)
    place = session().caller()
    raw = registry.allocate(int(np.prod(dims, dtype=object)) * kind.itemsize,
                            f"{kind} array {list(dims)}" + (f" made at {place}" if place else ""))
    if fresh == "empty":
        registry.made_empty(raw.ctypes.data)
        if session().mode == "verify":
            poison(raw, kind, session().fresh_byte)
    return share(np.ndarray(dims, kind, raw.data, 0, None, "F" if order == "F" else "C"))


def share(host: np.ndarray[Any, Any]) -> ndarray:
    """An array over `host`'s own memory, which must be registered."""
    made = ndarray.__new__(ndarray)
    made._host = host
    return made


def wrap(host: Any) -> ndarray:
    """An array for a NumPy result: shares device memory it already lies in, else moves it into guarded memory."""
    host = np.asarray(host)
    if host.size and registry.find(host.ctypes.data) is not None:
        return share(host)
    moved = new(host.shape, host.dtype, "F" if host.flags.f_contiguous and not host.flags.c_contiguous else "C")
    moved._host[...] = host
    return moved


def unwrap(value: Any) -> Any:
    """`value` with every array inside tuples, lists and dicts replaced by its host array."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, (tuple, list)):
        return type(value)(unwrap(part) for part in value) if type(value) in (tuple, list) else value
    if isinstance(value, dict):
        return {key: unwrap(part) for key, part in value.items()}
    return value


def apply(function: Callable[..., Any], name: str, args: Sequence[Any], kwargs: dict[str, Any], computes: bool = True) -> Any:
    """Runs a NumPy function on arrays and counts it as a library call. Raises TypeError on a NumPy array, as CuPy does."""
    _refuse_numpy(args)
    if computes:
        session().record_library_call(f"cupy.{name}")
    out = kwargs.get("out")
    _written(out, *(args[:1] if name in WRITES_ITS_FIRST_ARGUMENT else ()))
    result = function(*unwrap(tuple(args)), **unwrap(kwargs))
    if out is not None:
        return out[0] if isinstance(out, tuple) else out
    return rewrap(result)


def rewrap(result: Any) -> Any:
    """NumPy arrays and scalars of a result as arrays, inside tuples and lists too."""
    if isinstance(result, (np.ndarray, np.generic)):
        return wrap(result)
    if isinstance(result, (tuple, list)):
        parts = [rewrap(part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


def _written(*targets: Any) -> None:
    """Notes that something else than a kernel writes into these arrays (inside tuples too)."""
    for target in targets:
        if isinstance(target, ndarray) and target.size:
            registry.written_by_library(target._host.ctypes.data)
        elif isinstance(target, (tuple, list)):
            _written(*target)


def _refuse_numpy(args: Sequence[Any]) -> None:
    for arg in args:
        if isinstance(arg, np.ndarray) and arg.shape:
            raise TypeError(f"Unsupported type {type(arg)}; move it to the device with cupy.asarray first")


def _method(array: ndarray, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if name in WRITES_ITS_FIRST_ARGUMENT:
        _written(array)
    return apply(getattr(array._host, name), name, args, kwargs, computes=name in COMPUTING_METHODS)


def _dims(shape: Shape) -> tuple[int, ...]:
    return tuple(operator.index(n) for n in shape) if isinstance(shape, Sequence) else (operator.index(shape),)


def _at_pointer(
    dims: tuple[int, ...], dtype: np.dtype[Any], memptr: MemoryPointer, strides: Sequence[int] | None, order: str
) -> np.ndarray[Any, Any]:
    extent = int(np.prod(dims, dtype=object)) * dtype.itemsize
    if strides is not None and extent:
        extent = sum((n - 1) * abs(step) for n, step in zip(dims, strides, strict=True)) + dtype.itemsize
    raw = bytes_at(memptr.ptr, extent, memptr.mem)
    host: np.ndarray[Any, Any] = np.ndarray(dims, dtype, raw.data, 0, strides, "F" if order == "F" else "C")
    return host


def _operator(name: str, function: Callable[..., Any], reflected: bool) -> Callable[[ndarray, Any], Any]:
    def method(self: ndarray, other: Any) -> Any:
        return apply(function, name, (other, self) if reflected else (self, other), {})

    return method


def _inplace(name: str, function: np.ufunc) -> Callable[[ndarray, Any], ndarray]:
    def method(self: ndarray, other: Any) -> ndarray:
        apply(function, name, (self, other), {"out": self})
        return self

    return method


def _unary(name: str, function: Callable[..., Any]) -> Callable[[ndarray], Any]:
    return lambda self: apply(function, name, (self,), {})


BINARY: dict[str, np.ufunc] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "matmul": np.matmul, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift,
}
COMPARING: dict[str, np.ufunc] = {
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal, "gt": np.greater, "ge": np.greater_equal,
}
for _name, _function in BINARY.items():
    setattr(ndarray, f"__{_name}__", _operator(_function.__name__, _function, reflected=False))
    setattr(ndarray, f"__r{_name}__", _operator(_function.__name__, _function, reflected=True))
    setattr(ndarray, f"__i{_name}__", _inplace(_function.__name__, _function))
for _name, _function in COMPARING.items():
    setattr(ndarray, f"__{_name}__", _operator(_function.__name__, _function, reflected=False))
for _name, _function in {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}.items():
    setattr(ndarray, f"__{_name}__", _unary(_function.__name__, _function))
