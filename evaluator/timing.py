"""Timed calls on a GPU, inside the process that holds what is timed: a solution or a baseline, by the same code.

The judge asks for every single call (`judge_timing.py`): which set of input buffers, how far its pointers are shifted, and
what factor the data is multiplied by, so that no call sees an address or a value twice. It may ask for elements of the
last call's outputs afterwards; which call that will be is not known here.

One timed call: write the inputs, fill free memory with NaN, overwrite the L2 cache, wait for the device; occupy the whole
device for a moment (the gate), record an event, call, record an event, wait for the device. Behind the gate no stream can
start early, and while it is closed Python queues the call, so the events do not time Python. Work that is still running
after the last event is timed by the host's clock and added.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from evaluator.device_arrays import Arrays, CupyArrays, TorchArrays
from evaluator.failures import WrongForm
from evaluator.trees import Leaf, leaves, map_leaves
from evaluator.types import DeviceSpec

WARM_UP_CALLS = (3, 10)
WARM_UP_SECONDS = 1.0
"""At least and at most so many calls before the first timed one, the rest only while this time is not spent."""
SHIFT_BYTES = 64 << 10
"""Room that every input buffer has for shifted pointers."""
SPOILED_BLOCKS = 2
FLUSH_FACTOR, LEAST_FLUSH = 2, 64 << 20
"""The L2 cache is overwritten with this many times its size (bytes; at least)."""
GATE_NS = 300_000
"""How long the gate is closed: longer than Python needs to queue some tens of kernels, or to enter a compiled PyTorch model.
What takes it longer counts."""
SYNCHRONISE_US = 25.0
"""Waiting for an idle device takes less."""
GATE_THREADS = 1024


class Clock(Protocol):
    """Times one call."""

    def time(self, invoke: Callable[[], Any]) -> tuple[Any, float]:
        """The call's result and its microseconds on the device."""
        ...


class CudaClock:
    """CUDA events on the default stream, behind a flush of the L2 cache and a gate (see the module's text)."""

    def __init__(self, device: DeviceSpec) -> None:
        import cupy

        self._cupy: Any = cupy
        self._events, self._elapsed = cupy.cuda.Event, cupy.cuda.get_elapsed_time
        self._device = cupy.cuda.Device()
        self._buffer = cupy.empty(max(FLUSH_FACTOR * device.l2_bytes, LEAST_FLUSH), dtype=cupy.uint8)
        self._flushes = 0
        self._gate = cupy.ElementwiseKernel("int64 nanoseconds", "raw int8 out", GATE, "gate")
        threads = self._device.attributes["MaxThreadsPerMultiProcessor"] // GATE_THREADS * GATE_THREADS
        self._gate_size = max(threads, GATE_THREADS) * self._device.attributes["MultiProcessorCount"]
        self._gate_out = cupy.empty(self._gate_size, dtype=cupy.int8)
        self._close_gate()

    def time(self, invoke: Callable[[], Any]) -> tuple[Any, float]:
        """See `Clock`."""
        begin, end = self._events(), self._events()
        self._flushes += 1
        self._buffer.data.memset_async(self._flushes % 251, self._buffer.nbytes)
        self._device.synchronize()
        self._close_gate()
        begin.record()
        result = invoke()
        end.record()
        end.synchronize()
        finished = time.perf_counter()
        self._device.synchronize()
        later_us = 1e6 * (time.perf_counter() - finished)
        event_us = 1e3 * float(self._elapsed(begin, end))
        return result, event_us + (later_us if later_us > SYNCHRONISE_US else 0.0)

    def _close_gate(self) -> None:
        self._gate(GATE_NS, self._gate_out, size=self._gate_size, block_size=GATE_THREADS)


GATE = """
long long begin, now;
asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
do { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); } while (now - begin < nanoseconds);
if (now == 0) out[i] = 1;
"""
"""One element a thread, all threads resident at once: nothing else fits on the device until they are done."""


