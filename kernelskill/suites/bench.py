"""Runs over the tasks of a suite. Every task is a normal run; a bench that was killed goes on where it was.

A bench's folder: `bench.json` (what was asked), `runs/<task>/` (run folders), `rows.jsonl` (what came of each, as it comes),
`lint.jsonl`, and the reports.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evaluator.lint.report import LintReport
from evaluator.types import Frozen
from kernelskill import assembly
from kernelskill.errors import KernelSkillError, Location, RunError
from kernelskill.exchange import Standing, go_on
from kernelskill.loop import Observer
from kernelskill.suites.discover import SuiteTask
from kernelskill.suites.records import append_line, lines_of
from kernelskill.suites.rows import BenchRow, aside, row_of

CONFIG, ROWS, LINT, RUNS = "bench.json", "rows.jsonl", "lint.jsonl", "runs"
FINAL = ("solved", "failed")


class BenchConfig(Frozen):
    """What a bench was asked to do; fixed when it starts."""

    suite: str
    """The suite's folder as the user gave it."""
    tasks: tuple[tuple[str, str, int | None], ...]
    """(key, absolute path, level)."""
    options: dict[str, Any]
    """Of every run (`assembly.Options`)."""
    selection: dict[str, Any]
    """Level, ids, sample and seed, for the report."""
    versions: dict[str, str]


@dataclass(frozen=True)
class Bench:
    """A bench's folder and what it was asked."""

    folder: Path
    config: BenchConfig

    @classmethod
    def create(
        cls, folder: Path, suite: str, tasks: Sequence[SuiteTask], options: assembly.Options, selection: dict[str, Any]
    ) -> Bench:
        """A new bench. Raises RunError where the folder is in use."""
        if folder.exists() and any(folder.iterdir()):
            raise RunError("the folder is not empty", location=Location(folder),
                           hint=f"go on with it: kernelskill bench --resume {folder}; or name another with --out")
        told = {name: [str(p) for p in v] if name == "rules" else v for name, v in vars(options).items()}
        listed = tuple((task.key, str(task.path.resolve()), task.level) for task in tasks)
        config = BenchConfig(suite=suite, tasks=listed, options=told, selection=selection, versions=assembly.versions())
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CONFIG).write_text(config.model_dump_json(indent=1) + "\n", encoding="utf-8")
        return cls(folder, config)

    @classmethod
    def open(cls, folder: Path) -> Bench:
        """A bench to go on with. Raises RunError."""
        try:
            return cls(folder, BenchConfig.model_validate_json((folder / CONFIG).read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise RunError(f"no {CONFIG} in it: this is no bench", location=Location(folder)) from None
        except ValidationError as error:
            raise RunError(f"{CONFIG} cannot be read: {error.errors()[0]['msg']}", location=Location(folder)) from None

    @property
    def tasks(self) -> list[SuiteTask]:
        """In the suite's order."""
        return [SuiteTask(key, Path(path), level) for key, path, level in self.config.tasks]

    @property
    def options(self) -> assembly.Options:
        """Of every run."""
        told: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in self.config.options.items()}
        return assembly.Options(**{**told, "rules": tuple(Path(p) for p in told["rules"])})

    def rows(self) -> dict[str, BenchRow]:
        """Key -> the last row that was written, in the suite's order. A line that a kill cut short is left out."""
        found: dict[str, BenchRow] = {}
        for _, line in lines_of(self.folder / ROWS):
            try:
                row = BenchRow.model_validate_json(line)
            except ValidationError:  # cut short, and another line written after it
                continue
            found[row.key] = row
        return {task.key: found[task.key] for task in self.tasks if task.key in found}

    def pending(self) -> list[SuiteTask]:
        """Tasks that have no final row: new ones, interrupted ones, those that wait, and those that could not be used."""
        done = {key for key, row in self.rows().items() if row.outcome in FINAL}
        return [task for task in self.tasks if task.key not in done]

    def play(self, observer: Observer, lint: dict[str, LintReport]) -> Iterator[BenchRow]:
        """The rows of the pending tasks as they come; each is kept."""
        for task in self.pending():
            row = self._played(task, observer, lint.get(task.key))
            append_line(self.folder / ROWS, row.model_dump_json())
            yield row

    def _played(self, task: SuiteTask, observer: Observer, lint: LintReport | None) -> BenchRow:
        began, name = time.monotonic(), f"{RUNS}/{run_name(task.key)}"
        folder = self.folder / name

        def unusable(reason: object) -> BenchRow:
            return BenchRow(key=task.key, task=task.path.stem, outcome="unusable", reason=str(reason)[:400],
                            run=name if folder.exists() else "", seconds=round(time.monotonic() - began, 2), **aside(lint))

        try:
            if not (folder / "run.json").exists():
                assembly.create_run(task.path, self.options, folder)
            standing = go_on(folder, observer)
        except KernelSkillError as error:
            return unusable(error)
        except Exception as error:  # one task must not end the bench; the reason is in the row
            return unusable(f"{type(error).__name__}: {error}")
        row = row_of(task.key, standing.run, name, lint, round(time.monotonic() - began, 2))
        return _waiting(row, standing)


def _waiting(row: BenchRow, standing: Standing) -> BenchRow:
    if standing.awaited is None:
        return row
    return row.model_copy(update={"outcome": "waiting", "reason": f"waits for a solution: {standing.awaited}"[:400]})


def run_name(key: str) -> str:
    """A folder name for a key: `1/19` -> `1-19`."""
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in key.removesuffix(".py"))
