"""Measure the examples' starting and final solutions on a GPU, beside their modelled times.

`python -m benchmarks.gpu_examples measure` (needs a GPU) writes `results/h200/examples.json`; `... render` writes docs/h200.md
from it. The solutions are those under `results/solutions/`, made by `make examples` without a GPU; a measured one that has been
replaced since is kept in `results/h200/solutions/`. They run unchanged with real cupy and are verified by the evaluator's own
oracle against the reference before they are timed.
"""

from __future__ import annotations

import json
import platform
import shutil
import statistics
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.examples import EXAMPLES, RESULTS, ROOT
from evaluator import pool
from evaluator.types import DeviceSpec, Evaluation, Request
from kernelskill.memory.store import solution_digest
from kernelskill.tasks import load_task

RECORD = RESULTS / "h200" / "examples.json"
MEASURED = RESULTS / "h200" / "solutions"
"""Solutions of the record that `make examples` has since replaced."""
PAGE = ROOT / "docs" / "h200.md"
REPEATS = 3
SMI_QUERY = "name,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw"


def solution(name: str, label: str) -> Path:
    """`start` or `best` solution of an example, as it was measured."""
    measured = MEASURED / name / f"{label}.py"
    return measured if measured.exists() else RESULTS / "solutions" / name / f"{label}.py"


def evaluate(name: str, label: str, device: DeviceSpec) -> Evaluation:
    """Verify on the check sizes and time at the full size, in a process of its own."""
    spec = load_task(ROOT / "examples" / name).spec
    return pool.evaluate(Request(task=spec, solution=str(solution(name, label)), mode="cuda", device=device, timeout_s=120,
                                 timed_only=True))


def measure(name: str, label: str, device: DeviceSpec) -> dict[str, Any]:
    """Several whole evaluations: verdict of each, median of their medians, lowest and highest."""
    results = [evaluate(name, label, device) for _ in range(REPEATS)]
    row: dict[str, Any] = {
        "solution": solution_digest(solution(name, label).read_text()),
        "status": sorted({r.status.value for r in results}),
        "message": results[0].message,
        "checks": results[0].checks,
    }
    times = [r.time.time_us for r in results if r.time]
    if times:
        row |= {"time_us": statistics.median(times), "low_us": min(times), "high_us": max(times)}
    return row


def smi() -> str:
    """What nvidia-smi says of the card now."""
    call = ["nvidia-smi", f"--query-gpu={SMI_QUERY}", "--format=csv,noheader"]
    return subprocess.run(call, capture_output=True, text=True, check=False).stdout.strip()


def environment() -> dict[str, Any]:
    """Versions of the measurement."""
    import cupy

    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "cupy": cupy.__version__,
        "cuda_runtime": cupy.cuda.runtime.runtimeGetVersion(),
        "smi_query": SMI_QUERY,
        "smi_before": smi(),
    }


def record() -> None:
    """Measure all examples; write the record."""
    from kernelskill.facts.device import detect_device

    device = detect_device()
    if device is None:
        raise SystemExit("no NVIDIA GPU here: this measurement needs one")
    modelled = json.loads((RESULTS / "examples_sim.json").read_text())["examples"]
    shutil.rmtree(MEASURED, ignore_errors=True)
    result: dict[str, Any] = {
        "command": "python -m benchmarks.gpu_examples measure",
        "provenance": "cuda_event",
        "timing": f"median of {REPEATS} evaluations, each the median of its CUDA-event samples with the L2 cache flushed",
        "environment": environment(),
        "device": device.model_dump(mode="json"),
        "examples": {},
    }
    for name in EXAMPLES:
        measured = {label: measure(name, label, device) for label in ("start", "best")}
        times = {"start": modelled[name]["start_time_us"], "best": modelled[name]["best_time_us"]}
        result["examples"][name] = {"measured": measured, "modelled_us": times, "methods": modelled[name]["methods"]}
        print(name, {k: (v["status"], v.get("time_us"), v["message"][:160]) for k, v in measured.items()}, flush=True)
    result["environment"]["smi_after"] = smi()
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    RECORD.write_text(json.dumps(result, indent=1) + "\n")


def page(result: dict[str, Any]) -> str:
    """docs/h200.md."""
    where = result["environment"]
    lines = [
        "# The examples on a real H200",
        "",
        "Written by `python -m benchmarks.gpu_examples render` from `benchmarks/results/h200/examples.json`, measured "
        f"{where['date']} with `{result['command']}`: cupy {where['cupy']}, CUDA runtime {where['cuda_runtime']}, Python "
        f"{where['python']}; {where['smi_query']} = {where['smi_before']} before, {where['smi_after']} after. Times are the "
        f"{result['timing']}; in brackets the lowest and highest of the evaluations. Every solution was first verified against "
        "the reference on the same machine.",
        "",
        "The solutions were optimised without a GPU (`make examples`) and run here unchanged.",
        "",
        "| example | start measured | start modelled | best measured | best modelled | speedup measured | modelled |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, row in result["examples"].items():
        start, best, modelled = row["measured"]["start"], row["measured"]["best"], row["modelled_us"]
        lines.append(
            f"| {name} | {_spread(start)} | {modelled['start']:.0f} µs | {_spread(best)} | {modelled['best']:.0f} µs | "
            f"{start['time_us'] / best['time_us']:.1f}× | {modelled['start'] / modelled['best']:.1f}× |"
        )
    return "\n".join(lines) + "\n"


def _spread(row: dict[str, Any]) -> str:
    return f"{row['time_us']:.0f} µs ({row['low_us']:.0f}–{row['high_us']:.0f})"


def main(action: str) -> None:
    """`measure` or `render`."""
    if action == "measure":
        record()
    PAGE.write_text(page(json.loads(RECORD.read_text())))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "render")
