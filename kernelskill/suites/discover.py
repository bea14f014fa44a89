"""The tasks of a suite: a KernelBench checkout, a folder of tasks, or one task."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelskill.errors import Location, TaskError
from kernelskill.tasks import load_task

LEVELS = (1, 2, 3)
_ID = re.compile(r"(?:(\d+)/)?(\d+)(?:-(\d+))?")


@dataclass(frozen=True)
class SuiteTask:
    """One task of a suite."""

    key: str
    """`1/19` in KernelBench, else the task's path below the suite's folder."""
    path: Path
    level: int | None = None


def find_tasks(folder: Path) -> list[SuiteTask]:
    """Every task of a folder, in a fixed order; a task's own path gives that one.

    A KernelBench checkout gives levels 1 to 3. Any other folder gives the folders below it that hold a task.toml and the
    Python files that are tasks, wherever they are. Raises TaskError where there is none.
    """
    if folder.is_file() or (folder / "task.toml").is_file():
        return [SuiteTask(folder.stem if folder.is_file() else folder.resolve().name, folder)]
    levels = kernelbench_folder(folder)
    found = _kernelbench(levels) if levels is not None else _any_tasks(folder)
    if not found:
        raise _nothing(folder)
    return found


def _nothing(folder: Path) -> TaskError:
    """What is wrong with a file that has a task's name for something; else what a task is."""
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if any(f"\n{start}" in text for start in ("class Model", "def get_inputs(", "def make_inputs(")):
            try:
                load_task(path)
            except TaskError as error:
                return TaskError(f"no task in {folder} can be loaded; the first one: {error}")
    return TaskError("no task in it", location=Location(folder), hint="a task is a folder with task.toml, or a Python file "
                     "with Model and get_inputs, or with SIZES, make_inputs, reference and run")


def kernelbench_folder(folder: Path) -> Path | None:
    """The folder that holds `level1`, `level2`, ... of a KernelBench checkout; None where `folder` is no such checkout."""
    return next((place for place in (folder / "KernelBench", folder) if (place / "level1").is_dir()), None)


def select(
    tasks: Sequence[SuiteTask], levels: Collection[int] = (), ids: str = "", sample: int | None = None, seed: int = 0
) -> list[SuiteTask]:
    """Those of the levels and ids; of these a random sample where asked for, the same for the same seed, in the suite's order.

    `ids` is a comma-separated list of keys, of `level/id`, or of ids or ranges of ids (`1-20`) in every chosen level.
    Raises TaskError for an id that selects nothing.
    """
    chosen = [task for task in tasks if not levels or task.level in levels]
    if ids:
        wanted: set[str] = set()
        for word in (word.strip() for word in ids.split(",")):
            matching = {task.key for task in chosen if _matches(task, word)}
            if not matching:
                raise TaskError(f"no task has the id '{word}'", hint=f"ids are such as {', '.join(t.key for t in tasks[:3])}")
            wanted |= matching
        chosen = [task for task in chosen if task.key in wanted]
    if sample is not None and sample < len(chosen):
        kept = set(random.Random(seed).sample([task.key for task in chosen], sample))
        chosen = [task for task in chosen if task.key in kept]
    return chosen


def _matches(task: SuiteTask, word: str) -> bool:
    if word == task.key:
        return True
    pattern = _ID.fullmatch(word)
    if pattern is None or task.level is None:
        return False
    level, first, last = pattern.groups()
    number = int(task.key.split("/")[1])
    return (level is None or int(level) == task.level) and int(first) <= number <= int(last or first)


def _kernelbench(folder: Path) -> list[SuiteTask]:
    found = [
        (level, int(path.name.split("_")[0]), path)
        for level in LEVELS for path in (folder / f"level{level}").glob("*.py") if path.name.split("_")[0].isdigit()
    ]
    return [SuiteTask(f"{level}/{number}", path, level) for level, number, path in sorted(found)]


def _any_tasks(folder: Path) -> list[SuiteTask]:
    folders = {path.parent for path in folder.rglob("task.toml")}
    files = [path for path in folder.rglob("*.py") if not any(parent in folders for parent in path.parents) and _loads(path)]
    return [SuiteTask(str(path.relative_to(folder)), path) for path in sorted([*folders, *files])]


def _loads(path: Path) -> bool:
    try:
        load_task(path)
    except TaskError:
        return False
    return True
