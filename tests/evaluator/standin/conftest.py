"""A session on a simulated H200, for tests that act as a solution would."""

from __future__ import annotations

import pytest

from evaluator.simulator import standin
from evaluator.types import DeviceSpec

H200 = DeviceSpec(
    name="NVIDIA H200", compute_capability=(9, 0), sm_count=132, sm_clock_hz=1.98e9, dram_bytes_per_s=4.8e12,
    fp32_flops_per_s=66.9e12, l2_bytes=50 << 20, l1_shared_bytes_per_sm=256 << 10, shared_bytes_per_sm=228 << 10,
    shared_bytes_per_block=227 << 10)


@pytest.fixture
def device():
    return H200


@pytest.fixture
def session():
    made = standin.Session(device=H200)
    standin.install(made)
    yield made
    standin.uninstall()


@pytest.fixture
def cupy(session):
    import cupy

    return cupy


@pytest.fixture
def torch(session):
    torch = pytest.importorskip("torch", reason="torch is not installed (pip install kernelskill[torch])")
    standin.install(session)
    return torch
