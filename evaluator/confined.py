"""Runs code of a task beside the judge: in a process of its own, under a solution's limits; its answer is text.

One server a caller process (`python -m evaluator.confined`, in bubblewrap where that works) holds nothing of the caller, loads
what the work needs, and forks for every piece of it. What the work does ends with its process: it may compute and answer;
it writes no file, starts no program, reaches no network, sees no variable of the caller's environment.
"""

from __future__ import annotations

import atexit
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
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from evaluator.runner import limit, restrict
from evaluator.sandbox import clean_environment, read_only


class Lost(Exception):
    """The work gave no answer; the message says how it ended."""


class Server:
    """The caller's end; one piece of work at a time."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="confined-", ignore_cleanup_errors=True)
        home = Path(self._home.name)
        variables = clean_environment(home)
        command = read_only([sys.executable, "-m", "evaluator.confined"], variables, home)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                         env=variables, cwd=home)
        self._lock = threading.Lock()
        atexit.register(self.close)

    def ask(self, function: str, payload: str, seconds: float, before: str = "") -> str:
        """What `function` (module:name, text to text) answers. Raises Lost.

        `before` (module:name, no arguments) loads what the work needs; it is called once, in the server, and must be ours.
        """
        request = {"function": function, "payload": payload, "seconds": seconds, "before": before}
        with self._lock:
            assert self._process.stdin is not None and self._process.stdout is not None
            try:
                _write(self._process.stdin, request)
                reply = _read(self._process.stdout)
            except (OSError, ValueError) as error:
                raise Lost(f"its server ended: {error}") from error
        if "answer" not in reply:
            raise Lost(str(reply["lost"]))
        return str(reply["answer"])

    def close(self) -> None:
        """Ends the server."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._home.cleanup()


@lru_cache(maxsize=1)
def server() -> Server:
    """This process's server, started when it is first asked for."""
    return Server()


def _write(stream: IO[bytes], message: dict[str, Any]) -> None:
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


def _read(stream: IO[bytes]) -> dict[str, Any]:
    line = stream.readline()
    if not line:
        raise ValueError("end of stream")
    return dict(json.loads(line))


def main() -> None:
    """The server: requests on stdin, answers on stdout, one a line, until the caller hangs up."""
    tempfile.tempdir = os.environ["TMPDIR"]  # finding one makes a file, which the work may not
    for line in sys.stdin.buffer:
        _write(sys.stdout.buffer, _served(json.loads(line)))


def _served(request: dict[str, Any]) -> dict[str, Any]:
    try:
        if request["before"]:
            _named(request["before"])()
        function = _named(request["function"])
    except Exception as error:  # a library that does not load: the work cannot, the server can go on
        return {"lost": f"{type(error).__name__}: {error}"}
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _work(writer, function, request["payload"], request["seconds"])
    os.close(writer)
    answer = _collected(reader, time.monotonic() + request["seconds"])
    os.kill(child, signal.SIGKILL)
    _, state = os.waitpid(child, 0)
    os.close(reader)
    if answer is None:
        return {"lost": f"it did not finish within {request['seconds']:g} s"}
    return {"answer": answer.decode()} if answer else {"lost": _ending(state)}


def _named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _collected(reader: int, deadline: float) -> bytes | None:
    """Everything that is written until the end; None where that takes too long."""
    parts: list[bytes] = []
    while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
        chunk = os.read(reader, 1 << 20)
        if not chunk:
            return b"".join(parts)
        parts.append(chunk)
    return None


def _work(writer: int, function: Any, payload: str, seconds: float) -> None:
    """In the forked process: what the work prints, and whatever else it leaves open, leads nowhere."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        limit("sim", seconds)
        restrict()
        data = memoryview(function(payload).encode())
        while data:
            data = data[os.write(writer, data):]
    finally:
        os._exit(1 if sys.exc_info()[0] else 0)


def _ending(state: int) -> str:
    if os.WIFSIGNALED(state) and os.WTERMSIG(state) != signal.SIGKILL:
        return f"it was killed by {signal.Signals(os.WTERMSIG(state)).name}"
    return "its process ended without an answer"


if __name__ == "__main__":
    main()
