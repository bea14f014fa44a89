"""Launch limits as the hardware has them: what a GPU refuses at launch is refused here, with the number that was exceeded.

Source: CUDA C++ Programming Guide, compute capabilities (block and grid extents, register allocation by warp).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from evaluator.simulator.occupancy import occupancy
from evaluator.types import DeviceSpec, KernelResources

MAX_BLOCK_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
DEFAULT_SHARED_BYTES = 48 * 1024
PORTABLE_CLUSTER = 8
"""Blocks of the largest cluster that every device with clusters supports."""
REGISTER_UNIT = 8
"""Registers a thread are allocated in eights, whole warps at a time."""
Extent = tuple[int, int, int]


@dataclass(frozen=True)
class LaunchShape:
    """What a launch asks for; bytes of dynamic shared memory, and the bytes the kernel has been permitted."""

    grid: Extent
    block: Extent
    dynamic_shared: int
    permitted_shared: int
    cluster: Extent = (1, 1, 1)
    """Blocks of a cluster that the kernel demands."""
    cooperative: bool = False
    """All blocks must run at the same time."""

    @property
    def threads(self) -> int:
        """Threads a block."""
        return self.block[0] * self.block[1] * self.block[2]


def refusal(shape: LaunchShape, kernel: KernelResources, bound: int | None, device: DeviceSpec) -> str:
    """Why the device would refuse the launch; empty if it would not. `bound`: the kernel's own `__launch_bounds__`."""
    return (_extents(shape, bound) or _registers(shape, kernel, device) or _shared(shape, kernel, device)
            or _cohort(shape, kernel, device))


def launch_bound(ptx: str, symbol: str) -> int | None:
    """Threads that `__launch_bounds__` permits (`.maxntid` of the entry), None without it."""
    entry = re.search(rf"\.entry\s+{re.escape(symbol)}\b[^{{]*", ptx)
    bound = re.search(r"\.(?:max|req)ntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", entry[0]) if entry else None
    return int(bound[1]) * int(bound[2] or 1) * int(bound[3] or 1) if bound else None


def cluster_extent(ptx: str, symbol: str) -> Extent:
    """Blocks of a cluster that `__cluster_dims__` demands (`.reqnctapercluster` of the entry); (1, 1, 1) without it."""
    entry = re.search(rf"\.entry\s+{re.escape(symbol)}\b[^{{]*", ptx)
    found = re.search(r"\.reqnctapercluster\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", entry[0]) if entry else None
    return (int(found[1]), int(found[2] or 1), int(found[3] or 1)) if found else (1, 1, 1)


def _cohort(shape: LaunchShape, kernel: KernelResources, device: DeviceSpec) -> str:
    size = math.prod(shape.cluster)
    if size > PORTABLE_CLUSTER:
        return f"a cluster of {shape.cluster} has {size} blocks; {PORTABLE_CLUSTER} are possible without a launch attribute"
    if any(blocks % part for blocks, part in zip(shape.grid, shape.cluster, strict=True)):
        return f"grid {shape.grid} is not a multiple of the cluster {shape.cluster}"
    if not shape.cooperative:
        return ""
    shared = kernel.static_shared_bytes + shape.dynamic_shared
    held = occupancy(device, shape.threads, kernel.registers, shared, math.prod(shape.grid)).blocks_per_sm * device.sm_count
    if math.prod(shape.grid) <= held:
        return ""
    return (f"a cooperative launch of {math.prod(shape.grid)} blocks: {device.name} holds {held} of them at a time, and all "
            "must run at once")


def _extents(shape: LaunchShape, bound: int | None) -> str:
    if any(n > limit for n, limit in zip(shape.block, MAX_BLOCK, strict=True)):
        return f"block {shape.block} exceeds {MAX_BLOCK}"
    if shape.threads > MAX_BLOCK_THREADS:
        return f"block {shape.block} has {shape.threads} threads; at most {MAX_BLOCK_THREADS} are possible"
    if any(n > limit for n, limit in zip(shape.grid, MAX_GRID, strict=True)):
        return f"grid {shape.grid} exceeds {MAX_GRID}; put the large extent into x"
    if bound is not None and shape.threads > bound:
        return f"block has {shape.threads} threads, but __launch_bounds__ permits {bound}"
    return ""


def _registers(shape: LaunchShape, kernel: KernelResources, device: DeviceSpec) -> str:
    warps = -(-shape.threads // 32)
    needed = -(-kernel.registers // REGISTER_UNIT) * REGISTER_UNIT * 32 * warps
    if needed <= device.registers_per_sm:
        return ""
    return (f"{shape.threads} threads x {kernel.registers} registers need {needed} registers; an SM has "
            f"{device.registers_per_sm}: use fewer threads or __launch_bounds__")


def _shared(shape: LaunchShape, kernel: KernelResources, device: DeviceSpec) -> str:
    total = kernel.static_shared_bytes + shape.dynamic_shared
    if total > device.shared_bytes_per_block:
        return (f"{total} bytes of shared memory a block (static {kernel.static_shared_bytes} + dynamic "
                f"{shape.dynamic_shared}); {device.name} has at most {device.shared_bytes_per_block}")
    if shape.dynamic_shared > shape.permitted_shared:
        return (f"shared_mem={shape.dynamic_shared} exceeds the permitted {shape.permitted_shared} bytes: set "
                "kernel.max_dynamic_shared_size_bytes before the launch")
    return ""
