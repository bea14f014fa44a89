"""Builds small kernels and their arrays."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from evaluator.compile import compile_cuda
from evaluator.resources import kernel_resources
from evaluator.simulator.interpreter import Module


@lru_cache(maxsize=32)
def built(source: str, arch: str):
    compiled = compile_cuda(source, arch=arch)
    return Module(compiled.ptx), kernel_resources(compiled)[0]


def aligned(count: int, dtype=np.float32, shift: int = 0) -> np.ndarray:
    """Zeros at a 512-byte boundary plus `shift` whole pages of them."""
    item = np.dtype(dtype).itemsize
    raw = np.zeros(count * item + 1024 + shift * 512, np.uint8)
    start = -raw.ctypes.data % 512 + shift * 512
    return raw[start : start + count * item].view(dtype)
