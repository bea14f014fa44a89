"""Modelled times beside measured ones on kernels that the model was not made with: predictions first, then the card.

`python -m benchmarks.h200 model --predict` needs no GPU: it models every kernel of `benchmarks/model/new_table.py` and every
solution that the template writer made on the way through the six examples, into `results/model_predictions.json`. On the
card `python -m benchmarks.h200 model [--budget N]` measures the same; `model.json` gets both times and the agreement:
kernels, then solutions, then Nsight Compute's counters of the kernels as far as the time goes, the record after each part. A
launch is timed by CUDA events with a cold L2, as `benchmarks/model/measure.py` does; a solution is timed as a whole call.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.examples import EXAMPLES, RESULTS, ROOT
from benchmarks.h200.provenance import commit, provenance, write
from benchmarks.model.generated import SIMULATED
from benchmarks.model.measured import H200
from benchmarks.model.new_table import NEW
from benchmarks.model.score import score
from benchmarks.model.table import by_problem

PART = "model"
PREDICTIONS = RESULTS / "model_predictions.json"
SECONDS = 110.0
LEAST_FOR_COUNTERS = 20.0
RUNS = (20, 60)
BUDGET_US = 3e5
GATE_CYCLES = 600_000
"""How long a spinning kernel holds the stream back while the host queues a whole call: 300 us."""
AGREES = 1e-3
"""Kernels of one problem may differ by this share of the largest output (sums in another order)."""


def key_of(problem: str, name: str) -> str:
    """One row's key in both records."""
    return f"{problem}/{name}"


def solutions() -> Iterator[tuple[str, Path]]:
    """(example, file) of every generated solution, each once, the start first."""
    for example in EXAMPLES:
        yield example, RESULTS / "solutions" / example / "start.py"
        yield from ((example, path) for path in sorted((SIMULATED / example).glob("*.py")))


def predict() -> None:
    """Models everything; what cannot be modelled is missing. Written as it grows, for a run that is cut off."""
    from benchmarks.model.modelled import model_all

    rows: dict[str, Any] = {}
    record = {"command": f"python -m benchmarks.h200 {PART} --predict", "commit": commit(), "device": H200.name,
              "provenance": "modelled", "predictions": rows}
    for made in model_all(NEW):
        rows[key_of(made.variant.problem.name, made.variant.kernel)] = {
            "us": round(made.estimate.time_us, 3), "limiter": made.estimate.limiter, "note": made.variant.note}
    for example, path in solutions():
        PREDICTIONS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        found = _predicted(example, path)
        if found:
            rows[key_of(example, path.stem)] = found
            print(example, path.stem, found, flush=True)
    PREDICTIONS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"{len(rows)} predictions: {PREDICTIONS}")


def _predicted(example: str, path: Path) -> dict[str, Any] | None:
    from evaluator import pool
    from evaluator.types import Request
    from kernelskill.tasks import load_task

    spec = load_task(ROOT / "examples" / example).spec
    made = pool.evaluate(Request(task=spec, solution=str(path), mode="sim", device=H200, timeout_s=300, stages=("profile",)))
    if made.time is None:
        print(f"{example} {path.name}: {made.status.value} {made.time_unavailable or made.message}")
        return None
    return {"us": round(made.time.time_us, 3), "limiter": made.time.limiter}


class Bench:
    """The card: `benchmarks.model.measure.Bench` with whole calls besides single launches."""

    def __init__(self) -> None:
        import cupy

        from benchmarks.model import measure

        self.cupy, self.measure = cupy, measure
        self.bench = measure.Bench()
        self.bench.heat()

    def kernels(self, until: float) -> dict[str, Any]:
        """Key -> row of every new kernel that was reached in time; one that fails says why."""
        rows: dict[str, Any] = {}
        for problem, members in by_problem(NEW):
            if time.monotonic() > until:
                break
            arrays, expected = {name: self.cupy.asarray(array) for name, array in problem.build().items()}, None
            for variant in members:
                try:
                    row, expected = self.measure.measure(self.bench, variant, arrays, expected)
                except Exception as error:  # the others stay
                    row = {"failed": f"{type(error).__name__}: {error}"[:300]}
                row["wrong"] = not row.get("error", np.inf) < AGREES
                rows[key_of(problem.name, variant.kernel)] = {"note": variant.note, **row}
            del arrays, expected
            self.cupy.get_default_memory_pool().free_all_blocks()
        return rows

    def solutions(self, until: float) -> dict[str, Any]:
        """Key -> row of every generated solution that was reached in time."""
        rows: dict[str, Any] = {}
        inputs: dict[str, Sequence[Any]] = {}
        expected: dict[str, Any] = {}
        for example, path in solutions():
            if time.monotonic() > until:
                break
            if example not in inputs:
                inputs = {example: [self.cupy.asarray(array) for array in example_inputs(example)]}
                expected.clear()
                self.cupy.get_default_memory_pool().free_all_blocks()
            try:
                row = self.solution(path, inputs[example], expected)
            except Exception as error:  # the others stay
                row = {"failed": f"{type(error).__name__}: {error}"[:300]}
            rows[key_of(example, path.stem)] = row
            print(example, path.stem, row, flush=True)
        return rows

    def solution(self, path: Path, inputs: Sequence[Any], expected: dict[str, Any]) -> dict[str, Any]:
        """One solution's times; its output is compared with that of the example's start."""
        run = load(path).run
        got = run(*inputs).astype(np.float64)
        reference = expected.setdefault("output", got)
        error = float(self.cupy.abs(got - reference).max() / self.cupy.abs(reference).max())
        del got
        few = self.times(run, inputs, 3)
        runs = int(min(RUNS[1], max(RUNS[0], BUDGET_US / min(few))))
        cold = self.times(run, inputs, runs)
        low, middle, high = np.percentile(cold, [25, 50, 75])
        return {"cold_us": round(float(middle), 3), "cold_iqr_us": round(float(high - low), 3), "samples": runs, "error": error,
                "wrong": not error < AGREES}

    def times(self, run: Any, inputs: Sequence[Any], runs: int) -> list[float]:
        """Microseconds of whole calls, cold; the host queues each behind a gate."""
        cupy, events = self.cupy, []
        for _ in range(runs + 3):
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            self.bench.flush.data.memset_async(0, self.measure.FLUSH_BYTES)
            self.bench.spin((1,), (1,), (np.int64(GATE_CYCLES),))
            start.record()
            run(*inputs)
            end.record()
            end.synchronize()
            events.append((start, end))
        return [cupy.cuda.get_elapsed_time(start, end) * 1e3 for start, end in events[3:]]


