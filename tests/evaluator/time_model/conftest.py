"""The time model on a small kernel, as a fixture."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.model.measured import H200
from evaluator.simulator.interpreter import Buffer
from evaluator.simulator.time_model import Estimate, estimate
from evaluator.types import DeviceSpec
from tests.evaluator.time_model.small_kernels import built

Model = Callable[..., Estimate]


@pytest.fixture
def model() -> Model:
    """model(source, grid, block, arguments): arrays are passed as pointers, integers as 32-bit."""

    def run(source: str, grid, block, arguments, *, device: DeviceSpec = H200, dynamic_shared: int = 0,
            cold: bool = True) -> Estimate:
        module, resources = built(source, device.arch)
        packed, buffers = b"", []
        for i, value in enumerate(arguments):
            is_array = isinstance(value, np.ndarray)
            item = struct.pack("Q", value.ctypes.data) if is_array else struct.pack("i", value)
            packed += b"\0" * (-len(packed) % len(item)) + item
            if is_array:
                buffers.append(Buffer(value.ctypes.data, value.nbytes, f"a{i}", True))
        return estimate(module, resources.kernel, resources, grid, block, packed, buffers, device=device,
                        dynamic_shared=dynamic_shared, cold=cold)

    return run
