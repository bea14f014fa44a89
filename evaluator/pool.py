"""Starts evaluations: one sandboxed process each, killed as a group when its time is up. Every outcome is an Evaluation."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evaluator import warm
from evaluator.environment import environment
from evaluator.gpu_state import gpu_uuid
from evaluator.sandbox import clean_environment, sandbox_name, wrapped
from evaluator.types import Evaluation, Request, Status

GRACE_SECONDS = 10.0
"""Time that starting Python and the sandbox may take beyond the request's own limit."""
PYTHON_FAILED = 1
"""Python's exit code for an exception that nothing caught."""


def evaluate(request: Request) -> Evaluation:
    """Evaluates in a process of its own. Never raises for what a solution or task does: the status says it."""
    request = absolute(request)
    if request.mode == "sim":
        from evaluator.simulator import build

        try:
            build.library_path()
        except (build.BuildError, OSError) as error:
            return _without_answer(request, Status.UNSUPPORTED, f"the simulator is not available: {error}")
    with exclusive(request), tempfile.TemporaryDirectory(prefix="evaluation-", ignore_cleanup_errors=True) as home:
        return _run(request, Path(home))


def evaluate_many(requests: Sequence[Request], workers: int = 1) -> list[Evaluation]:
    """`evaluate` for each, at most `workers` at a time, answers in the requests' order.

    On a GPU, requests without the profile stage overlap; those with it wait for each other.
    """
    with ThreadPoolExecutor(max_workers=max(1, workers)) as threads:
        return list(threads.map(evaluate, requests))


def _run(request: Request, home: Path) -> Evaluation:
    began = time.monotonic()
    ended = judge(request, request.model_dump_json().encode(), home)
    if ended is None:
        return _without_answer(request, Status.TIMEOUT, f"no answer within {request.limit_s:g} s; the evaluation was killed")
    evaluation = _answer(request, *ended)
    other = time.monotonic() - began - sum(evaluation.stage_seconds.values())
    return evaluation.model_copy(update={"stage_seconds": {**evaluation.stage_seconds, "other": round(other, 4)}})


def judge(request: Request, payload: bytes, home: Path, *arguments: str) -> tuple[int, bytes, bytes] | None:
    """Runs `python -m evaluator SANDBOX *arguments` for the request in its sandbox: exit code, stdout, stderr; None: killed.

    On a GPU without bubblewrap a warm process forks the judge (warm.py); should that one be lost, a fresh process judges.
    """
    if request.mode == "cuda" and sandbox_name() == "rlimits":
        with contextlib.suppress(OSError), warm.warm_process() as judges:
            return judges.judge(payload, home, (sandbox_name(), *arguments), request.limit_s + GRACE_SECONDS)
    variables = clean_environment(home)
    command = wrapped([sys.executable, "-m", "evaluator", sandbox_name(), *arguments], request, variables, home)
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables, cwd=home,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(payload, timeout=request.limit_s + GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _kill_group(process)
    return process.returncode, out, err


def _answer(request: Request, code: int, out: bytes, err: bytes) -> Evaluation:
    lines = out.splitlines()
    try:
        if code == 0 and len(lines) == 1:
            return Evaluation.from_json(lines[0])
    except ValueError as error:
        err += f"\nunreadable answer: {error}".encode()
    tail = err.decode(errors="replace").strip()[-1500:]
    if code == PYTHON_FAILED:  # the solution runs in another process: it cannot make the judge raise
        return _without_answer(request, Status.UNSUPPORTED, f"the evaluator itself failed, please report it: {tail}")
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return _without_answer(request, Status.RUNTIME_ERROR, f"the evaluation's process {how} without an answer: {tail}")


def _without_answer(request: Request, status: Status, message: str) -> Evaluation:
    return Evaluation(status=status, message=message, environment=environment(request, sandbox_name()))


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Ends whatever is left of the process's group, and reaps the process."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def absolute(request: Request) -> Request:
    """The request with absolute paths."""
    task = request.task.model_copy(update={"path": str(Path(request.task.path).resolve())})
    return request.model_copy(update={"task": task, "solution": str(Path(request.solution).resolve())})


@contextlib.contextmanager
def exclusive(request: Request) -> Iterator[None]:
    """An evaluation that times has a GPU for itself, across all processes of this machine; others share it."""
    if request.mode != "cuda":
        yield
        return
    # By its UUID two processes that number the GPUs differently meet at the same lock.
    gpu = gpu_uuid() or os.environ.get("CUDA_VISIBLE_DEVICES", "0").replace(",", "-") or "none"
    with (Path(tempfile.gettempdir()) / f"kernelskill-gpu-{gpu}.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX if "profile" in request.stages else fcntl.LOCK_SH)  # closing the file unlocks it
        yield
