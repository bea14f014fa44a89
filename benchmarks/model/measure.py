"""Measures the table's kernels on a GPU with CuPy, and profiles them with Nsight Compute where `ncu` is found.

`python -m benchmarks.model.measure OUT.json [--only REGEX]` writes the form of `measured.json`. Times are CUDA-event times of
one launch: "cold" after 128 MiB were written (L2 holds none of the inputs and is full of dirty lines of another buffer), "warm"
back to back. A spinning kernel before the first event keeps host time out. Every variant's output is compared with that of
the first variant of its problem.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np

from benchmarks.model.measured import METRICS
from benchmarks.model.new_table import NEW
from benchmarks.model.problems import Problem, Variant
from benchmarks.model.table import VARIANTS, by_problem

FLUSH_BYTES = 128 << 20
STATIC_LIMIT = 48 << 10
"""Shared bytes of a block that need no permission."""
SPIN = r"""
extern "C" __global__ void spin(long long cycles) { long long t = clock64(); while (clock64() - t < cycles) {} }
"""


class Bench:
    """Compiled kernels, the L2 flush and the events."""

    def __init__(self) -> None:
        self.modules: dict[str, Any] = {}
        self.spin = cp.RawModule(code=SPIN).get_function("spin")
        self.flush = cp.empty(FLUSH_BYTES, np.uint8)

    def launcher(self, variant: Variant, arrays: dict[str, Any]) -> tuple[Any, Callable[[], None]]:
        """The CuPy function and a call that launches it."""
        if variant.family not in self.modules:
            include = Path("/usr/local/cuda/include")
            headers = (f"-I{include}", f"-I{include / 'cccl'}") if "mma.h" in variant.source else ()
            options = ("--std=c++17", *headers)
            self.modules[variant.family] = cp.RawModule(code=variant.source, options=options)
        function = self.modules[variant.family].get_function(variant.kernel)
        if variant.dynamic_shared > STATIC_LIMIT:
            function.max_dynamic_shared_size_bytes = variant.dynamic_shared
        sizes = variant.problem.sizes
        arguments = tuple(arrays[a] if a in arrays else np.int32(sizes[a]) for a in variant.arguments)
        return function, lambda: function(variant.grid, variant.block, arguments, shared_mem=variant.dynamic_shared)

    def times(self, launch: Callable[[], None], cold: bool, runs: int) -> list[float]:
        """Microseconds of `runs` launches after five unmeasured ones."""
        events = [(cp.cuda.Event(), cp.cuda.Event()) for _ in range(runs + 5)]
        for start, end in events:
            if cold:
                self.flush.data.memset_async(0, FLUSH_BYTES)
            self.spin((1,), (1,), (np.int64(40_000),))
            start.record()
            launch()
            end.record()
        events[-1][1].synchronize()
        return [cp.cuda.get_elapsed_time(start, end) * 1e3 for start, end in events[5:]]

    def heat(self, seconds: float = 0.5) -> None:
        """An idle GPU runs at a low clock: keeps it busy first."""
        end = time.time() + seconds
        while time.time() < end:
            for _ in range(50):
                self.flush.data.memset_async(0, FLUSH_BYTES)
            cp.cuda.Device().synchronize()


def reset(problem: Problem, arrays: dict[str, Any]) -> None:
    """Zeroes the outputs."""
    for name, array in problem.arrays.items():
        if array.fill == "zero":
            arrays[name][...] = 0


def outputs(problem: Problem, arrays: dict[str, Any]) -> Any:
    """The first output, copied."""
    return next(arrays[name] for name, array in problem.arrays.items() if array.fill == "zero").astype(np.float64)


def measure(bench: Bench, variant: Variant, arrays: dict[str, Any], expected: Any) -> tuple[dict[str, Any], Any]:
    """One variant's row, and its problem's expected output."""
    function, launch = bench.launcher(variant, arrays)
    reset(variant.problem, arrays)
    launch()
    got = outputs(variant.problem, arrays)
    expected = got if expected is None else expected
    error = float(cp.abs(got - expected).max() / cp.abs(expected).max())
    runs = int(min(60, max(20, 3e5 / min(bench.times(launch, False, 2)))))
    cold, warm = bench.times(launch, True, runs), bench.times(launch, False, runs)
    threads = int(np.prod(variant.block))
    resident = cp.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(function.kernel.ptr, threads, variant.dynamic_shared)
    p25, p50, p75 = np.percentile(cold, [25, 50, 75])
    row = {"cold_us": round(p50, 3), "cold_iqr_us": round(p75 - p25, 3), "warm_us": round(float(np.median(warm)), 3),
           "samples": runs, "blocks_per_sm": resident, "registers": function.num_regs, "error": error}
    print(f"{variant.kernel:24s} cold {p50:10.1f} us  warm {row['warm_us']:10.1f} us  error {error:.1e}"
          + ("  WRONG" if not error < 1e-3 else ""), flush=True)
    return row, expected


def launch_each(bench: Bench, variants: list[Variant]) -> None:
    """Launches every variant once between profiler marks, for ncu."""
    for problem, members in by_problem(variants):
        arrays = {name: cp.asarray(array) for name, array in problem.build().items()}
        for variant in members:
            _, launch = bench.launcher(variant, arrays)
            launch()
            reset(problem, arrays)
            cp.cuda.Device().synchronize()
            cp.cuda.runtime.profilerStart()
            launch()
            cp.cuda.Device().synchronize()
            cp.cuda.runtime.profilerStop()
        del arrays
        cp.get_default_memory_pool().free_all_blocks()


def profile(only: str, ncu: str, *options: str, seconds: float = 300) -> list[tuple[str, dict[str, float]]]:
    """(kernel, counter -> value) of every launch, in the table's order, from one run of this module under ncu."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "raw.csv"
        command = [ncu, "--profile-from-start", "off", "--clock-control", "none", "--csv", "--print-units", "base",
                   "--page", "raw", "--metrics", ",".join(METRICS), "--log-file", str(log),
                   sys.executable, "-m", "benchmarks.model.measure", "-", "--launch-only", "--only", only, *options]
        subprocess.run(command, timeout=seconds, check=False)
        lines = [line for line in log.read_text().splitlines() if line.startswith('"')]
    return [(row["Kernel Name"], {short: float(row[name].replace(",", "")) for name, short in METRICS.items() if row.get(name)})
            for row in csv.DictReader(lines) if row["ID"]]