class TimedCalls:
    """Answers the judge's steps for one loaded solution."""

    def __init__(self, solution: Any, clock: Clock) -> None:
        self.solution, self.clock = solution, clock
        self.arrays: Arrays = TorchArrays(solution) if hasattr(solution, "torch") else CupyArrays(solution)
        self._inputs: Mapping[str, Any] = {}
        self._sources: dict[str, Any] = {}
        self._orders: dict[str, tuple[int, ...] | None] = {}
        self._blocks: list[dict[str, Any]] = []
        self._scaled: frozenset[str] = frozenset()
        self._sizes: list[int] = []
        self._result: Any = None
        self._graph: tuple[Callable[[], Any], Any] | None = None

    def handle(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The reply to one step: `prepare`, `sample`, `repeat`, `outputs` or `graph`. Raises what the solution raises."""
        step = message["step"]
        if step == "prepare":
            return self._prepare(message["data"], int(message["sets"]), frozenset(message["scaled"]))
        if step == "sample":
            return {"us": self._sample(int(message["set"]), int(message["shift"]), float(message["scale"]), message["graph"])}
        if step == "repeat":
            for _ in range(int(message["calls"])):
                self._result = self.solution.invoke()
            self.arrays.synchronize()
            return {}
        if step == "outputs":
            return self._outputs(int(message["seed"]), int(message["count"]))
        if step == "graph":
            return {"reason": self._capture()}
        raise WrongForm(f"unknown step {step!r}")

    def _prepare(self, inputs: Mapping[str, Any], sets: int, scaled: frozenset[str]) -> dict[str, Any]:
        """Uploads the inputs once, makes the sets of buffers, warms up. `scaled`: paths of inputs to multiply."""
        self._inputs, self._scaled = inputs, scaled
        arrays = {path: leaf for path, leaf in leaves(inputs, "") if isinstance(leaf, Leaf)}
        self._sources = {path: self.arrays.upload(leaf) for path, leaf in arrays.items()}
        self._orders = {path: leaf.order for path, leaf in arrays.items()}
        self._blocks = [
            {path: self.arrays.block(self.arrays.nbytes(source) + SHIFT_BYTES) for path, source in self._sources.items()}
            for _ in range(sets)
        ]
        began, calls = time.monotonic(), 0
        while calls < WARM_UP_CALLS[0] or (calls < WARM_UP_CALLS[1] and time.monotonic() - began < WARM_UP_SECONDS):
            self.solution.live = self._written(calls % sets, 0, 1.0)
            self._result = None
            self._result = self.solution.invoke()
            self.arrays.synchronize()
            calls += 1
        outputs = self._described()
        self._sizes = sorted({nbytes for _, _, nbytes in outputs if nbytes})
        return {"outputs": [[count, nbytes] for count, _, nbytes in outputs], "device": self.arrays.device_name()}

    def _sample(self, set_: int, shift: int, scale: float, graph: bool) -> float:
        if graph and self._graph is None:
            raise WrongForm("nothing was captured")
        set_, shift = (0, 0) if graph else (set_, shift)  # a graph keeps the addresses it was captured with
        self._result = None
        self.solution.live = self._written(set_, shift, scale)
        spoiled = [self.solution.spoil(size) for size in self._sizes for _ in range(SPOILED_BLOCKS)]
        del spoiled  # the call's own allocations get these blocks
        replay, outputs = self._graph if graph and self._graph else (self.solution.invoke, None)
        result, microseconds = self.clock.time(replay)
        self._result = outputs if graph else result
        return microseconds

    def _written(self, set_: int, shift: int, scale: float) -> dict[str, Any]:
        """The inputs in the buffers of a set, as the solution gets them."""
        scales = {path: scale if path in self._scaled else 1.0 for path in self._sources}
        made = iter([self.arrays.write(self._blocks[set_][path], shift, source, scales[path], self._orders[path])
                     for path, source in self._sources.items()])
        return {name: map_leaves(lambda leaf: next(made) if isinstance(leaf, Leaf) else leaf, value)
                for name, value in self._inputs.items()}

    def _outputs(self, seed: int, count: int) -> dict[str, Any]:
        """Elements of the last call's outputs at `positions` of the seed, with the outputs' full shapes."""
        shapes: list[list[int]] = []

        def picked(value: Any) -> Leaf:
            shapes.append([int(extent) for extent in value.shape])
            return self.arrays.elements(value, positions(seed, len(shapes) - 1, int(np.prod(shapes[-1])), count))

        data = _over_outputs(picked, self._result)
        return {"data": data, "shapes": shapes}

    def _described(self) -> list[tuple[int, list[int], int]]:
        """(elements, shape, bytes) of every output."""
        found: list[tuple[int, list[int], int]] = []

        def describe(value: Any) -> None:
            shape = [int(extent) for extent in value.shape]
            found.append((int(np.prod(shape)), shape, self.arrays.nbytes(value)))

        _over_outputs(describe, self._result)
        return found

    def _capture(self) -> str:
        """Captures one call on set 0 as a CUDA graph; "" or why that is not possible."""
        self._graph, self._result = None, None
        self.solution.live = self._written(0, 0, 1.0)
        try:
            self._graph = self.arrays.capture(self.solution.invoke)
            self._graph[0]()
            self.arrays.synchronize()
        except Exception as error:  # a solution that synchronises or allocates cannot be captured; that is no fault of it
            self._graph = None
            with suppress(Exception):
                self.arrays.synchronize()
            return f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
        return ""


def positions(seed: int, output: int, size: int, count: int) -> Any:
    """Flat indices of an output's elements to look at: all of a small output, else `count` drawn ones (int64)."""
    if size <= count:
        return np.arange(size, dtype=np.int64)
    return np.random.default_rng([seed, output]).integers(0, size, count, dtype=np.int64)


def scaled(leaf: Leaf, scale: float) -> Leaf:
    """What `write` puts on the device: every element times `scale`, rounded once to float32 or wider, then to the dtype."""
    if leaf.dtype in ("float32", "float64"):  # the factor is exact in float32, so a product in float32 is rounded once
        return Leaf(leaf.values * leaf.values.dtype.type(scale), leaf.dtype, leaf.source, order=leaf.order)
    from evaluator.trees import round_to

    product = (leaf.as_float64() * scale).astype(np.float32)
    return Leaf(round_to(product.astype(np.float64), leaf.dtype), leaf.dtype, leaf.source, order=leaf.order)


def _over_outputs(function: Callable[[Any], Any], result: Any) -> Any:
    return map_leaves(function, result)
