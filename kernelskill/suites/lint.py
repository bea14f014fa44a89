"""Lints many tasks, some at a time, each in a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue

from evaluator.lint.report import LintReport, LintRequest

Done = Callable[[LintReport], None]


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
        if lines:
            return LintReport.model_validate_json(lines[-1])
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


def check_tasks(requests: Sequence[LintRequest], workers: int = 1) -> Iterator[LintReport]:
    """Reports as they come, in any order; at most `workers` tasks at a time."""
    idle: SimpleQueue[LintProcess] = SimpleQueue()
    processes = [LintProcess() for _ in range(max(1, min(workers, len(requests))))]
    for process in processes:
        idle.put(process)

    def one(request: LintRequest) -> LintReport:
        process = idle.get()
        try:
            return process.check(request)
        finally:
            idle.put(process)

    try:
        with ThreadPoolExecutor(len(processes)) as threads:
            for done in as_completed([threads.submit(one, request) for request in requests]):
                yield done.result()
    finally:
        for process in processes:
            process.close()


def _path() -> str:
    return os.pathsep.join([str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH", "")])])
