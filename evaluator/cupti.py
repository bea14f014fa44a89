"""CUPTI's activity records through ctypes: every kernel, copy and fill on the GPU with its start and end.

The records' layout is that of `cupti_activity.h` of CUDA 12 and 13; only fields that no version has moved are read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

from evaluator.launches import Activity
from evaluator.toolkit import cupti_candidates

MEMCPY, MEMSET, CONCURRENT_KERNEL = 1, 2, 10
"""CUpti_ActivityKind."""
BUFFER_BYTES = 1 << 20
FLUSH_FORCED = 1
END_OF_BUFFER = 12
"""CUPTI_ERROR_MAX_LIMIT_REACHED: the buffer holds no further record."""


class CuptiMissing(RuntimeError):
    """No CUPTI library, or one that refuses to record; the message says which."""


class _Kernel(ctypes.Structure):
    """The part that CUpti_ActivityKernel4 to CUpti_ActivityKernel10 share."""

    _pack_ = 1
    _fields_ = (
        ("kind", ctypes.c_uint32), ("cache", ctypes.c_uint8), ("shared_config", ctypes.c_uint8), ("registers", ctypes.c_uint16),
        ("partitioned", ctypes.c_uint32 * 2), ("start", ctypes.c_uint64), ("end", ctypes.c_uint64),
        ("completed", ctypes.c_uint64), ("device", ctypes.c_uint32), ("context", ctypes.c_uint32), ("stream", ctypes.c_uint32),
        ("grid", ctypes.c_int32 * 3), ("block", ctypes.c_int32 * 3), ("static_shared", ctypes.c_int32),
        ("dynamic_shared", ctypes.c_int32), ("local_per_thread", ctypes.c_uint32), ("local_total", ctypes.c_uint32),
        ("correlation", ctypes.c_uint32), ("grid_id", ctypes.c_int64), ("name", ctypes.c_char_p),
    )


class _Transfer(ctypes.Structure):
    """The part that the records of copies and fills share, in all versions."""

    _pack_ = 1
    _fields_ = (("kind", ctypes.c_uint32), ("detail", ctypes.c_uint32), ("bytes", ctypes.c_uint64), ("start", ctypes.c_uint64),
                ("end", ctypes.c_uint64))


_Requested = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t),
                              ctypes.POINTER(ctypes.c_size_t))
_Completed = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


@contextmanager
def recording() -> Iterator[list[Activity]]:
    """Records what the process runs on the GPU inside the block; the list is filled, in order, when it ends.

    Raises CuptiMissing.
    """
    recorder = _recorder()
    recorder.activities.clear()
    for kind in (CONCURRENT_KERNEL, MEMCPY, MEMSET):
        recorder.call("cuptiActivityEnable", kind)
    found: list[Activity] = []
    try:
        yield found
    finally:
        recorder.call("cuptiActivityFlushAll", FLUSH_FORCED)
        for kind in (CONCURRENT_KERNEL, MEMCPY, MEMSET):
            recorder.call("cuptiActivityDisable", kind)
        found += sorted(recorder.activities, key=lambda activity: activity.start_us)


class _Recorder:
    """One a process: CUPTI takes one pair of callbacks."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.activities: list[Activity] = []
        self._zero: int | None = None
        """Nanoseconds on CUPTI's clock that count as 0: microseconds since 1970 lose fractions in a float."""
        self._buffers: dict[int, Any] = {}
        self._callbacks = (_Requested(self._requested), _Completed(self._completed))
        self.call("cuptiActivityRegisterCallbacks", *self._callbacks)

    def call(self, function: str, *arguments: Any) -> None:
        """Raises CuptiMissing for a result other than success."""
        result = int(getattr(self._library, function)(*arguments))
        if result:
            raise CuptiMissing(f"{function} gives error {result}")

    def _requested(self, buffer: Any, size: Any, most: Any) -> None:
        memory = (ctypes.c_uint64 * (BUFFER_BYTES // 8))()
        address = ctypes.addressof(memory)
        self._buffers[address] = memory
        buffer[0], size[0], most[0] = address, BUFFER_BYTES, 0

    def _completed(self, _context: Any, _stream: int, buffer: int, _size: int, valid: int) -> None:
        record = ctypes.c_void_p()
        following: Callable[..., int] = self._library.cuptiActivityGetNextRecord
        while following(ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record)) == 0 and record.value:
            self._take(record.value)
        self._buffers.pop(buffer, None)

    def _take(self, address: int) -> None:
        kind = ctypes.c_uint32.from_address(address).value
        if kind == CONCURRENT_KERNEL:
            kernel = _Kernel.from_address(address)
            self.activities.append(Activity(
                "kernel", demangled(kernel.name or b""), *self._when(kernel), tuple(kernel.grid), tuple(kernel.block),
                kernel.static_shared + kernel.dynamic_shared))
        elif kind in (MEMCPY, MEMSET):
            moved = _Transfer.from_address(address)
            name = "copy" if kind == MEMCPY else "fill"
            self.activities.append(Activity(name, name, *self._when(moved), nbytes=moved.bytes))

    def _when(self, record: _Kernel | _Transfer) -> tuple[float, float]:
        """Start and length in us; the first start is 0."""
        if self._zero is None:
            self._zero = record.start
        return (record.start - self._zero) / 1e3, (record.end - record.start) / 1e3


@lru_cache(maxsize=1024)
def demangled(symbol: bytes) -> str:
    """A C++ symbol as people write it, through the C++ runtime; the symbol itself where that knows nothing of it."""
    runtime = _cxx_runtime()
    if runtime is None or not symbol.startswith(b"_Z"):
        return symbol.decode(errors="replace")
    status = ctypes.c_int(-1)
    text = runtime.__cxa_demangle(symbol, None, None, ctypes.byref(status))
    if not text:
        return symbol.decode(errors="replace")
    name = ctypes.string_at(text).decode(errors="replace")
    ctypes.CDLL(None).free(ctypes.c_void_p(text))
    return name


@lru_cache(maxsize=1)
def _cxx_runtime() -> Any:
    with suppress(OSError):
        library = ctypes.CDLL("libstdc++.so.6")
        library.__cxa_demangle.restype = ctypes.c_void_p
        library.__cxa_demangle.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
        return library
    return None


@lru_cache(maxsize=1)
def _recorder() -> _Recorder:
    reason = "no libcupti was found: install the CUDA toolkit, or the wheel nvidia-cuda-cupti"
    for path in cupti_candidates():
        try:
            return _Recorder(ctypes.CDLL(path))
        except OSError as error:
            reason = f"{path} cannot be loaded: {error}"
    raise CuptiMissing(reason)
