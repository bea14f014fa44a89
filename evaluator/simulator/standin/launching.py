"""One kernel launch: executed with every check (verify) or sampled and timed by the model (profile)."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from evaluator.conditions import APART
from evaluator.origins import with_origin
from evaluator.simulator import interpreter, time_model
from evaluator.simulator.standin import stores
from evaluator.simulator.standin.apart import run_apart
from evaluator.simulator.standin.limits import LaunchShape
from evaluator.simulator.standin.packing import Slot
from evaluator.simulator.standin.session import Place, SimulatedError
from evaluator.simulator.standin.signature import Signature
from evaluator.simulator.standin.staging import guarded
from evaluator.simulator.standin.state import registry, session
from evaluator.simulator.timed_pass import SampledBlockFailed
from evaluator.types import Finding, KernelResources, LaunchRecord


@dataclass(frozen=True)
class Launch:
    """Everything a launch needs, arguments packed and limits checked."""

    module: interpreter.Module
    symbol: str
    name: str
    """The name shown to people: a name expression or the symbol."""
    resources: KernelResources
    shape: LaunchShape
    packed: bytes
    code: str
    """The CUDA source."""
    slots: tuple[Slot, ...]
    signature: Signature | None


def launch(request: Launch) -> None:
    """Runs `request` in the session's mode. Raises SimulatedError on a fatal finding or an unsupported instruction."""
    place = session().caller()
    session().kernel_launches += 1
    try:
        _check_grid_wide(request)
        if session().mode == "verify":
            _verify(request, place)
        else:
            _profile(request, place)
    except interpreter.Unsupported as refusal:
        finding = Finding(kind="unsupported", message=refusal.message + _launched(place), kernel=request.name,
                          line=refusal.line, sizes=session().sizes)
        finding = with_origin(finding, request.code, session().solution_file)
        session().report(finding)
        raise SimulatedError(finding) from None


def _check_grid_wide(request: Launch) -> None:
    """A kernel that synchronises the grid stops itself unless the launch is cooperative: said in plain words."""
    if request.module.code(request.symbol).grid_wide and not request.shape.cooperative:
        session().report_call("launch_limit", "the kernel synchronises the whole grid (this_grid().sync()), "
                              "which needs a cooperative launch: RawModule(..., enable_cooperative_groups=True)",
                              kernel=request.name)


def _verify(request: Launch, place: Place | None) -> None:
    with guarded(request.packed) as (packed, replaced):
        def run(blocks: Sequence[int] | None) -> interpreter.RunResult:
            ran = interpreter.run(
                request.module, request.symbol, request.shape.grid, request.shape.block, packed,
                _buffers(request, packed, replaced), dynamic_shared=request.shape.dynamic_shared, checks=True,
                blocks=blocks, threads=session().threads, sm_count=session().device.sm_count,
                cooperative=request.shape.cooperative)
            session().warp_instructions += ran.counts.warp_instructions
            return ran

        count = math.prod(request.shape.grid)
        apart = session().block_order == APART and not request.shape.cooperative
        result = run_apart(run, count, registry.live()) if apart else run(_block_order(count))
    found = [_finding(raw, request, place) for raw in result.findings]
    for finding in found:
        session().report(finding)
    fatal = next((finding for finding in found if finding.severity == "error"), None)
    if fatal is not None:
        raise SimulatedError(fatal)


def _block_order(blocks: int) -> list[int] | None:
    """The session's order of blocks; None: as they are numbered."""
    order = session().block_order
    if order is None:
        return None
    indices = range(blocks)
    return list(reversed(indices)) if order < 0 else random.Random(order).sample(indices, blocks)


def _profile(request: Launch, place: Place | None) -> None:
    shape = request.shape
    if request.module.code(request.symbol).grid_wide:  # the model runs blocks one after another
        session().add_launch(LaunchRecord(kernel=request.name, grid=shape.grid, block=shape.block,
                                          dynamic_shared_bytes=shape.dynamic_shared), math.inf)
        return
    try:
        estimate = time_model.estimate(
            request.module, request.symbol, request.resources, shape.grid, shape.block, request.packed,
            _buffers(request, request.packed, ()), dynamic_shared=shape.dynamic_shared, device=session().device)
    except SampledBlockFailed as failed:
        finding = _finding(failed.finding, request, place)
        session().report(finding)
        raise SimulatedError(finding) from None
    session().add_launch(LaunchRecord(
        kernel=request.name, grid=shape.grid, block=shape.block, dynamic_shared_bytes=shape.dynamic_shared,
        counts=dict(estimate.counts), text=dict(estimate.text_facts), time_us=estimate.time_us,
        terms_us=dict(estimate.terms_us), sampled_blocks=estimate.sampled_blocks), _stored_bytes(request, estimate))


def _stored_bytes(request: Launch, estimate: time_model.Estimate) -> float:
    """An upper bound of what the launch stores: from the timed blocks, where that is suspiciously little from others too."""
    shape = request.shape
    bound = stores.modelled_bound(estimate.counts)
    pointed = (registry.find(struct.unpack_from("<Q", request.packed, slot.offset)[0]) for slot in request.slots
               if slot.size == 8)
    fresh = max((allocation.nbytes for allocation in pointed if allocation is not None and allocation.unwritten), default=0)
    if bound >= fresh or estimate.sampled_blocks >= math.prod(shape.grid):
        return bound
    return max(bound, stores.sampled_bound(request.module, request.symbol, shape.grid, shape.block, request.packed,
                                           _buffers(request, request.packed, ()), shape.dynamic_shared))


def _buffers(request: Launch, packed: bytes, replaced: Collection[int]) -> list[interpreter.Buffer]:
    """Every live allocation; those that an argument points into carry the parameter's name."""
    labels = {allocation.address: allocation.label for allocation in registry.live()}
    for index, slot in enumerate(request.slots):
        if slot.size == 8:
            allocation = registry.find(struct.unpack_from("<Q", packed, slot.offset)[0])
            if allocation is not None:
                labels[allocation.address] = f"{_parameter_name(request, index)} ({allocation.label})"
    return [interpreter.Buffer(a.address, a.nbytes, labels[a.address], a.writable)
            for a in registry.live() if a.address not in replaced and not a.module_global]


def _parameter_name(request: Launch, index: int) -> str:
    name = request.signature.parameters[index].name if request.signature else ""
    return f"`{name}`" if name else f"argument {index}"


def _finding(raw: interpreter.RawFinding, request: Launch, place: Place | None) -> Finding:
    finding = Finding(kind=raw.kind, message=raw.message + _launched(place), severity=raw.severity, kernel=request.name,
                      line=raw.line, block=raw.block, thread=raw.thread, sizes=session().sizes)
    return with_origin(finding, request.code, session().solution_file)


def _launched(place: Place | None) -> str:
    return f" (launched at {place})" if place else ""
