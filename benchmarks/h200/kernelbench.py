"""References of all KernelBench problems on the card: eager and TF32 times, speed of light, null candidates at full size.

`python -m benchmarks.h200 kernelbench --kernelbench DIR` with a checkout of KernelBench. Rows are written as they come, so a
run that is cut off leaves what it has, and `--continue` adds the rest. `--nulls` tries the task lint's null candidates too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.h200.provenance import RESULTS, finished, provenance
from evaluator.kernelbench_module import load_module, module_constants
from evaluator.lint.cost import Cost, count_flops
from evaluator.lint.reference import TorchReference
from evaluator.lint.shipped import KERNELBENCH, examine
from evaluator.types import DeviceSpec

PART = "kernelbench"
SEED = 11
WARM_UP_CALLS, WARM_UP_SECONDS = 3, 0.03
SAMPLES, BUDGET_SECONDS = (7, 30), 0.15
FLUSH_BYTES = 256 << 20
LEVELS = (1, 2, 3)
PRECISIONS = {"eager": (False, True), "tf32": (True, True), "strict_fp32": (False, False)}
"""Whether matrix products and cuDNN may use TF32; `eager` is what torch does by default."""


def problems(folder: Path, levels: tuple[int, ...] = LEVELS) -> list[tuple[int, int, Path]]:
    """(level, id, file) of every problem, in order."""
    found = [
        (level, int(path.name.split("_")[0]), path)
        for level in levels for path in (folder / "KernelBench" / f"level{level}").glob("[0-9]*.py")
    ]
    return sorted(found)


def measure(path: Path, device: DeviceSpec, nulls: bool) -> dict[str, Any]:
    """One problem: sizes, FLOPs, times in µs by precision, speed of light, and the null candidates where asked for."""
    import torch

    reference = TorchReference(load_module(path), "cuda")
    row: dict[str, Any] = _timed(reference, device)
    if nulls:
        torch.cuda.empty_cache()
        sizes = module_constants(path.read_text(encoding="utf-8"))
        try:
            shipped = examine(reference, KERNELBENCH, sizes, full_size=True, device=device.name)
            row["shipped"] = shipped.model_dump(mode="json")
        except Exception as error:  # the times stay
            row["shipped_error"] = _reason(error)
    return row


def _timed(reference: TorchReference, device: DeviceSpec) -> dict[str, Any]:
    inputs = reference.inputs(SEED)
    outputs, counts = count_flops(lambda: reference.outputs(inputs))
    flops = sum(counts.values())
    cost = Cost(
        input_bytes=_bytes(inputs), parameter_bytes=reference.parameter_bytes, output_bytes=_bytes(outputs), flops=flops
    )
    del outputs
    row: dict[str, Any] = {**cost.model_dump(), "times": {}}
    row["sol_us"], row["sol_limiter"] = cost.speed_of_light_us(device)
    row["sol_tf32_us"], _ = cost.speed_of_light_us(device, device.tf32_flops_per_s)
    for name, flags in PRECISIONS.items():
        with _tf32(*flags):
            row["times"][name] = _time(lambda: _forward(reference, inputs))
    return row


@contextlib.contextmanager
def _tf32(matmul: bool, cudnn: bool) -> Iterator[None]:
    import torch

    backends = torch.backends
    before = backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32
    backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32 = matmul, cudnn
    try:
        yield
    finally:
        backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32 = before


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:300]}"


def _forward(reference: TorchReference, inputs: list[Any]) -> None:
    import torch

    with torch.no_grad():
        reference.model(*inputs)


def _time(call: Any) -> dict[str, Any]:
    """Median of single calls between CUDA events; a buffer larger than the L2 is written before each."""
    import torch

    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    began, calls = time.perf_counter(), 0
    while calls < WARM_UP_CALLS or (time.perf_counter() - began < WARM_UP_SECONDS and calls < 100):
        call()
        calls += 1
        torch.cuda.synchronize()
    samples: list[float] = []
    began = time.perf_counter()
    while len(samples) < SAMPLES[0] or (len(samples) < SAMPLES[1] and time.perf_counter() - began < BUDGET_SECONDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.fill_(len(samples) % 251)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        samples.append(1e3 * begin.elapsed_time(end))
    return {"us": round(statistics.median(samples), 2), "min_us": round(min(samples), 2), "samples": len(samples)}


def _bytes(arrays: list[Any]) -> int:
    return sum(int(array.nbytes) for array in arrays if hasattr(array, "nbytes"))


def run(out: Path, wanted: list[tuple[int, int, Path]], seconds: float, nulls: bool, rows: dict[str, Any]) -> None:
    """Measures what is not in `rows` yet, until the time is up; writes after every problem."""
    import torch

    from kernelskill.facts.device import detect_device, load_device

    began, device = time.monotonic(), detect_device() or load_device("h200")
    record = provenance(f"python -m benchmarks.h200 {PART} --kernelbench DIR" + (" --nulls" if nulls else ""))
    for level, number, path in wanted:
        key = f"{level}/{number}"
        if "times" in rows.get(key, {}):
            continue
        if time.monotonic() - began > seconds:
            print(f"time is up; go on with --continue ({len(rows)} rows so far)")
            break
        start = time.monotonic()
        try:
            row = measure(path, device, nulls)
        except Exception as error:  # one problem that fails is a row with its reason
            row = {"error": _reason(error)}
        torch.cuda.empty_cache()
        row = {"name": path.stem, **row, "wall_s": round(time.monotonic() - start, 2)}
        rows[key] = row
        print(f"{key:6} {row['wall_s']:6.2f} s  {_line(row)}", flush=True)
        write(out, record, rows)
    write(out, finished(record), rows)


def write(out: Path, record: dict[str, Any], rows: dict[str, Any]) -> None:
    """All rows so far, one a line."""
    ordered = sorted(rows.items(), key=lambda item: tuple(map(int, item[0].split("/"))))
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(row)}" for key, row in ordered)
    text = f'{{"provenance": {json.dumps(record)},\n"problems": {{\n{lines}\n}}}}\n'
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")


def _line(row: dict[str, Any]) -> str:
    if "error" in row:
        return str(row["error"])
    times = "  ".join(f"{name} {value['us']:.1f}" for name, value in row["times"].items())
    passed = [name for name, seen in row.get("shipped", {}).get("nulls", {}).items() if seen["passes"]]
    return f"{times}  sol {row['sol_us']:.1f} us ({row['sol_limiter']})  {' '.join(passed)}"


def main(argv: list[str]) -> int:
    """Exit code 0."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.h200 {PART}", description=__doc__)
    parser.add_argument("--kernelbench", type=Path, required=True)
    parser.add_argument("--ids", default="", help="level/id, comma separated; default: all")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--nulls", action="store_true")
    parser.add_argument("--continue", dest="resume", action="store_true", help="keep the rows that are there")
    parser.add_argument("--out", type=Path, default=RESULTS / f"{PART}.json")
    options = parser.parse_args(argv)
    wanted = problems(options.kernelbench)
    if options.ids:
        chosen = set(options.ids.split(","))
        wanted = [problem for problem in wanted if f"{problem[0]}/{problem[1]}" in chosen]
    before = RESULTS / f"{PART}.json"
    kept = json.loads(before.read_text())["problems"] if options.resume and before.exists() else {}
    run(options.out, wanted, options.seconds, options.nulls, kept)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
