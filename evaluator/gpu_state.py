"""The state of the GPU through NVML: clocks, temperature, power, throttle reasons, memory. It is read, never set."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from evaluator.types import GpuState

THROTTLE_REASONS = {
    0x4: "power_cap", 0x8: "hw_slowdown", 0x10: "sync_boost", 0x20: "sw_thermal", 0x40: "hw_thermal", 0x80: "hw_power_brake",
}
"""Bits of nvmlDeviceGetCurrentClocksEventReasons that slow a kernel (nvml.h, nvmlClocksEventReason*). Idle, application
clocks and display clocks are left out: they are the card's ordinary state."""


def gpu_state() -> GpuState | None:
    """What NVML says of the GPU that this process would use; None without NVML or GPU. What it withholds is None."""
    with _handle() as found:
        return None if found is None else _state(*found)


def gpu_uuid() -> str:
    """The GPU's UUID; "" where NVML cannot say."""
    state = gpu_state()
    return state.uuid if state else ""


def slowed(before: GpuState | None, after: GpuState | None) -> tuple[str, ...]:
    """The throttle reasons seen at either end of a measurement."""
    return tuple(sorted({reason for state in (before, after) if state for reason in state.throttle_reasons}))


@contextmanager
def _handle() -> Iterator[tuple[Any, Any] | None]:
    """(pynvml, handle of the first visible GPU)."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # not installed, no driver, or no permission: all the same here
        yield None
        return
    try:
        yield pynvml, _first_visible(pynvml)
    except pynvml.NVMLError:
        yield None
    finally:
        pynvml.nvmlShutdown()


def _first_visible(pynvml: Any) -> Any:
    """CUDA_VISIBLE_DEVICES names GPUs by index or UUID."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() or "0"
    if first.isdigit():
        return pynvml.nvmlDeviceGetHandleByIndex(int(first))
    return pynvml.nvmlDeviceGetHandleByUUID(first)


def _state(pynvml: Any, handle: Any) -> GpuState:
    def ask(call: Callable[[], Any]) -> Any:
        try:
            value = call()
        except (pynvml.NVMLError, AttributeError):  # not supported on this card, not permitted, or an older binding
            return None
        return value.decode() if isinstance(value, bytes) else value

    memory = ask(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
    power = ask(lambda: pynvml.nvmlDeviceGetPowerUsage(handle))
    limit = ask(lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle))
    return GpuState(
        name=ask(lambda: pynvml.nvmlDeviceGetName(handle)) or "",
        uuid=ask(lambda: pynvml.nvmlDeviceGetUUID(handle)) or "",
        driver=ask(pynvml.nvmlSystemGetDriverVersion) or "",
        sm_clock_mhz=ask(lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
        max_sm_clock_mhz=ask(lambda: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)),
        memory_clock_mhz=ask(lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
        temperature_c=ask(lambda: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
        power_w=None if power is None else power / 1000,
        power_limit_w=None if limit is None else limit / 1000,
        memory_used_bytes=None if memory is None else int(memory.used),
        throttle_reasons=_reasons(ask(lambda: _reason_bits(pynvml, handle))),
    )


def _reason_bits(pynvml: Any, handle: Any) -> int:
    query = getattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", None)  # the older name is gone from new bindings
    return int(query(handle) if query else pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


def _reasons(bits: int | None) -> tuple[str, ...]:
    return tuple(name for bit, name in THROTTLE_REASONS.items() if bits is not None and bits & bit)
