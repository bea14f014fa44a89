"""The held-out set: whole solutions that a run generated and an H200 measured. No constant and no rule was chosen on them.

`results/h200/generated.json` holds the times with their provenance (`collect.py` takes them from runs). The solutions as they
were measured are `<digest>.py`: below `results/generated/` those that simulated runs make too, the others in
`results/h200/generated/`. They are modelled as a user meets them, one call at the full sizes by the evaluator, several launches
added up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.examples import RESULTS, ROOT
from benchmarks.model.measured import H200
from benchmarks.model.score import Score, score
from evaluator import pool
from evaluator.types import Evaluation, Request, TaskSpec
from kernelskill.tasks import load_task

FILE, FOLDER = RESULTS / "h200" / "generated.json", RESULTS / "h200" / "generated"
SIMULATED = RESULTS / "generated"
"""`<example>/<digest>.py`: what the template writer made in simulated runs of the examples."""
PLUS_ONE = "benchmarks/results/h200/generated/plus_one_task.py"
"""A task of one addition: its times say what a launch costs."""


@dataclass(frozen=True)
class Row:
    """One solution's measurement. Times in us: the median and its interval, or lowest and highest of several evaluations."""

    task: str
    """Relative to the repository."""
    sizes: Mapping[str, int]
    label: str
    """`start`, `best`, or the method that made it."""
    us: float
    low_us: float
    high_us: float
    source: str
    """Key into the record's `sources`."""
    solution: str
    """Digest: the file's name."""
    kernels: tuple[tuple[str, float | None], ...]
    """Kernel and CUPTI's time of every launch, where the run profiled it."""
    ncu: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @property
    def problem(self) -> str:
        """What it may be ranked within."""
        return f"{self.task} {dict(self.sizes)}"


def key_of(row: Row) -> str:
    """Task, size and solution: a newer measurement of the same replaces it."""
    name = Path(row.task).stem.removesuffix("_task")
    size = f" {row.sizes['n']}" if row.task == PLUS_ONE else ""
    return f"{name}{size} {row.solution[:8]}"


def source_of(digest: str) -> Path | None:
    """The file of a solution; None where it is not kept yet."""
    return next((path for path in (FOLDER / f"{digest}.py", *SIMULATED.glob(f"*/{digest}.py")) if path.exists()), None)


def load() -> dict[str, Row]:
    """Key -> row."""
    rows = json.loads(FILE.read_text())["solutions"]
    return {key: Row(**{**row, "kernels": tuple(map(tuple, row["kernels"]))}) for key, row in rows.items()}


def evaluate(row: Row) -> Evaluation:
    """The profile stage in the simulator, at the sizes of the measurement."""
    return pool.evaluate(Request(task=_task(row), solution=str(source_of(row.solution)), mode="sim", device=H200,
                                 timeout_s=300, stages=("profile",)))


def _task(row: Row) -> TaskSpec:
    if row.task == PLUS_ONE:
        return TaskSpec(name="plus_one", kind="native", path=str(ROOT / PLUS_ONE), sizes=dict(row.sizes),
                        check_sizes=({"n": 100},))
    spec = load_task(ROOT / row.task).spec
    if dict(spec.sizes) != dict(row.sizes):
        raise SystemExit(f"{row.task} has other sizes now than were measured: {dict(spec.sizes)}, not {dict(row.sizes)}")
    return spec


def model(rows: Mapping[str, Row]) -> dict[str, Evaluation]:
    """Key -> modelled evaluation; two at a time."""
    with ThreadPoolExecutor(2) as threads:
        made = dict(zip(rows, threads.map(evaluate, rows.values()), strict=True))
    for key, evaluation in made.items():
        if evaluation.time is None:
            print(f"{key}: no modelled time: {evaluation.status.value} {evaluation.time_unavailable or evaluation.message}")
    return {key: evaluation for key, evaluation in made.items() if evaluation.time is not None}


def agreement(rows: Mapping[str, Row], modelled: Mapping[str, float], keys: Sequence[str]) -> Score:
    """Ranking within each problem, and the typical error."""
    groups: dict[str, list[str]] = {}
    for key in keys:
        groups.setdefault(rows[key].problem, []).append(key)
    return score(groups.values(), modelled, {key: row.us for key, row in rows.items()})
