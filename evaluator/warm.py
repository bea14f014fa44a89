"""A warm process that forks one judge for every evaluation: cupy and torch are imported once, CUDA is started in the fork.

Importing takes most of a short evaluation: torch alone three seconds. The server runs no line of a task or a solution and
never starts CUDA, so every fork begins where a fresh process would after its imports; nothing of an evaluation reaches the
next one. A fork is the leader of its own session and is killed with its group, as a process that is started anew is.

Used where evaluations run without bubblewrap, whose view of the files is made for one task and one solution.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from evaluator.sandbox import clean_environment

IMPORTED = ("numpy", "cupy", "torch", "scipy.stats", "evaluator.worker", "evaluator.timing", "evaluator.measure")
Ended = tuple[int, bytes, bytes]
"""Exit code, what the judge answered, what it printed."""


class WarmProcess:
    """The caller's end; one evaluation at a time."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="warm-", ignore_cleanup_errors=True)
        variables = clean_environment(Path(self._home.name))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "evaluator.warm"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=variables, cwd=self._home.name,
        )

    def judge(self, payload: bytes, home: Path, arguments: tuple[str, ...], seconds: float) -> Ended | None:
        """As `python -m evaluator *arguments` with `payload` on stdin; None: it was killed. Raises OSError: the server died."""
        message = {
            "payload": payload.decode(), "arguments": arguments, "seconds": seconds, "environment": clean_environment(home),
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise OSError("the warm process has ended")
        reply = json.loads(line)
        return None if reply is None else (int(reply["code"]), reply["out"].encode(), reply["err"].encode())

    def close(self) -> None:
        """Ends the server."""
        self._process.kill()
        self._process.communicate()
        self._home.cleanup()


_idle: list[WarmProcess] = []
_lock = threading.Lock()


@contextlib.contextmanager
def warm_process() -> Iterator[WarmProcess]:
    """An idle server, or a new one; it is kept for the next evaluation unless it was lost."""
    with _lock:
        process = _idle.pop() if _idle else None
    process = process or WarmProcess()
    try:
        yield process
    except BaseException:
        process.close()
        raise
    with _lock:
        _idle.append(process)


def close_all() -> None:
    """Ends every idle server."""
    with _lock:
        while _idle:
            _idle.pop().close()


atexit.register(close_all)
os.register_at_fork(after_in_child=_idle.clear)  # the parent's servers answer the parent


def main() -> None:
    """The server: a message a line on stdin, an answer a line on stdout, until the caller hangs up."""
    for name in IMPORTED:
        with contextlib.suppress(ImportError):  # reported by the evaluation that needs it
            importlib.import_module(name)
    answers = os.dup(1)
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        os.write(answers, json.dumps(_served(json.loads(line), answers)).encode() + b"\n")


def _served(message: dict[str, Any], answers: int) -> dict[str, Any] | None:
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        for end in (out, err, answers):
            os.close(end)
        _judge(message, out_end, err_end)
    os.close(out_end)
    os.close(err_end)
    texts = _collected({out: b"", err: b""}, time.monotonic() + message["seconds"])
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    _, state = os.waitpid(child, 0)
    os.close(out)
    os.close(err)
    if texts is None:
        return None
    return {"code": os.waitstatus_to_exitcode(state), "out": texts[out].decode(errors="replace"),
            "err": texts[err].decode(errors="replace")}


def _collected(texts: dict[int, bytes], deadline: float) -> dict[int, bytes] | None:
    """What was written to every pipe until the first of them (the judge's answer) ends; None where that takes too long."""
    answer, open_ends = next(iter(texts)), set(texts)
    while answer in open_ends:
        ready = select.select(list(open_ends), [], [], max(0.0, deadline - time.monotonic()))[0]
        if not ready:
            return None
        for end in ready:
            chunk = os.read(end, 1 << 20)
            texts[end] = texts[end][-(1 << 26):] + chunk
            if not chunk:
                open_ends.discard(end)
    return texts


def _judge(message: dict[str, Any], out: int, err: int) -> NoReturn:
    """In the fork: what `python -m evaluator` does."""
    from evaluator.runner import die_with_parent

    code = 1
    try:
        os.setsid()
        die_with_parent()  # a caller that is interrupted kills the server: its judge must not go on using the GPU
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(err, 1)
        os.dup2(err, 2)
        os.close(err)
        os.environ.clear()
        os.environ.update(message["environment"])
        tempfile.tempdir = None
        os.chdir(os.environ["HOME"])
        code = _answered(message, out)
    finally:
        os._exit(code)


def _answered(message: dict[str, Any], out: int) -> int:
    import traceback

    from evaluator.__main__ import answer_to

    try:
        code, text = answer_to(message["arguments"], message["payload"].encode())
    except BaseException:
        traceback.print_exc()
        return 1
    data = memoryview(text.encode())
    while data:
        data = data[os.write(out, data):]
    return code


if __name__ == "__main__":
    main()
