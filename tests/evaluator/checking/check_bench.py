"""What the tests of checks share: a card, and looking up a verdict."""

from __future__ import annotations

from evaluator.checking.types import CheckReport, Verdict
from evaluator.types import DeviceSpec

H200 = DeviceSpec(
    name="NVIDIA H200", compute_capability=(9, 0), sm_count=132, sm_clock_hz=1.98e9, dram_bytes_per_s=4.8e12,
    fp32_flops_per_s=67e12, l2_bytes=50 << 20, l1_shared_bytes_per_sm=256 << 10, shared_bytes_per_sm=228 << 10,
    shared_bytes_per_block=227 << 10,
)


def verdict(report: CheckReport, name: str) -> Verdict | None:
    """The verdict on a property, or None."""
    return next((v for v in report.verdicts if v.property == name), None)
