"""Kernels as text, NumPy arrays as global memory: what the simulator's tests launch with."""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluator.compile import compile_cuda
from evaluator.simulator.interpreter import Buffer, Module, RunResult, run

GUARD = 4096


@functools.cache
def module_of(source: str) -> Module:
    return Module(compile_cuda(source).ptx)


class Device:
    """Allocates guarded arrays and launches kernels with them."""

    def __init__(self) -> None:
        self.arrays: list[tuple[np.ndarray[Any, Any], str, bool]] = []
        self.storage: list[np.ndarray[Any, Any]] = []

    def array(self, values: Any, dtype: str | None = None, name: str = "", writable: bool = True) -> np.ndarray[Any, Any]:
        values = np.asarray(values, dtype)
        raw = np.zeros(values.nbytes + 2 * GUARD + 256, np.uint8)
        start = GUARD + (-(raw.ctypes.data + GUARD)) % 256
        view = raw[start:start + values.nbytes].view(values.dtype).reshape(values.shape)
        view[...] = values
        self.storage.append(raw)
        self.arrays.append((view, name or f"array {len(self.arrays)}", writable))
        return view

    def zeros(self, shape: Any, dtype: str = "f4", name: str = "") -> np.ndarray[Any, Any]:
        return self.array(np.zeros(shape, dtype), name=name)

    def launch(self, source: str, kernel: str, grid: Any, block: Any, args: Sequence[Any], **options: Any) -> RunResult:
        return self.launch_in(module_of(source), kernel, grid, block, args, **options)

    def launch_in(self, module: Module, kernel: str, grid: Any, block: Any, args: Sequence[Any], **options: Any) -> RunResult:
        packed = bytearray()
        for parameter, value in zip(module.parameters(kernel), args, strict=True):
            packed += bytes(parameter.offset - len(packed))
            packed += self.bytes_of(value)
            assert len(packed) == parameter.offset + parameter.size, (parameter, value)
        buffers = [Buffer(a.ctypes.data, a.nbytes, name, writable) for a, name, writable in self.arrays]
        as_size = lambda size: (size,) if isinstance(size, int) else size  # noqa: E731
        return run(module, kernel, as_size(grid), as_size(block), bytes(packed), buffers, **options)

    @staticmethod
    def bytes_of(value: Any) -> bytes:
        if isinstance(value, np.ndarray):
            return struct.pack("<Q", value.ctypes.data)
        if isinstance(value, bytes):
            return value
        if isinstance(value, np.generic):
            return value.tobytes()
        return struct.pack("<f" if isinstance(value, float) else "<i", value)

    def clean(self, *args: Any, **options: Any) -> RunResult:
        """Launches and insists on no finding at all."""
        result = self.launch(*args, **options)
        assert result.findings == [], result.findings
        return result


def line_of(source: str, marker: str) -> int:
    """1-based line of the only line that holds `marker`."""
    lines = [i for i, text in enumerate(source.splitlines(), 1) if marker in text]
    assert len(lines) == 1, (marker, lines)
    return lines[0]
