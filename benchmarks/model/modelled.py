"""Runs the time model on the table's kernels."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.model.measured import H200
from benchmarks.model.problems import Variant
from benchmarks.model.table import by_problem
from evaluator.compile import compile_cuda
from evaluator.resources import kernel_resources
from evaluator.simulator.constants import H200_FITTED, Constants
from evaluator.simulator.interpreter import Buffer, Module, Unsupported
from evaluator.simulator.time_model import Estimate, estimate
from evaluator.types import DeviceSpec, KernelResources


@dataclass(frozen=True)
class Modelled:
    """One kernel's estimate and what it cost."""

    variant: Variant
    estimate: Estimate
    seconds: float


@lru_cache(maxsize=64)
def compiled(source: str, arch: str) -> tuple[Module, dict[str, KernelResources]]:
    """The interpreter's module and each kernel's resources."""
    result = compile_cuda(source, arch=arch)
    return Module(result.ptx), {r.kernel: r for r in kernel_resources(result)}


def pack(variant: Variant, arrays: dict[str, NDArray[np.generic]]) -> bytes:
    """Kernel arguments: 8-byte pointers and 4-byte sizes, naturally aligned."""
    packed = b""
    for name in variant.arguments:
        value = struct.pack("Q", arrays[name].ctypes.data) if name in arrays else struct.pack("i", variant.problem.sizes[name])
        packed += b"\0" * (-len(packed) % len(value)) + value
    return packed


def model_one(variant: Variant, arrays: dict[str, NDArray[np.generic]], device: DeviceSpec = H200,
              constants: Constants = H200_FITTED) -> Modelled:
    """Raises `Unsupported`."""
    module, resources = compiled(variant.source, device.arch)
    buffers = [Buffer(array.ctypes.data, array.nbytes, name, True) for name, array in arrays.items()]
    arguments, start = pack(variant, arrays), time.process_time()
    made = estimate(module, variant.kernel, resources[variant.kernel], variant.grid, variant.block, arguments, buffers,
                    dynamic_shared=variant.dynamic_shared, device=device, constants=constants)
    return Modelled(variant, made, time.process_time() - start)


def model_all(variants: Iterable[Variant], device: DeviceSpec = H200, constants: Constants = H200_FITTED) -> Iterator[Modelled]:
    """Problem by problem, so that only one problem's arrays exist at a time; kernels that cannot be simulated are left out."""
    for problem, members in by_problem(list(variants)):
        arrays = problem.build()
        for variant in members:
            try:
                yield model_one(variant, arrays, device, constants)
            except Unsupported as refusal:
                print(f"{variant.kernel}: cannot be simulated: {refusal}")
