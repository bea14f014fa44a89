"""Coordinate search for the constants marked *fitted*, in bounded time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.model.measured import H200, Measured
from benchmarks.model.modelled import compiled, pack
from benchmarks.model.problems import Variant
from benchmarks.model.table import by_problem
from evaluator.simulator.constants import H200_FITTED, Constants, Rates
from evaluator.simulator.interpreter import Buffer, Unsupported, prepare
from evaluator.simulator.time_model import Sample, combine, take_sample

FITTED = {
    "results_per_register": (1, 12), "warp_interval": (0, 40), "dram_queue_latency": (200, 800),
    "block_turnaround": (200, 900), "l1_line_latency": (0, 5), "l2_latency": (200, 320),
    "shared_latency": (22, 32), "barrier_latency": (5, 40),
    "l1_latency": (33, 60), "partial_store": (1, 4), "l2_bytes_per_sm_cycle": (16, 28), "dram_efficiency": (.85, .95),
    "launch_us": (1, 4), "bandwidth_norm": (3, 12), "term_norm": (1.3, 4), "page_miss": (.04, .2), "partial_write": (3, 7),
}
"""Constant -> range. All others are documented or measured."""
COMBINING = frozenset(("l2_bytes_per_sm_cycle", "dram_efficiency", "launch_us", "bandwidth_norm", "term_norm", "page_miss",
                       "partial_write"))
"""Constants that act after the timed pass (dram_efficiency: almost only), so that its samples can be used again."""
STEPS = (0.75, 0.9, 1.1, 1.35)


class Fit:
    """The search's state: problems' arrays are kept, so a set of families should fit into memory."""

    def __init__(self, variants: Sequence[Variant], measured: Mapping[str, Measured], budget_s: float) -> None:
        self.measured, self.deadline = measured, time.monotonic() + budget_s
        self.work: list[tuple[Variant, dict[str, NDArray[np.generic]]]] = []
        for problem, members in by_problem(list(variants)):
            arrays = problem.build()
            self.work += [(v, arrays) for v in members]

    def samples(self, constants: Constants) -> list[tuple[Variant, Sample]]:
        """Both passes of every kernel that can be simulated, at reduced cost."""
        rates, found = Rates(H200, constants), []
        for variant, arrays in self.work:
            module, resources = compiled(variant.source, H200.arch)
            buffers = [Buffer(a.ctypes.data, a.nbytes, name, True) for name, a in arrays.items()]
            try:
                launch = prepare(module, variant.kernel, variant.grid, variant.block, pack(variant, arrays), buffers,
                                 dynamic_shared=variant.dynamic_shared, checks=False)
            except Unsupported:
                continue
            found.append((variant, take_sample(launch, resources[variant.kernel], variant.dynamic_shared, rates, samples=6,
                                               generations=2)))
        return found

    def loss(self, constants: Constants, samples: Sequence[tuple[Variant, Sample]]) -> float:
        """Mean squared log ratio of modelled and measured times."""
        rates = Rates(H200, constants)
        logs = [math.log(combine(sample, compiled(variant.source, H200.arch)[1][variant.kernel], rates, cold=True).time_us
                         / self.measured[variant.kernel].cold_us) for variant, sample in samples]
        return sum(log**2 for log in logs) / len(logs)

    def search(self, start: Constants = H200_FITTED) -> tuple[Constants, float, float]:
        """(constants, loss before, loss after): one constant at a time, until nothing helps or the time is up."""
        best, samples = start, self.samples(start)
        first = lowest = self.loss(start, samples)
        improved = True
        while improved and time.monotonic() < self.deadline:
            improved = False
            for name, value in self._candidates(best):
                if time.monotonic() > self.deadline:
                    break
                candidate = replace(best, **{name: value})
                taken = samples if name in COMBINING else self.samples(candidate)
                loss = self.loss(candidate, taken)
                if loss < lowest * 0.999:
                    best, lowest, samples, improved = candidate, loss, taken, True
                    print(f"  {name} = {value:.4g}: {lowest:.5f}", flush=True)
        return best, first, lowest

    def _candidates(self, best: Constants) -> Iterator[tuple[str, float]]:
        for name, (low, high) in FITTED.items():
            for step in STEPS:
                value = min(high, max(low, getattr(best, name) * step))
                if value != getattr(best, name):
                    yield name, value
