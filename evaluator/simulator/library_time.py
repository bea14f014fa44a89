"""The time of library operators (cuBLAS, cuDNN, ATen), modelled from what they compute and move.

Their kernels cannot be executed here, so this is a bound with an efficiency, the median of what an H200 reached in the
operators of KernelBench level 1 (benchmarks/results/h200/kernelbench.json, strict fp32 and TF32). On those problems, to which
it was fitted, the median error in strict fp32 is 1.02x for products (one in ten beyond 1.3x, worst 1.9x) and 1.19x for
convolutions (one in ten beyond 2.3x, worst 7.3x: which algorithm cuDNN takes for a shape is not foreseen); in TF32 1.12x and
1.32x, worst 8.4x and 6.8x (tests/evaluator/standin/test_torch_library.py). A solution that keeps the same calls as its parent
is compared with it rightly all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from evaluator.types import DeviceSpec

LAUNCH_US = 2.2
"""Latency of a launch, as for the solution's own kernels (time_model)."""
STREAMING = 0.85
"""Part of a copy's bandwidth that element-wise operators reach."""


class Efficiency(NamedTuple):
    """Parts of the peak rates: fp32 FMA, TF32 tensor core, and of a copy's bandwidth."""

    fp32: float
    tf32: float
    bytes: float = STREAMING


PRODUCT = Efficiency(0.75, 0.75)
KINDS: Mapping[str, Efficiency] = {
    "conv1d": Efficiency(0.55, 0.14), "conv2d": Efficiency(0.34, 0.24), "conv3d": Efficiency(0.21, 0.03),
    "conv_transpose1d": Efficiency(0.30, 0.10), "conv_transpose2d": Efficiency(0.22, 0.21),
    "conv_transpose3d": Efficiency(0.10, 0.04),
}
"""By `lint/cost.py`'s names of convolutions; every other operator that torch counts is a product."""
GROUPED = Efficiency(0.03, 0.004, 0.2)
"""Depthwise and grouped convolutions: bound by neither, as measured."""


def library_time_us(operators: Mapping[str, int], moved: int, device: DeviceSpec, tf32: bool) -> float:
    """Microseconds of one call: FLOPs by operator, bytes of its inputs and outputs; `tf32`: it may use tensor cores."""
    bandwidth = device.measured_dram_bytes_per_s or device.dram_bytes_per_s
    computing, streaming = 0.0, STREAMING
    for operator, flops in operators.items():
        reached = KINDS.get(operator, GROUPED if "conv" in operator else PRODUCT)
        rates = [reached.fp32 * device.fp32_flops_per_s]
        if tf32 and device.tf32_flops_per_s:
            rates.append(reached.tf32 * device.tf32_flops_per_s)
        computing += flops / max(rates)
        streaming = min(streaming, reached.bytes)
    return LAUNCH_US + 1e6 * max(computing, moved / (streaming * bandwidth))