def example_inputs(example: str) -> list[Any]:
    """The example's own inputs at its full sizes, as NumPy arrays in the order of `run`."""
    from evaluator.native_module import load_reference
    from kernelskill.tasks import load_task

    spec = load_task(ROOT / "examples" / example).spec
    made = load_reference(spec.path).make_inputs(np.random.default_rng(spec.seed), **spec.sizes)
    return list(made.values())


def load(path: Path) -> Any:
    """The solution's module."""
    spec = importlib.util.spec_from_file_location(f"solution_{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def counters(seconds: float) -> dict[str, dict[str, float]]:
    """Nsight Compute's counters of the new kernels, key -> counter -> value; empty without the tool or the time."""
    from benchmarks.model import measure

    ncu = shutil.which("ncu")
    if not ncu or seconds < LEAST_FOR_COUNTERS:
        return {}
    try:
        found = measure.profile("", ncu, "--new", seconds=seconds)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"counters: {error}")
        return {}
    order = [(problem.name, variant.kernel) for problem, members in by_problem(NEW) for variant in members]
    if [kernel for kernel, _ in found] != [kernel for _, kernel in order]:
        print(f"counters: {len(found)} launches were profiled, not the table's {len(order)}")
        return {}
    return {key_of(*names): values for names, (_, values) in zip(order, found, strict=True)}


def compared(rows: Mapping[str, Any], predictions: Mapping[str, Any]) -> dict[str, Any]:
    """Each measured row beside its prediction."""
    both = {}
    for key, row in rows.items():
        predicted = predictions.get(key, {}).get("us")
        known = predicted and row.get("cold_us")
        both[key] = {**row, "predicted_us": predicted, "ratio": round(predicted / row["cold_us"], 3) if known else None}
    return both


def agreement(rows: Mapping[str, Any]) -> dict[str, Any]:
    """Ranking within each problem and the typical error, over rows that have both times."""
    known = {key: row for key, row in rows.items() if row.get("ratio") and not row.get("wrong")}
    groups: dict[str, list[str]] = {}
    for key in known:
        groups.setdefault(key.split("/")[0], []).append(key)
    if not known:
        return {}
    found = score(groups.values(), {key: row["predicted_us"] for key, row in known.items()},
                  {key: row["cold_us"] for key, row in known.items()})
    return {"rows": len(known), "pairs": found.pairs, "right": found.right, "hard_pairs": found.hard_pairs,
            "hard_right": found.hard_right, "error_factor": round(found.error_factor, 3), "worst": list(found.worst),
            "wrong": [list(pair) for pair in found.wrong],
            "median_ratio": round(statistics.median(row["ratio"] for row in known.values()), 3)}


def main(argv: list[str]) -> int:
    """Exit code 0; 1 where a measurement is asked for and there is no GPU."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.h200 {PART}", description=__doc__)
    parser.add_argument("--predict", action="store_true", help="model everything here; no GPU")
    parser.add_argument("--budget", type=float, default=SECONDS, help="start nothing new after so many seconds")
    parser.add_argument("--out", type=Path, help="write the record into this folder")
    options = parser.parse_args(argv)
    if options.predict:
        predict()
        return 0
    from kernelskill.facts.device import detect_device

    if detect_device() is None:
        print("no NVIDIA GPU here: this measurement needs one (--predict does not)")
        return 1
    began = time.monotonic()
    record = provenance(" ".join([f"python -m benchmarks.h200 {PART}", *argv]))
    predicted = json.loads(PREDICTIONS.read_text(encoding="utf-8"))
    result: dict[str, Any] = {"predicted_at": predicted["commit"]}
    bench, folder = Bench(), [options.out] if options.out else []
    for part, rows in (("kernels", bench.kernels), ("solutions", bench.solutions)):
        result[part] = compared(rows(began + options.budget), predicted["predictions"])
        result[f"{part}_agreement"] = agreement(result[part])
        write(PART, record, result, *folder)
        print(part, result[f"{part}_agreement"], f"{time.monotonic() - began:.0f} s", flush=True)
    for key, values in counters(began + options.budget - time.monotonic()).items():
        result["kernels"].get(key, {})["ncu"] = values
    print(write(PART, record, result, *folder))
    return 0
