"""The examples' starting and final solutions, optimised without a GPU, timed in turns on the card beside their modelled times.

`python -m benchmarks.h200 solutions` writes `results/h200/solutions.json` and docs/h200.md; with `render` only the page.
The solutions are those under `results/solutions/`, made by `make examples`. They run unchanged with real cupy and are verified
by the evaluator's own oracle before and while they are timed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.examples import EXAMPLES, RESULTS, ROOT
from benchmarks.h200 import provenance
from evaluator import pool
from evaluator.baselines import START, speedup
from evaluator.types import UNPROFILED, DeviceSpec, Evaluation, Request, TimeEstimate
from kernelskill.facts.device import detect_device
from kernelskill.memory.store import solution_digest
from kernelskill.tasks import load_task

RECORD = provenance.RESULTS / "solutions.json"
PAGE = ROOT / "docs" / "h200.md"
COMMAND = "python -m benchmarks.h200 solutions"


def solution(name: str, label: str) -> Path:
    """`start` or `best` solution of an example."""
    return RESULTS / "solutions" / name / f"{label}.py"


def measure(name: str, device: DeviceSpec) -> dict[str, Any]:
    """The final solution verified, timed, and timed again in turns with the start."""
    request = Request(
        task=load_task(ROOT / "examples" / name).spec, solution=str(solution(name, "best")), mode="cuda", device=device,
        start=str(solution(name, "start")), baselines=(START,), timeout_s=120,
        worth_us=UNPROFILED)
    return row_of(name, pool.evaluate(request))


def row_of(name: str, evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation as a row of the record; times in µs."""
    row: dict[str, Any] = {
        "status": evaluation.status.value, "message": evaluation.message, "checks": evaluation.checks,
        "solutions": {label: solution_digest(solution(name, label).read_text()) for label in ("start", "best")},
        "precision_class": evaluation.precision_class, "alone": shown(evaluation.time),
        "graph_replay": shown(evaluation.graph_time),
        "stage_seconds": evaluation.stage_seconds,
        "states": [state.model_dump(mode="json", exclude={"uuid", "name"}) for state in evaluation.gpu_states],
    }
    for baseline in evaluation.baselines:
        found = speedup(baseline)
        row |= {"start": shown(baseline.time), "best": shown(baseline.solution_time), "start_reason": baseline.reason,
                "start_precision_class": baseline.precision_class, "speedup": list(found) if found else None}
    return row


def shown(estimate: TimeEstimate | None) -> dict[str, Any] | None:
    """A time with its interval."""
    kept = {"time_us", "low_us", "high_us", "samples", "provenance"}
    return None if estimate is None else estimate.model_dump(mode="json", include=kept)


def page(result: dict[str, Any]) -> str:
    """docs/h200.md."""
    where = result["provenance"]
    before, after = (where[f"state_{when}"] for when in ("before", "after"))
    lines = [
        "# The examples on a real GPU",
        "",
        f"Written by `{COMMAND} render` from `benchmarks/results/h200/solutions.json`: {where['device']}, driver "
        f"{where['driver']}, measured {where['date']} with `{where['command']}`; "
        + ", ".join(f"{name} {version}" for name, version in where["versions"].items())
        + f". SM clock, temperature and power: {_state(before)} before, {_state(after)} after.",
        "",
        "The solutions were optimised without a GPU (`make examples`) and run here unchanged. Start and best took turns; times "
        "are medians, in brackets their 95 % intervals (`docs/timing.md`). Some timed calls of each were compared with the "
        "reference.",
        "",
        "| example | start measured | modelled | best measured | modelled | speedup measured | modelled | precision |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, row in result["examples"].items():
        ratio, low, high = row["speedup"]
        modelled = row["modelled_us"]
        lines.append(
            f"| {name} | {_spread(row['start'])} | {modelled['start']:.0f} µs | {_spread(row['best'])} | "
            f"{modelled['best']:.0f} µs | {ratio:.2f}× ({low:.2f}–{high:.2f}) | {modelled['start'] / modelled['best']:.1f}× | {row['precision_class']} |")
    return "\n".join(lines) + "\n"


def main(argv: list[str]) -> int:
    """Measures, unless told to render only; writes the record and the page."""
    parser = argparse.ArgumentParser(prog=COMMAND)
    parser.add_argument("action", nargs="?", choices=["measure", "render"], default="measure")
    parser.add_argument("--out", type=Path, default=provenance.RESULTS)
    options = parser.parse_args(argv)
    if options.action == "measure" and not _measured(options.out):
        return 1
    if options.out == provenance.RESULTS:
        PAGE.write_text(page(json.loads(RECORD.read_text())))
    return 0


def _measured(folder: Path) -> bool:
    device = detect_device()
    if device is None:
        print("no NVIDIA GPU here: this measurement needs one")
        return False
    record = provenance.provenance(COMMAND)
    modelled = json.loads((RESULTS / "examples_sim.json").read_text())["examples"]
    rows = {}
    for name in EXAMPLES:
        row = rows[name] = measure(name, device)
        row["modelled_us"] = {"start": modelled[name]["start_time_us"], "best": modelled[name]["best_time_us"]}
        print(name, row["status"], row.get("speedup"), row["message"][:160], flush=True)
        provenance.write("solutions", record, {"examples": rows}, folder)
    return True


def _spread(row: dict[str, Any]) -> str:
    return f"{row['time_us']:.1f} µs ({row['low_us']:.1f}–{row['high_us']:.1f})"


def _state(state: dict[str, Any]) -> str:
    return f"{state.get('sm_clock_mhz')} MHz, {state.get('temperature_c')} °C, {state.get('power_w')} W"
