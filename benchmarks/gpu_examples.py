"""Measure the examples' starting and final solutions on a GPU: `python -m benchmarks.gpu_examples OUT.json`.

The solutions are those under `results/solutions/` (made by `make examples` without a GPU); they run unchanged with real cupy,
are verified against the reference with the evaluator's own oracle, and their measured times stand beside the modelled ones.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.examples import EXAMPLES, RESULTS, ROOT
from evaluator import pool
from evaluator.types import Evaluation, Request
from kernelskill.facts.device import detect_device
from kernelskill.tasks import load_task


def measure(name: str, label: str, device: Any) -> Evaluation:
    """Verify and time one solution at the example's full size."""
    task = load_task(ROOT / "examples" / name)
    solution = RESULTS / "solutions" / name / f"{label}.py"
    return pool.evaluate(Request(task=task.spec, solution=str(solution), mode="cuda", device=device, timeout_s=120))


def row(evaluation: Evaluation) -> dict[str, Any]:
    """What is recorded of one evaluation."""
    return {
        "status": evaluation.status.value,
        "message": evaluation.message,
        "checks": evaluation.checks,
        "time": evaluation.time.model_dump() if evaluation.time else None,
    }


def environment() -> dict[str, Any]:
    """Device, driver, clocks and versions of the measurement."""
    import cupy

    query = "name,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw"
    smi = subprocess.run(
        ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "nvidia_smi": {"query": query, "answer": smi.stdout.strip()},
        "cupy": cupy.__version__,
        "python": platform.python_version(),
        "runtime": cupy.cuda.runtime.runtimeGetVersion(),
    }


def main(out: Path) -> None:
    """Measure all examples; write JSON."""
    device = detect_device()
    if device is None:
        raise SystemExit("no NVIDIA GPU here: this measurement needs one")
    modelled = json.loads((RESULTS / "examples_sim.json").read_text())["examples"]
    result: dict[str, Any] = {
        "command": "python -m benchmarks.gpu_examples OUT.json",
        "provenance": "cuda_event",
        "environment": environment(),
        "device": device.model_dump(mode="json"),
        "examples": {},
    }
    for name in EXAMPLES:
        measured = {label: row(measure(name, label, device)) for label in ("start", "best")}
        result["examples"][name] = {
            "measured": measured,
            "modelled_us": {"start": modelled[name]["start_time_us"], "best": modelled[name]["best_time_us"]},
        }
        print(
            name,
            {k: (v["status"], v["time"] and round(v["time"]["time_us"], 1), v["message"][:200]) for k, v in measured.items()},
            flush=True,
        )
    out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
