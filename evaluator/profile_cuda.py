"""The profile stage on a GPU, beside the timed calls: what a call launches, when it runs, and its hardware counters.

In processes of their own (`attached.py`), so that no profiler is near the timed calls: `recorded_launches`,
`bracketed_call`. In the judge: `Profilers`. A tool that gives nothing is named with its reason; the
evaluation goes on without it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from evaluator import cupti, ncu
from evaluator.attached import Attached, ToolFailed
from evaluator.launches import Activity, LaunchLog, calls_between, timeline, with_times
from evaluator.oracle import Problem
from evaluator.statistics import compare
from evaluator.types import DeviceSpec, KernelProfile, LaunchRecord, Request, TimeEstimate, Timeline, Tool

PROFILED_CALLS = 7
"""Calls that CUPTI records; medians are taken over them."""
FLUSH_FACTOR = 8
"""The fill before each recorded call writes this many times the L2's size: long enough to queue a call of several kernels."""
RECORDER_SECONDS, COUNTERS_SECONDS = 120.0, 180.0
"""What the two processes may take, start to end."""
MOST_LAUNCHES, MOST_ACTIVITIES = 2000, 50_000
"""Launches of one call, and activities of all recorded calls, that are kept."""


def recorded_launches(solution: Any, inputs: Mapping[str, Any], log: LaunchLog, device: DeviceSpec) -> dict[str, Any]:
    """In the solution's process: the launches of one call, and the timeline where CUPTI can be used."""
    import cupy

    solution.set_inputs(inputs, "fresh")
    solution.invoke()
    log.launches.clear()
    log.open = True
    try:
        solution.invoke()
        cupy.cuda.Device().synchronize()
    finally:
        log.open = False
    own = [launch.model_dump(mode="json") for launch in log.launches[:MOST_LAUNCHES]]
    activities, missing = list[Activity](), ""
    try:
        activities = _traced_calls(cupy, solution, device)
    except cupti.CuptiMissing as reason:  # costs its facts, not the evaluation
        missing = str(reason)[:400]
    return {"launches": own, "activities": [asdict(activity) for activity in activities[:MOST_ACTIVITIES]], "missing": missing}


def _traced_calls(cupy: Any, solution: Any, device: DeviceSpec) -> list[Activity]:
    """Activities of some calls, each after a flush of the L2 that is long enough for the host to queue the call behind it."""
    buffer = cupy.empty(flush_bytes(device), dtype=cupy.uint8)
    with cupti.recording() as activities:
        for call in range(PROFILED_CALLS):
            buffer.data.memset_async(call, buffer.nbytes)
            solution.invoke()
            cupy.cuda.Device().synchronize()
    return activities


def flush_bytes(device: DeviceSpec) -> int:
    """Size of the fill before each recorded call."""
    return FLUSH_FACTOR * max(device.l2_bytes, 32 << 20)


def bracketed_call(solution: Any, inputs: Mapping[str, Any]) -> None:
    """In the process under a tool: one call after a warm-up, between the marks that tell the tool what to measure."""
    import cupy

    solution.set_inputs(inputs, "fresh")
    solution.invoke()
    cupy.cuda.Device().synchronize()
    cupy.cuda.profiler.start()
    try:
        solution.invoke()
        cupy.cuda.Device().synchronize()
    finally:
        cupy.cuda.profiler.stop()


def not_worth(request: Request, time: TimeEstimate) -> dict[Tool, str]:
    """Why a solution that took `time` is not looked into, for each tool that the request asks for; empty where it is."""
    found = None if request.rival is None else compare(request.rival, time)
    if request.timed_only:
        reason = "not used: only the time was asked for"
    elif found is not None and found.verdict != "faster":
        reason = f"not used: the solution is not faster than its parent ({found})"
    else:
        return {}
    asked: dict[Tool, bool] = {"ncu": bool(request.counters), "cupti": True, "compute-sanitizer": bool(request.sanitize)}
    return {tool: reason for tool, wanted in asked.items() if wanted}


class Profilers:
    """The processes in which a solution is profiled; a context manager that ends them.

    They start, and import what they need, while something else is done; `launches` and `counters` then have the GPU alone.
    """

    def __init__(self, request: Request, kernels: Sequence[str], deadline: float) -> None:
        now = time.monotonic()
        self._request, self._kernels = request, kernels
        self._recorder = Attached((), request, min(deadline, now + RECORDER_SECONDS))
        self._ncu: Attached | None = None
        self._no_ncu = "" if kernels else "the solution compiled no kernel of its own"
        try:
            wanted = bool(kernels and request.counters)
            self._ncu = ncu.start(request, kernels, min(deadline, now + COUNTERS_SECONDS)) if wanted else None
        except ToolFailed as failure:
            self._no_ncu = str(failure)

    def __enter__(self) -> Profilers:
        return self

    def __exit__(self, *_: object) -> None:
        for target in self._targets():
            target.close()

    def warm_up(self) -> None:
        """Imports the solution in every process; what fails here fails again, with its reason, where it counts."""
        def load(target: Attached) -> None:
            with suppress(ToolFailed):
                target.load()

        with ThreadPoolExecutor(2) as threads:
            list(threads.map(load, self._targets()))

    def launches(self, problem: Problem) -> tuple[tuple[LaunchRecord, ...], Timeline | None, str]:
        """The launches of one call, their timeline, and why there is no timeline."""
        try:
            self._recorder.prepare(problem)
            reply = self._recorder.ask("launches", dict(problem.inputs))
            own = [LaunchRecord.model_validate(launch) for launch in reply["launches"]]
            recorded = TypeAdapter(list[Activity]).validate_python(reply["activities"])
            missing = str(reply["missing"])[:500]
        except ToolFailed as failure:
            return (), None, str(failure)
        except (ValueError, KeyError, TypeError) as error:
            return (), None, f"the record of launches makes no sense: {error}"[:500]
        if not recorded and not missing:
            missing = "CUPTI recorded nothing: another tool may be using it"
        self._recorder.close()
        calls = calls_between(recorded, flush_bytes(self._request.device))
        return tuple(with_times(own, calls)), timeline(calls), missing

    def counters(self, problem: Problem) -> tuple[tuple[KernelProfile, ...], str]:
        """The counters of every kernel of the solution's own that was launched, or () and why there are none."""
        if self._ncu is None:
            return (), self._no_ncu
        try:
            return ncu.measure(self._ncu, problem), ""
        except ToolFailed as failure:
            if self._request.counter_set == "full" or not str(failure).startswith(ncu.SAID):
                return (), str(failure)
        # This version of the tool has other sections.
        request = self._request.model_copy(update={"counter_set": "full"})
        try:
            with ncu.start(request, self._kernels, self._ncu.deadline) as target:
                return ncu.measure(target, problem), ""
        except ToolFailed as failure:
            return (), str(failure)

    def _targets(self) -> list[Attached]:
        return [target for target in (self._recorder, self._ncu) if target is not None]
