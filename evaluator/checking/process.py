"""Starts a check in a sandboxed process of its own. Every outcome is a CheckReport."""

from __future__ import annotations

import tempfile
from pathlib import Path

from evaluator.checking.types import CheckReport, CheckRequest
from evaluator.environment import environment
from evaluator.pool import absolute, exclusive, judge
from evaluator.sandbox import sandbox_name


def check(request: CheckRequest) -> CheckReport:
    """Checks in a process of its own. Never raises for what a solution or task does."""
    request = request.model_copy(update={"request": absolute(request.request)})
    inner = request.request
    if inner.mode == "sim":
        from evaluator.simulator import build

        try:
            build.library_path()
        except build.BuildError as error:
            return _refused(request, f"the simulator is not available: {error}")
    with exclusive(inner), tempfile.TemporaryDirectory(prefix="check-", ignore_cleanup_errors=True) as home:
        ended = judge(inner, request.model_dump_json().encode(), Path(home), "check")
    if ended is None:
        return _refused(request, f"no answer within {inner.limit_s:g} s; the check was killed")
    code, out, err = ended
    try:
        if code == 0:
            return CheckReport.model_validate_json(out)
    except ValueError as error:
        err += f"\nunreadable answer: {error}".encode()
    return _refused(request, f"the check's process ended with code {code} without an answer, please report it: "
                    f"{err.decode(errors='replace').strip()[-1500:]}")


def _refused(request: CheckRequest, message: str) -> CheckReport:
    inner = request.request
    return CheckReport(task=inner.task.name, solution=inner.solution, outcome="refused", message=message,
                       environment=environment(inner, sandbox_name()), seed=inner.seed or 0)
