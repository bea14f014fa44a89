"""Lints many tasks, some at a time, each in a process of its own; what was found is kept as it comes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from pydantic import ValidationError

from evaluator.lint.__main__ import LATE
from evaluator.lint.report import LintReport, LintRequest
from evaluator.types import DeviceSpec
from kernelskill import assembly
from kernelskill.errors import KernelSkillError, Location, TaskError
from kernelskill.suites.discover import SuiteTask
from kernelskill.suites.records import append_line, lines_of
from kernelskill.tasks import load_task

LINT_SECONDS = 60.0
"""What a bench spends on a task's lint at most."""
Told = Callable[[str, LintReport], None]
"""Called with a task's key and its report."""


@dataclass(frozen=True)
class LintJob:
    """The tasks to lint, and how."""

    tasks: Sequence[SuiteTask]
    device: DeviceSpec
    on_gpu: bool = False
    budget_s: float = 120.0
    workers: int = 1
    out: Path | None = None
    """Every report is appended here as it comes; tasks that it holds are not linted again."""


def reports_of(job: LintJob, told: Told = lambda key, report: None) -> dict[str, LintReport]:
    """Key -> report of every task, in the suite's order. A task that does not load is `not_checked`, with the reason."""
    found = recorded(job.out) if job.out is not None else {}
    requests: dict[str, LintRequest] = {}
    for task in job.tasks:
        if task.key in found:
            told(task.key, found[task.key])
            continue
        try:
            requests[task.key] = LintRequest(
                task=load_task(task.path).spec, device=job.device, on_gpu=job.on_gpu, budget_s=job.budget_s
            )
        except TaskError as error:
            found[task.key] = LintReport(task=task.path.stem, kind="", verdict="not_checked", notes=(str(error),))
            told(task.key, found[task.key])
    for key, report in check_tasks(requests, job.workers):
        found[key] = report
        if job.out is not None:
            append_line(job.out, json.dumps({"key": key, "report": report.model_dump(mode="json")}))
        told(key, report)
    return {task.key: found[task.key] for task in job.tasks}


def reports_for(tasks: Sequence[SuiteTask], options: assembly.Options, out: Path, told: Told) -> dict[str, LintReport]:
    """The reports of a bench's tasks on the device that its runs use."""
    mode, device = assembly.choose_device(options)
    return reports_of(LintJob(tasks, device, mode == "cuda", LINT_SECONDS, 1, out), told)


def recorded(path: Path) -> dict[str, LintReport]:
    """Key -> report of a file that `reports_of` wrote; nothing where there is none. Raises KernelSkillError."""
    found = {}
    for number, line in lines_of(path):
        try:
            row = json.loads(line)
        except ValueError:  # cut short, and another line written after it
            continue
        try:
            found[row["key"]] = LintReport.model_validate(row["report"])
        except (KeyError, TypeError, ValidationError):
            raise KernelSkillError("no record of a lint", location=Location(path, number), hint="name another file") from None
    return found


class LintProcess:
    """One warm process that answers requests in turn; started again when it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def check(self, request: LintRequest) -> LintReport:
        """The task's report; `not_checked` with the reason where the process died over it."""
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        lines = []
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(request.model_dump_json().encode() + b"\n")
            process.stdin.flush()
            while (line := process.stdout.readline()).strip():
                lines.append(line)
        late = lines[-1:] == [LATE]
        if reports := lines[:-1] if late else lines:
            report = LintReport.model_validate_json(reports[-1])
            notes = (*report.notes, "the later stages ran out of time") if late else report.notes
            return report.model_copy(update={"notes": notes})
        return LintReport(task=request.task.name, kind=request.task.kind, verdict="not_checked",
                          notes=("the process that runs the reference died or ran out of time",))

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "evaluator.lint"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": _path()},
            )
        return self._process


def check_tasks(requests: Mapping[str, LintRequest], workers: int = 1) -> Iterator[tuple[str, LintReport]]:
    """(key, report) as they come, in any order; at most `workers` tasks at a time."""
    idle: SimpleQueue[LintProcess] = SimpleQueue()
    processes = [LintProcess() for _ in range(max(1, min(workers, len(requests))))]
    for process in processes:
        idle.put(process)

    def one(key: str) -> tuple[str, LintReport]:
        process = idle.get()
        try:
            return key, process.check(requests[key])
        finally:
            idle.put(process)

    try:
        with ThreadPoolExecutor(len(processes)) as threads:
            for done in as_completed([threads.submit(one, key) for key in requests]):
                yield done.result()
    finally:
        for process in processes:
            process.close()


def _path() -> str:
    return os.pathsep.join([str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH", "")])])
