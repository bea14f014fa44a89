"""What is read from NVML, and that nothing is an error where it is missing."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from evaluator.gpu_state import gpu_state, gpu_uuid, slowed
from evaluator.types import GpuState


class NVMLError(Exception):
    """As pynvml raises."""


def refused(*_):
    raise NVMLError("not permitted")


def nvml(**changes):
    """A driver with two GPUs, as the binding shows it."""
    asked = []
    base = {
        "NVMLError": NVMLError, "NVML_CLOCK_SM": 1, "NVML_CLOCK_MEM": 2, "NVML_TEMPERATURE_GPU": 0, "asked": asked,
        "nvmlInit": lambda: None, "nvmlShutdown": lambda: asked.append("shutdown"),
        "nvmlDeviceGetHandleByIndex": lambda index: asked.append(index) or f"gpu{index}",
        "nvmlDeviceGetHandleByUUID": lambda uuid: asked.append(uuid) or uuid,
        "nvmlDeviceGetName": lambda handle: b"NVIDIA H200", "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}",
        "nvmlSystemGetDriverVersion": lambda: "580.1", "nvmlDeviceGetClockInfo": lambda handle, kind: {1: 1980, 2: 3201}[kind],
        "nvmlDeviceGetMaxClockInfo": lambda handle, kind: 1980, "nvmlDeviceGetTemperature": lambda handle, kind: 41,
        "nvmlDeviceGetPowerUsage": lambda handle: 123456, "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 700000,
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=1 << 30),
        "nvmlDeviceGetCurrentClocksEventReasons": lambda handle: 0x1 | 0x4 | 0x40,
    }
    return SimpleNamespace(**{**base, **changes})


@pytest.fixture
def driver(monkeypatch):
    def install(**changes):
        binding = nvml(**changes)
        monkeypatch.setitem(sys.modules, "pynvml", binding)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        return binding
    return install


def test_everything_is_read_once_and_the_driver_released(driver):
    binding = driver()
    state = gpu_state()
    assert (state.name, state.uuid, state.sm_clock_mhz, state.memory_clock_mhz) == ("NVIDIA H200", "GPU-gpu0", 1980, 3201)
    assert (state.power_w, state.power_limit_w, state.temperature_c) == (123.456, 700.0, 41)
    assert state.throttle_reasons == ("power_cap", "hw_thermal")  # 0x1, idle, is no throttling
    assert binding.asked == [0, "shutdown"]


def test_what_is_withheld_is_none(driver):
    driver(nvmlDeviceGetPowerUsage=refused, nvmlDeviceGetCurrentClocksEventReasons=refused, nvmlDeviceGetMemoryInfo=refused)
    state = gpu_state()
    assert state.power_w is None and state.memory_used_bytes is None and state.throttle_reasons == ()
    assert state.temperature_c == 41


def test_the_older_name_of_the_reasons_works(driver):
    binding = driver(nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 0x20)
    del binding.nvmlDeviceGetCurrentClocksEventReasons
    assert gpu_state().throttle_reasons == ("sw_thermal",)


@pytest.mark.parametrize("visible,asked", [("1", 1), ("1,0", 1), ("GPU-abc", "GPU-abc"), ("", 0)])
def test_the_gpu_that_cuda_would_use(driver, monkeypatch, visible, asked):
    binding = driver()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpu_uuid()
    assert binding.asked[0] == asked


def test_no_driver_is_no_state(driver):
    driver(nvmlInit=refused)
    assert gpu_state() is None and gpu_uuid() == ""
    driver(nvmlDeviceGetHandleByIndex=refused)
    assert gpu_state() is None


def test_throttling_at_either_end_counts():
    cool, hot = GpuState(name="g"), GpuState(name="g", throttle_reasons=("power_cap",))
    assert slowed(cool, hot) == slowed(hot, cool) == ("power_cap",)
    assert slowed(cool, None) == ()
