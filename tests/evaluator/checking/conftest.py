"""Checks in the simulator, small enough for a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.check_quality.kernels import task
from evaluator.checking.checker import check_here
from evaluator.checking.types import CheckReport, CheckRequest
from evaluator.types import DeviceSpec, Request

H200 = DeviceSpec(
    name="NVIDIA H200", compute_capability=(9, 0), sm_count=132, sm_clock_hz=1.98e9, dram_bytes_per_s=4.8e12,
    fp32_flops_per_s=67e12, l2_bytes=50 << 20, l1_shared_bytes_per_sm=256 << 10, shared_bytes_per_sm=228 << 10,
    shared_bytes_per_block=227 << 10,
)


class Checks:
    """Writes a task of the quality proof and a solution into a folder, and checks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def request(self, name: str, source: str, **more) -> CheckRequest:
        path = self.folder / "solution.py"
        path.write_text(source)
        spec, seed = task(name, self.folder), more.pop("seed", 0)
        request = Request(task=spec, solution=str(path), device=H200, timeout_s=600, seed=seed)
        return CheckRequest(request=request, **{"examples": 3, "work_limit": 1200, **more})

    def check(self, name: str, source: str, **more) -> CheckReport:
        return check_here(self.request(name, source, **more))


@pytest.fixture
def checks(tmp_path: Path) -> Checks:
    return Checks(tmp_path)


def verdict(report: CheckReport, name: str):
    """The verdict on a property, or None."""
    return next((v for v in report.verdicts if v.property == name), None)
