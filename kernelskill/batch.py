"""Many runs in lock-step between a machine with a writer and a machine with a GPU.

`runs/<name>/` are the runs, `open/<name>-<id>/` is one folder for each request that is open, `index.json` says where every run
stands. A solution goes to `open/<name>-<id>/solution.py`. All paths inside are relative: the batch may be copied, and the
machine with the writer needs `open/` alone.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from kernelskill import assembly
from kernelskill.errors import AnswerError, KernelSkillError, Location, RunError
from kernelskill.exchange import go_on, hand_in, open_request
from kernelskill.memory.run import Run
from kernelskill.report.live import Silent
from kernelskill.report.turn import standing_of, turn_of
from kernelskill.writers.requestbox import ANSWER, REQUESTS, Entry, copy_out

RUNS, OPEN, LATE, INDEX = "runs", "open", "late", "index.json"


@dataclass(frozen=True)
class Batch:
    """A folder of runs that go round together."""

    folder: Path

    def runs(self) -> list[Path]:
        """The run folders, by name."""
        return sorted(path.parent for path in (self.folder / RUNS).glob("*/run.json"))

    def create(self, tasks: Iterable[Path], options: assembly.Options) -> dict[str, str]:
        """A run for each task that has none here yet; the tasks that cannot be used, and why."""
        unusable = {}
        for task in tasks:
            folder = self.folder / RUNS / self._name(task)
            if (folder / "run.json").exists():
                continue
            try:
                assembly.create_run(task, options, folder)
            except KernelSkillError as error:
                unusable[str(task)] = str(error)
        return unusable

    def _name(self, task: Path) -> str:
        name = assembly.task_name(task)
        folder = self.folder / RUNS / name
        taken = (folder / "run.json").exists() and not _holds(Run.open(folder), task)
        return f"{_file_of(task).resolve().parent.parent.name}-{name}" if taken else name

    def take_answers(self) -> dict[str, str]:
        """Every answer in `open/` goes to its run; what cannot be taken, by the request's name, and why."""
        with self._alone():
            return dict(self._refused())

    def _refused(self) -> Iterator[tuple[str, str]]:
        for run, entry in _waiting(self._opened()):
            answer = self.folder / OPEN / f"{run.name}-{entry.posted.id}" / ANSWER
            if not answer.is_file():
                continue
            try:
                hand_in(run, answer.read_bytes(), answer, entry.posted.id)
            except (AnswerError, RunError) as error:
                yield answer.parent.name, str(error)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time looks after `open/`."""
        from filelock import FileLock

        with FileLock(self.folder / ".lock"):
            yield

    def advance(self, runs: Iterable[Path], jobs: int = 1) -> Iterator[dict[str, Any]]:
        """Play each run until its next request or its end; a turn each, as they come, also of one that cannot go on."""
        runs = list(runs)
        if jobs == 1 or len(runs) < 2:
            yield from map(play, runs)
            return
        with ProcessPoolExecutor(min(jobs, len(runs)), get_context("spawn")) as workers:
            yield from (turn.result() for turn in as_completed([workers.submit(play, run) for run in runs]))

    def ready(self) -> list[Path]:
        """Runs that can go on now: neither finished nor waiting."""
        return [run for run, opened in self._opened().items() if _standing(run, opened)["state"] == "ready"]

    def publish(self) -> dict[str, Any]:
        """Make `open/` and `index.json` say where the runs stand now; the index. Interrupted, it is simply done again."""
        with self._alone():
            return self._publish()

    def _publish(self) -> dict[str, Any]:
        runs = self._opened()
        rows = [_standing(run, opened) for run, opened in runs.items()]
        wanted = {row["request"]["folder"] for row in rows if row.get("request")}
        (self.folder / OPEN).mkdir(parents=True, exist_ok=True)
        for folder in (self.folder / OPEN).iterdir():
            if folder.is_dir() and f"{OPEN}/{folder.name}" not in wanted:
                self._put_away(folder)
        for run, entry in _waiting(runs):
            self._copy_request(run, entry)
        index = {"version": 1, "open": sorted(wanted), "runs": rows}
        _write(self.folder / INDEX, json.dumps(index, indent=1) + "\n")
        return index

    def _put_away(self, folder: Path) -> None:
        """A request that is no longer open goes; somebody's answer that was not taken is kept in `late/`."""
        run, _, request = folder.name.rpartition("-")
        taken = self.folder / RUNS / run / REQUESTS / request / ANSWER
        late = folder / ANSWER
        if late.is_file() and not (taken.is_file() and taken.read_bytes().strip() == late.read_bytes().strip()):
            (self.folder / LATE).mkdir(exist_ok=True)
            late.replace(self.folder / LATE / f"{folder.name}.py")
        shutil.rmtree(folder)

    def _opened(self) -> dict[Path, Run | KernelSkillError]:
        """Every run, or why it cannot be read."""
        found: dict[Path, Run | KernelSkillError] = {}
        for folder in self.runs():
            try:
                found[folder] = Run.open(folder)
            except KernelSkillError as error:
                found[folder] = error
        return found

    def _copy_request(self, run: Path, entry: Entry) -> None:
        if (target := self.folder / OPEN / f"{run.name}-{entry.posted.id}").exists():
            return
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=self.folder / OPEN))
        copy_out(entry, fresh / "request")
        (fresh / "request").replace(target)
        fresh.rmdir()


def _standing(folder: Path, run: Run | KernelSkillError) -> dict[str, Any]:
    """Where the run stands, with paths relative to the batch."""
    name = f"{RUNS}/{folder.name}"
    try:
        if isinstance(run, KernelSkillError):
            raise run
        row = standing_of(run)
    except KernelSkillError as error:
        return {"run": name, "state": "unreadable", "error": str(error), "request": None}
    if row["request"]:
        row["request"] |= {"folder": f"{OPEN}/{folder.name}-{row['request']['id']}"}
    return {**row, "run": name, "solution": f"{name}/{Path(row['solution']).name}" if row["solution"] else None}


def _waiting(runs: Mapping[Path, Run | KernelSkillError]) -> Iterator[tuple[Path, Entry]]:
    """Runs that wait, with their requests; one that cannot be read is told by the index."""
    for folder, run in runs.items():
        try:
            entry = None if isinstance(run, KernelSkillError) else open_request(run)
        except KernelSkillError:
            continue
        if entry is not None:
            yield folder, entry


def _file_of(task: Path) -> Path:
    """The file that says what a task is."""
    return task / "task.toml" if task.is_dir() else task


def _holds(run: Run, task: Path) -> bool:
    """Whether the run is of that task, wherever the task lay when it was started."""
    copy = _file_of(run.folder / run.config.task_copy)
    return copy.is_file() and copy.read_bytes() == _file_of(task).read_bytes()


def play(run: Path) -> dict[str, Any]:
    """One run's turn, in a process of its own where several go on at once. What keeps it from going on is in `error`."""
    try:
        return turn_of(go_on(run, Silent()))
    except KernelSkillError as error:
        return {"run": str(run), "state": "stuck", "error": str(error), "verdicts": [], "request": None, "speedup": None}


def _write(path: Path, text: str) -> None:
    handle, fresh = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(fresh).chmod(0o644)
    Path(fresh).replace(path)


def batch_at(folder: Path) -> Batch:
    """The batch in a folder; raises RunError for a folder that is none."""
    if not (folder / RUNS).is_dir():
        raise RunError("this folder is no batch of runs: it has no folder runs/", location=Location(folder),
                       hint=f"make one: kernelskill requests {folder} TASK... ; one run is handed in with: "
                       "kernelskill submit RUN FILE")
    return Batch(folder)
