"""The native passes of the time model (`csrc/timing.cpp`) from Python."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.simulator.build import library
from evaluator.simulator.costs import CostTable
from evaluator.simulator.interpreter import PreparedLaunch, RawFinding, decode_finding, finding_buffer
from evaluator.simulator.interpreter_findings import FindingRecord
from evaluator.simulator.sharing import USES, Sharing, analyse, choose_samples

NEIGHBOURS, LEVELS, MOST_SHARERS = 4, 2, 32
"""As in csrc/timing_sharing.h."""
LEAST_SAMPLES = 4


class SampledBlockFailed(Exception):
    """A sampled block met a fatal finding; no time can be modelled."""

    def __init__(self, finding: RawFinding) -> None:
        super().__init__(finding.message)
        self.finding = finding


@dataclass(frozen=True)
class TimedPass:
    """One multiprocessor's blocks in time."""

    ends: NDArray[np.float64]
    """When each timed block ended, ascending, in cycles."""
    totals: dict[str, float]
    """Sums over the timed blocks (csrc/timing_types.h)."""
    dram_granules: NDArray[np.float64]
    """Granules from DRAM by slot, of the timed blocks."""
    line_ns: NDArray[np.float64]
    """By slot: how long one block's atomics keep a 128-byte line busy, the worst line."""

    @property
    def blocks(self) -> int:
        """Blocks that were timed."""
        return len(self.ends)


@lru_cache(maxsize=1)
def field_names() -> dict[str, tuple[str, ...]]:
    """`parameters`, `totals`, `sums` -> names of their fields, all doubles, in the native order."""
    text = ctypes.create_string_buffer(4096)
    if library().timing_names(text, len(text)):
        raise RuntimeError("timing_names: buffer too small")
    rows = (line.split() for line in text.value.decode().splitlines())
    return {kind: tuple(names) for kind, *names in rows}


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def _failure(error: FindingRecord, launch: PreparedLaunch) -> SampledBlockFailed:
    return SampledBlockFailed(decode_finding(error, [(b.label, b.nbytes) for b in launch.buffers]))


def run_sharing(launch: PreparedLaunch, samples: int, budget: int, capacity: float, wave: int) -> Sharing:
    """Follows the memory of `samples` random blocks and their neighbours. Raises SampledBlockFailed."""
    chosen, slots = choose_samples(launch.grid, samples), len(launch.buffer_bytes) * USES
    fields = np.dtype([(name, "f8") for name in field_names()["sums"]])
    sums, sharers = np.zeros((slots, LEVELS), fields), np.zeros((slots, MOST_SHARERS))
    error = finding_buffer()
    done = library().timing_sharing(
        ctypes.byref(launch.record), _pointer(chosen), len(chosen), ctypes.c_uint64(budget), LEAST_SAMPLES, slots,
        _pointer(sums), _pointer(sharers), ctypes.byref(error))
    if done < 0:
        raise _failure(error, launch)
    return analyse(sums, sharers, launch.grid, launch.buffer_bytes, capacity, wave)


def run_timed(launch: PreparedLaunch, table: CostTable, blocks: NDArray[np.uint64], resident: int,
              parameters: Mapping[str, float], dram_share: NDArray[np.float64], budget: int) -> TimedPass:
    """Runs one multiprocessor's `blocks`, `resident` at once, two generations at least. Raises SampledBlockFailed."""
    values = np.array([parameters[name] for name in field_names()["parameters"]])
    totals, ends = np.zeros(len(field_names()["totals"])), np.zeros(len(blocks))
    share, granules, line_ns = dram_share.astype(np.float32), np.zeros(len(dram_share)), np.zeros(len(dram_share))
    error = finding_buffer()
    ended = library().timing_multiprocessor(
        ctypes.byref(launch.record), _pointer(blocks), len(blocks), resident, ctypes.c_uint64(budget),
        min(len(blocks), 2 * resident), _pointer(table.rows), _pointer(table.registers), _pointer(values), _pointer(share),
        len(share), _pointer(ends), _pointer(totals), _pointer(granules), _pointer(line_ns), ctypes.byref(error))
    if ended < 0:
        raise _failure(error, launch)
    named = dict(zip(field_names()["totals"], totals.tolist(), strict=True))
    return TimedPass(np.sort(ends[:ended]), named, granules, line_ns)
