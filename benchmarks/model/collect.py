"""Takes solutions that a GPU measured into the held-out set: `results/h200/generated.json` and one file a solution beside it.

`python -m benchmarks.model.collect RUN_FOLDER...` reads folders that `kernelskill optimize --device cuda --out RUN_FOLDER`
made; `--examples` reads the simulator's solutions in the record of `python -m benchmarks.h200 examples`, `--sizes` the plus-one
kernel's times at several sizes from `python -m benchmarks.h200 timing`. What is there already is replaced by what is newer.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.examples import ROOT
from benchmarks.h200 import timing
from benchmarks.h200.example_record import RECORD, solution
from benchmarks.h200.provenance import RESULTS
from benchmarks.model.generated import FILE, FOLDER, PLUS_ONE, Row, key_of, source_of
from benchmarks.model.measured import METRICS
from evaluator.types import Evaluation, KernelProfile
from kernelskill.memory.store import solution_digest
from kernelskill.tasks import load_task

STATE = ("device", "driver", "versions")


def run_rows(folder: Path) -> Iterator[tuple[Row, str]]:
    """Every timed solution of a run's journal, with its source."""
    run = json.loads((folder / "run.json").read_text())
    events = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    labels = {event["digest"]: "start" for event in events if event["event"] == "start"}
    for event in events:
        if event["event"] == "attempt":
            attempt = event["attempt"]
            labels.setdefault(attempt["child"], _method(attempt["method"]))
    for digest, label in labels.items():
        record = folder / "store" / f"{digest}.eval.json"
        made = Evaluation.from_json(record.read_text()) if record.exists() else None
        if made is None or made.time is None or made.time.provenance == "modelled":
            continue
        task = str(run["task"])
        row = Row(task=task, sizes=load_task(ROOT / task).spec.sizes, label=label, us=made.time.time_us,
                  low_us=made.time.low_us or made.time.time_us, high_us=made.time.high_us or made.time.time_us,
                  source=f"run {events[0]['time']}", solution=digest,
                  kernels=tuple((launch.kernel, launch.time_us) for launch in made.launches if not launch.library),
                  ncu=counters(made.profiles))
        yield row, (folder / "store" / f"{digest}.py").read_text()


def _method(method: Mapping[str, Any]) -> str:
    values = ", ".join(f"{name}={value}" for name, value in method["params"].items())
    return f"{method['method']}({values})" if values else str(method["method"])


def counters(profiles: tuple[KernelProfile, ...]) -> dict[str, float]:
    """Nsight Compute's counters under short names, where one kernel alone was profiled."""
    if len(profiles) != 1:
        return {}
    return {short: float(profiles[0].metrics[name]) for name, short in METRICS.items() if name in profiles[0].metrics}


def example_rows(record: Mapping[str, Any]) -> Iterator[tuple[Row, str]]:
    """Start and best of every example."""
    for name, example in record["simulated"].items():
        for label, row in example.items():
            text = solution(name, label).read_text()
            if solution_digest(text) != row["solution"]:
                raise SystemExit(f"{solution(name, label)} is not the solution that was measured ({row['solution']})")
            task = f"examples/{name}"
            yield Row(task=task, sizes=load_task(ROOT / task).spec.sizes, label=label, us=row["time_us"], low_us=row["low_us"],
                      high_us=row["high_us"], source="gpu_examples", solution=row["solution"], kernels=(), ncu={}), text


def size_rows(record: Mapping[str, Any]) -> Iterator[tuple[Row, str]]:
    """The plus-one kernel at sizes from launch-bound to bandwidth-bound."""
    digest = solution_digest(timing.KERNEL)
    measured = {int(n): row["event"] for n, row in record["graph"].items()} | {1 << 26: record["cheats"]["honest"]["event"]}
    for n, event in measured.items():
        yield Row(task=PLUS_ONE, sizes={"n": n}, label=f"n = {n}", us=event["us"], low_us=event["low"], high_us=event["high"],
                  source="timing", solution=digest, kernels=(), ncu={}), timing.KERNEL


def _provenance(record: Mapping[str, Any]) -> dict[str, Any]:
    found = record["provenance"]
    return {name: found[name] for name in ("command", "date", "commit", *STATE) if name in found}


def _run_provenance(folder: Path) -> dict[str, Any]:
    first = json.loads((folder / "journal.jsonl").read_text().splitlines()[0])
    run = json.loads((folder / "run.json").read_text())
    return {"task": run["task"], "date": first["time"], "device": run["device"]["name"], "versions": first["versions"]}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model.collect", description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, help="folders of finished runs on a GPU")
    parser.add_argument("--examples", action="store_true")
    parser.add_argument("--sizes", action="store_true")
    given = parser.parse_args()
    kept: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"sources": {}, "solutions": {}}
    found: list[tuple[Row, str]] = []
    if given.examples:
        record = json.loads(RECORD.read_text())
        kept["sources"]["gpu_examples"], found = record["simulated_provenance"], [*found, *example_rows(record)]
    if given.sizes:
        record = json.loads((RESULTS / "timing.json").read_text())
        kept["sources"]["timing"], found = _provenance(record), [*found, *size_rows(record)]
    for folder in given.runs:
        rows = list(run_rows(folder))
        if rows:
            kept["sources"][rows[0][0].source] = _run_provenance(folder)
        found += rows
    FOLDER.mkdir(exist_ok=True)
    for row, text in found:
        if source_of(row.solution) is None:
            (FOLDER / f"{row.solution}.py").write_text(text)
        kept["solutions"][key_of(row)] = row.to_json()
    FILE.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{len(found)} taken, {len(kept['solutions'])} in {FILE}")


if __name__ == "__main__":
    main()
