"""Coordinate search for the constants marked *fitted*, in bounded time."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.model.measured import H200, Measured
from benchmarks.model.modelled import compiled, pack
from benchmarks.model.problems import Variant
from benchmarks.model.table import by_problem
from evaluator.simulator.constants import H200_FITTED, Constants, Rates
from evaluator.simulator.interpreter import Buffer, Unsupported, prepare
from evaluator.simulator.time_model import combine, take_sample

FITTED = {
    "l1_latency": (33, 60), "l1_line_latency": (0, 5), "l2_latency": (200, 320), "dram_queue_latency": (200, 800), "shared_latency": (22, 32),
    "barrier_latency": (5, 40), "block_turnaround": (200, 900), "warp_interval": (0, 40),
    "instructions_per_register": (1, 12), "partial_store": (1, 4), "l2_bytes_per_sm_cycle": (16, 28), "dram_efficiency": (.85, .95),
    "launch_us": (1, 4), "bandwidth_norm": (3, 12), "term_norm": (1.3, 4),
}
"""Constant -> range. All others are documented or measured."""
COMBINING = ("partial_store", "l2_bytes_per_sm_cycle", "dram_efficiency", "launch_us", "bandwidth_norm", "term_norm")
"""Constants that act after the timed pass, so that its samples can be reused (`partial_store` acts in both)."""
STEPS = (0.8, 0.9, 1.1, 1.25)


class Fit:
    """The search's state: problems' arrays are kept, so a set of families should fit into memory."""

    def __init__(self, variants: Sequence[Variant], measured: Mapping[str, Measured], budget_s: float) -> None:
        self.measured, self.deadline = measured, time.monotonic() + budget_s
        self.work: list[tuple[Variant, dict[str, NDArray[np.generic]]]] = []
        for problem, members in by_problem(list(variants)):
            arrays = problem.build()
            self.work += [(v, arrays) for v in members]

    def loss(self, constants: Constants) -> float:
        """Mean squared log ratio of modelled and measured times."""
        rates, total, count = Rates(H200, constants), 0.0, 0
        for variant, arrays in self.work:
            module, resources = compiled(variant.source, H200.arch)
            buffers = [Buffer(a.ctypes.data, a.nbytes, name, True) for name, a in arrays.items()]
            try:
                launch = prepare(module, variant.kernel, variant.grid, variant.block, pack(variant, arrays), buffers,
                                 dynamic_shared=variant.dynamic_shared, checks=False)
                sample = take_sample(launch, resources[variant.kernel], variant.dynamic_shared, rates, samples=6, generations=2)
            except Unsupported:
                continue
            made = combine(sample, resources[variant.kernel], rates, cold=True)
            total += math.log(made.time_us / self.measured[variant.kernel].cold_us) ** 2
            count += 1
        return total / count

    def search(self, start: Constants = H200_FITTED) -> tuple[Constants, float, float]:
        """(constants, loss before, loss after): one constant at a time, until nothing helps or the time is up."""
        best, first = start, self.loss(start)
        lowest, improved = first, True
        while improved and time.monotonic() < self.deadline:
            improved = False
            for name, (low, high) in FITTED.items():
                for step in STEPS:
                    value = min(high, max(low, getattr(best, name) * step))
                    if time.monotonic() > self.deadline or value == getattr(best, name):
                        continue
                    candidate = replace(best, **{name: value})
                    loss = self.loss(candidate)
                    if loss < lowest * 0.999:
                        best, lowest, improved = candidate, loss, True
        return best, first, lowest
