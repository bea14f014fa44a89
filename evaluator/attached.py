"""A solution's process under a tool (Nsight Compute, compute-sanitizer): started by the tool, driven by the judge.

The tool starts a fresh Python that connects to a socket of the judge's and then answers like any runner. It is no fork of
the judge: nothing of the reference is in its memory.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluator.channel import Channel, Closed, Late
from evaluator.oracle import Problem
from evaluator.trees import WireError
from evaluator.types import Request

OUTPUT_TAIL_BYTES = 8000
FINISH_SECONDS = 5.0
CREDENTIALS = struct.Struct("3i")
"""Of a socket's other end: pid, uid, gid."""


class ToolFailed(Exception):
    """The tool or the process under it gave no answer; the message says what happened, in one sentence."""


class Attached:
    """One process under a tool (or under none: `tool` empty); a context manager that ends it, whatever it is doing."""

    def __init__(self, tool: Sequence[str], request: Request, deadline: float, *, unpooled: bool = False) -> None:
        self.name = Path(tool[0]).name if tool else "the recorder of launches"
        self.deadline = deadline
        self._home = tempfile.TemporaryDirectory(prefix="tool-", ignore_cleanup_errors=True)
        self.folder = Path(self._home.name)
        """Private; the tool's own files go here."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / "judge"))
        self._listener.listen(1)
        target = [sys.executable, "-m", "evaluator.profile_target", str(self.folder / "judge"), *["unpooled"] * unpooled]
        arguments = [word.replace("{folder}", str(self.folder)) for word in tool]
        with (self.folder / "printed").open("wb") as printed:
            self._process = subprocess.Popen([*arguments, *target], stdin=subprocess.DEVNULL, stdout=printed,
                                             stderr=subprocess.STDOUT)
        self._peer = 0
        self._request, self._loaded = request, False
        self._channel: Channel | None = None

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, operation: str, data: Any = None, **fields: Any) -> Mapping[str, Any]:
        """The reply of `launch.Host` to one message. Raises ToolFailed, also where the solution failed."""
        try:
            channel = self._channel or self._connected()
            channel.send({"op": operation, "data": data, **fields})
            reply = channel.receive()
        except Late:
            raise ToolFailed(f"{self.name} did not finish in time") from None
        except Closed:
            raise ToolFailed(f"the process under {self.name} ended: {self.printed()[-600:].strip()}") from None
        except WireError as error:
            raise ToolFailed(f"the process under {self.name} sent nonsense: {error}") from None
        if "failure" in reply:
            raise ToolFailed(f"the solution failed under {self.name}: {str(reply['failure'].get('message', ''))[:600]}")
        return reply

    def load(self) -> None:
        """Imports the solution, once. Raises ToolFailed."""
        if not self._loaded:
            self.ask("load")
            self._loaded = True

    def prepare(self, problem: Problem) -> None:
        """Loads the solution, and makes its model where the task is of that kind. Raises ToolFailed."""
        self.load()
        if self._request.task.kind == "kernelbench":
            self.ask("construct", {"init": problem.init, "state": dict(problem.state)})

    def finish(self) -> int:
        """Hangs up and waits for the tool to write its results; its exit code. Raises ToolFailed."""
        if self._channel is not None:
            self._channel.close()
        try:
            return self._process.wait(max(self.deadline - time.monotonic(), FINISH_SECONDS))
        except subprocess.TimeoutExpired:
            raise ToolFailed(f"{self.name} did not finish in time") from None

    def printed(self) -> str:
        """The end of what the tool and the solution printed."""
        try:
            return (self.folder / "printed").read_bytes()[-OUTPUT_TAIL_BYTES:].decode(errors="replace")
        except OSError:
            return ""

    def close(self) -> None:
        """Ends the tool and the process under it; removes their files."""
        for pid in filter(None, (self._peer, self._process.pid if self._process.poll() is None else 0)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._listener.close()
        if self._channel is not None:
            self._channel.close()
        self._home.cleanup()

    def _connected(self) -> Channel:
        """Waits until the process under the tool has connected, and sends it the request."""
        self._listener.settimeout(0.2)
        while True:
            try:
                connection, _ = self._listener.accept()
                break
            except TimeoutError:
                if self._process.poll() is not None:
                    raise ToolFailed(f"{self.name} started nothing: {self.printed()[-600:].strip()}") from None
                if time.monotonic() > self.deadline:
                    raise ToolFailed(f"{self.name} did not start in time") from None
        connection.setblocking(True)
        self._peer = CREDENTIALS.unpack(
            connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))[0]
        self._channel = Channel(connection)
        self._channel.deadline = self.deadline
        self._channel.send({"request": self._request.model_dump_json()})
        return self._channel
