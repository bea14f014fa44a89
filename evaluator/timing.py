"""Measured time on a GPU: CUDA events around single calls, caches flushed in between; median with a bootstrap interval."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from evaluator.types import DeviceSpec, TimeEstimate

WARM_UP_CALLS = 10
SAMPLES = (20, 200)
BUDGET_SECONDS = 2.0
"""Samples are taken until this much time is spent, at least SAMPLES[0] and at most SAMPLES[1] of them."""
RESAMPLES = 2000


def time_solution(solution: Any, inputs: Mapping[str, Any], device: DeviceSpec) -> dict[str, Any]:
    """In the process that holds the solution: `samples_us`, the outputs' sizes, and the GPU's name.

    Two sets of buffers with different addresses take turns, so that an output cached by pointer is not what is timed.
    Twice the L2's size is written before every call, before the first event. The first sample after warm-up is dropped.
    """
    import cupy

    solution.set_inputs(inputs, "fresh")
    sets = [solution.live]
    solution.set_inputs(inputs, "fresh")
    sets.append(solution.live)
    for index in range(WARM_UP_CALLS):
        solution.live = sets[index % 2]
        result = solution.invoke()
    cupy.cuda.Device().synchronize()
    buffer = cupy.empty(2 * max(device.l2_bytes, 32 << 20), dtype=cupy.uint8)

    def flush(value: int) -> None:
        buffer.data.memset_async(value % 251, buffer.nbytes)

    flush_us = _flush_time(cupy, flush)
    samples: list[float] = []
    began = time.monotonic()
    while len(samples) <= SAMPLES[0] or (len(samples) < SAMPLES[1] and time.monotonic() - began < BUDGET_SECONDS):
        solution.live = sets[len(samples) % 2]
        samples.append(_timed_call(cupy, solution, lambda: flush(len(samples)), flush_us))
    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    return {"samples_us": samples[1:], "outputs": _sizes(result), "device": name}


def summarise(samples_us: Sequence[float], seed: int = 0) -> TimeEstimate:
    """Median and its 95 % bootstrap interval (percentile method, RESAMPLES resamples)."""
    from scipy import stats  # half a second to import

    data = np.asarray(samples_us, dtype=np.float64)
    interval = stats.bootstrap(
        (data,), np.median, n_resamples=RESAMPLES, confidence_level=0.95, method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return TimeEstimate(
        provenance="cuda_event", time_us=float(np.median(data)), low_us=float(interval.low), high_us=float(interval.high),
        samples=len(data),
    )


def _flush_time(cupy: Any, flush: Callable[[int], None]) -> float:
    """Microseconds on the host's clock from queueing a flush to its end; the longest of five."""
    longest = 0.0
    for value in range(5):
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        flush(value)
        cupy.cuda.Device().synchronize()
        longest = max(longest, 1e6 * (time.perf_counter() - began))
    return longest


def _timed_call(cupy: Any, solution: Any, flush: Callable[[], None], flush_us: float) -> float:
    """Microseconds on the device; the whole device is idle before and after, so work on other streams counts.

    The flush is still running while Python queues the call, so the events do not time Python.
    """
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    cupy.cuda.Device().synchronize()
    flush()
    begin.record()
    host_began = time.perf_counter()
    solution.invoke()
    end.record()
    cupy.cuda.Device().synchronize()
    host_us = 1e6 * (time.perf_counter() - host_began) - flush_us
    event_us = 1e3 * float(cupy.cuda.get_elapsed_time(begin, end))
    # Work that the default stream does not wait for ends after the end event: then the host's clock is the honest one.
    return host_us if host_us > 2 * event_us + 200 else event_us


def _sizes(result: Any) -> list[list[int]]:
    if isinstance(result, Mapping):
        return [size for value in result.values() for size in _sizes(value)]
    if isinstance(result, (tuple, list)):
        return [size for value in result for size in _sizes(value)]
    count = int(result.size) if isinstance(result.size, int) else int(result.numel())
    return [[count, int(result.nbytes)]]
