"""Lints many tasks, some at a time, each in a process of its own; what was found is kept as it comes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from pydantic import ValidationError

from evaluator.lint.__main__ import LATE
from evaluator.lint.check import unfinished
from evaluator.lint.report import DEAD_NOTE, LATE_NOTE, LintReport, LintRequest
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
    finish: bool = False
    """Of the tasks that it holds, do what their reports lack."""


def reports_of(job: LintJob, told: Told = lambda key, report: None) -> dict[str, LintReport]:
    """Key -> report of every task, in the suite's order. A task that does not load is `not_checked`, with the reason."""
    found = recorded(job.out) if job.out is not None else {}
    requests: dict[str, LintRequest] = {}
    for task in job.tasks:
        done = found.get(task.key)
        if done is not None and not (job.finish and unfinished(done)):
            told(task.key, found[task.key])
            continue
        try:
            requests[task.key] = LintRequest(
                task=load_task(task.path).spec, device=job.device, on_gpu=job.on_gpu, budget_s=job.budget_s, done=done
            )
        except TaskError as error:
            found[task.key] = LintReport(task=task.path.stem, kind="", verdict="not_checked", notes=(str(error),))
            told(task.key, found[task.key])
    with contextlib.closing(check_tasks(requests, job.workers)) as answers:
        for key, report in answers:
            found[key] = report
            if job.out is not None:
                append_line(job.out, json.dumps({"key": key, "report": report.model_dump(mode="json")}))
            told(key, report)
    return {task.key: found[task.key] for task in job.tasks}


def reports_for(tasks: Sequence[SuiteTask], options: assembly.Options, out: Path, told: Told) -> dict[str, LintReport]:
    """The reports of a bench's tasks on the device that its runs use."""
    mode, device = assembly.choose_device(options)
    return reports_of(LintJob(tasks, device, mode == "cuda", LINT_SECONDS, 1, out), told)


def known(path: Path) -> dict[str, LintReport]:
    """Key -> report of a file that `reports_of` wrote, or of a record such as benchmarks/results/kernelbench_lint.json.

    Raises KernelSkillError for any other file.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # a line a report
        return recorded(path)
    if not isinstance(record, dict) or "problems" not in record:
        return recorded(path)
    try:
        return {key: _summarised(row) for key, row in record["problems"].items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _no_record(path) from None


def _summarised(row: Mapping[str, Any]) -> LintReport:
    """The report that a record keeps the outcome of. Raises KeyError, TypeError, ValueError."""
    findings = [{"code": code, "message": message} for code, message in row["findings"]]
    return LintReport.model_validate({
        "task": row["name"], "kind": "kernelbench", "verdict": row["verdict"], "findings": findings,
        "check_sizes": row["check_sizes"], "sol_us": row["sol_us"], "cost": row.get("cost"), "notes": row["notes"]})


def _no_record(path: Path, line: int | None = None) -> KernelSkillError:
    return KernelSkillError("no record of a lint", location=Location(path, line), hint="name another file")


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
            raise _no_record(path, number) from None
    return found


class LintProcess:
    """One warm process that answers requests in turn; started again when it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._closed, self._lock = False, threading.Lock()

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
            notes = (*report.notes, LATE_NOTE) if late else report.notes
            return report.model_copy(update={"notes": notes})
        before = request.done or LintReport(task=request.task.name, kind=request.task.kind, verdict="not_checked")
        return before.model_copy(update={"notes": tuple(dict.fromkeys((*before.notes, DEAD_NOTE)))})

    def close(self) -> None:
        """Ends the process and the task that it works on; a `check` under way in another thread returns then."""
        with self._lock:
            self._closed = True
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        with self._lock:
            return self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise BrokenPipeError("closed")
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "evaluator.lint"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": _path()},
                start_new_session=True,
            )
        return self._process


def check_tasks(
    requests: Mapping[str, LintRequest], workers: int = 1,
) -> Generator[tuple[str, LintReport], None, None]:
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

    threads = ThreadPoolExecutor(len(processes))
    try:
        for done in as_completed([threads.submit(one, key) for key in requests]):
            yield done.result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        for process in processes:  # before waiting: an interrupt must not wait for the tasks at work
            process.close()
        threads.shutdown()


def _path() -> str:
    return os.pathsep.join([str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH", "")])])