def environment() -> dict[str, Any]:
    """Device and versions, for the record."""
    properties = cp.cuda.runtime.getDeviceProperties(0)
    query = ["nvidia-smi", "--query-gpu=driver_version,clocks.sm,clocks.mem", "--format=csv,noheader"]
    answer = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    driver, sm_clock, memory_clock = answer.strip().split(", ")
    return {"date": time.strftime("%Y-%m-%d"), "device": properties["name"].decode(), "driver": driver,
            "cuda_runtime": cp.cuda.runtime.runtimeGetVersion(), "nvrtc": ".".join(map(str, cp.cuda.nvrtc.getVersion())),
            "cupy": cp.__version__, "sm_clock": sm_clock, "memory_clock": memory_clock, "l2_flush_bytes": FLUSH_BYTES}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--launch-only", action="store_true", help="launch each kernel once (for ncu)")
    parser.add_argument("--new", action="store_true", help="the kernels of new_table.py")
    given = parser.parse_args()
    variants = [v for v in (NEW if given.new else VARIANTS) if re.search(given.only, v.kernel)]
    bench = Bench()
    if given.launch_only:
        launch_each(bench, variants)
        return
    bench.heat()
    rows: dict[str, Any] = {}
    for problem, members in by_problem(variants):
        arrays, expected = {name: cp.asarray(array) for name, array in problem.build().items()}, None
        for variant in members:
            rows[variant.kernel], expected = measure(bench, variant, arrays, expected)
        del arrays, expected
        cp.get_default_memory_pool().free_all_blocks()
    given.out.write_text(json.dumps({"environment": environment(), "kernels": rows}, indent=1))
    ncu = shutil.which("ncu")
    if ncu:
        for name, counters in profile(given.only, ncu):
            rows[name]["ncu"] = counters
        given.out.write_text(json.dumps({"environment": environment(), "kernels": rows}, indent=1))


if __name__ == "__main__":
    main()
