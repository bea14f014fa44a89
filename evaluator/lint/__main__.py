"""`python -m evaluator.lint`: a LintRequest a line on stdin; for each, LintReports a line, then an empty line. All of it JSON.

The last report before the empty line is the answer; a line `LATE` before it says that later stages ran out of time. Every
request runs in a fork of this process, which has imported what takes long: tasks cannot disturb each other, and one that hangs
or dies leaves what it had. Only the task's own code runs.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time

LATE = b"late\n"
GRACE = 2.0
"""A stage may take this many times the whole budget before the task is given up."""


def main() -> int:
    """Exit code 0 at the end of stdin."""
    answer, asker = os.dup(1), os.getppid()
    os.dup2(2, 1)
    from evaluator.lint.report import LintRequest

    for line in sys.stdin.buffer:
        request = LintRequest.model_validate_json(line)
        if request.task.kind == "kernelbench" and importlib.util.find_spec("torch"):
            _load_torch()
        child = os.fork()
        if child == 0:
            _answer(request, answer)
        late = _wait(child, time.monotonic() + GRACE * request.budget_s + 30, asker)
        os.write(answer, LATE + b"\n" if late else b"\n")
    return 0


def _load_torch() -> None:
    """Before the fork, so that it is loaded once for all tasks."""
    import torch

    from evaluator.lint import needless  # noqa: F401 (both sides of the fork use it)

    torch.set_num_threads(1)  # a pool of threads does not survive a fork


def _answer(request: object, answer: int) -> None:
    """In the fork: a line after every stage, in one write each."""
    from evaluator.lint.check import check
    from evaluator.lint.report import LintRequest

    try:
        assert isinstance(request, LintRequest)
        for report in check(request):
            os.write(answer, report.model_dump_json().encode() + b"\n")
    finally:
        os._exit(0)


def _wait(child: int, deadline: float, asker: int) -> bool:
    """Whether it had to be killed: it is late, or nobody waits for the answer any more."""
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline or os.getppid() != asker:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return True
        time.sleep(0.05)
    return False


if __name__ == "__main__":
    sys.exit(main())
