"""`cupy.cuda`: one device, streams that run at once, events that cannot time."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from evaluator.simulator.standin.memory import HostMemory, MemoryPointer
from evaluator.simulator.standin.state import registry, session

NO_TIMING = ("a simulated device has no clock: events cannot time anything here. Leave timing to the evaluator, which "
             "models the time of every launch")


class _Scope:
    """A device or stream used in a `with` statement."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def use(self) -> Any:
        """Makes it current: there is only one."""
        return self

    def synchronize(self) -> None:
        """Returns at once: every launch is complete when it returns."""


class Device(_Scope):
    """The simulated device, id 0."""

    def __init__(self, device: Any = 0) -> None:
        self.id = int(device)
        if self.id != 0:
            raise RuntimeError(f"cudaErrorInvalidDevice: invalid device ordinal {self.id}; one device is simulated")

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    @property
    def compute_capability(self) -> str:
        """Two digits, as CuPy writes it: "90"."""
        return session().device.arch.removeprefix("sm_")

    @property
    def attributes(self) -> dict[str, int]:
        """CUDA device attributes by CuPy's names."""
        device = session().device
        return {"MultiProcessorCount": device.sm_count, "WarpSize": 32, "MaxThreadsPerBlock": 1024,
                "MaxThreadsPerMultiProcessor": device.max_threads_per_sm, "MaxRegistersPerBlock": device.registers_per_sm,
                "MaxRegistersPerMultiprocessor": device.registers_per_sm, "MaxSharedMemoryPerBlock": 48 * 1024,
                "MaxSharedMemoryPerBlockOptin": device.shared_bytes_per_block, "L2CacheSize": device.l2_bytes,
                "MaxSharedMemoryPerMultiprocessor": device.shared_bytes_per_sm, "ClockRate": int(device.sm_clock_hz / 1000),
                "ComputeCapabilityMajor": device.compute_capability[0], "MaxBlocksPerMultiprocessor": device.max_blocks_per_sm,
                "ComputeCapabilityMinor": device.compute_capability[1], "MaxGridDimX": 2**31 - 1, "MaxGridDimY": 65535,
                "MaxGridDimZ": 65535, "MaxBlockDimX": 1024, "MaxBlockDimY": 1024, "MaxBlockDimZ": 64, "CooperativeLaunch": 1}


class Event:
    """Complete as soon as it is recorded."""

    done = True
    ptr = 0

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        return None

    def record(self, stream: Any = None) -> None:
        """Records at once."""

    def synchronize(self) -> None:
        """Returns at once."""


class Stream(_Scope):
    """A stream whose work is done when the call returns."""

    null: Stream
    ptd: Stream
    done = True
    device_id = 0

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: Any = None) -> None:
        self.ptr = 0

    def record(self, event: Event | None = None) -> Event:
        """A complete event."""
        return event or Event()

    def wait_event(self, event: Event) -> None:
        """Returns at once."""

    def add_callback(self, callback: Callable[..., Any], arg: Any) -> None:
        """Calls back at once."""
        callback(self, 0, arg)

    def launch_host_func(self, callback: Callable[[Any], Any], arg: Any) -> None:
        """Calls back at once."""
        callback(arg)


class ExternalStream(Stream):
    """Another library's stream, by its handle."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        super().__init__()
        self.ptr = ptr


Stream.null = Stream(null=True)
Stream.ptd = Stream(ptds=True)


class UnownedMemory(HostMemory):
    """Memory of another library, as `cupy.cuda.UnownedMemory(ptr, size, owner)`; the owner is kept alive."""

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        super().__init__(ptr, size, owner)
        if registry.find(ptr) is None:
            session().report_call("argument_mismatch", f"UnownedMemory: address {ptr:#x} belongs to no live array or tensor")


class MemoryPool:
    """The default pool; the simulator allocates from the host."""

    def malloc(self, size: int) -> MemoryPointer:
        """Uninitialised bytes."""
        return alloc(size)

    def used_bytes(self) -> int:
        """Bytes of live allocations."""
        return sum(allocation.nbytes for allocation in registry.live())

    total_bytes = used_bytes

    def free_all_blocks(self, stream: Any = None) -> None:
        """Nothing is cached."""

    def free_bytes(self) -> int:
        """Nothing is cached."""
        return 0

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """No limit is enforced."""


def alloc(size: int) -> MemoryPointer:
    """Uninitialised bytes."""
    from evaluator.simulator.standin.arrays import new

    raw = new(size, "u1", fresh="empty")
    return MemoryPointer(HostMemory(raw.data.ptr, size, raw))


def get_current_stream(device_id: int = -1) -> Stream:
    """The null stream."""
    return Stream.null


def get_elapsed_time(start_event: Event, end_event: Event) -> NoReturn:
    """Raises RuntimeError: nothing here can be timed."""
    raise RuntimeError(NO_TIMING)


def is_available() -> bool:
    """True: a simulated device is."""
    return True


def device_properties(device: int = 0) -> dict[str, Any]:
    """As `cupy.cuda.runtime.getDeviceProperties`."""
    spec = session().device
    major, minor = spec.compute_capability
    return {"name": f"{spec.name} (simulated)".encode(), "major": major, "minor": minor,
            "multiProcessorCount": spec.sm_count, "warpSize": 32, "maxThreadsPerBlock": 1024, "sharedMemPerBlock": 48 * 1024,
            "sharedMemPerBlockOptin": spec.shared_bytes_per_block, "regsPerBlock": spec.registers_per_sm,
            "sharedMemPerMultiprocessor": spec.shared_bytes_per_sm, "l2CacheSize": spec.l2_bytes,
            "maxThreadsPerMultiProcessor": spec.max_threads_per_sm, "clockRate": int(spec.sm_clock_hz / 1000)}
