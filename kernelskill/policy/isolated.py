"""Decisions in a process of their own, so that a crash of the native engine costs one decision and not the run.

The child gets the rule book once, then answers one decision after another; after a crash the next decision starts a new one.
`serve` is that child: pickled values, each with its length in front, on stdin and stdout.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import kernelskill
from kernelskill.errors import DecisionError
from kernelskill.model import Decision, Fact
from kernelskill.policy.deciding import Policy
from kernelskill.policy.rulebook import RuleBook

_LENGTH_BYTES = 8
_CHILD = "from kernelskill.policy.isolated import serve; serve()"


class IsolatedPolicy:
    """A Policy whose engine runs in a child process. Use it as a context manager, or call `close`."""

    def __init__(self, book: RuleBook, timeout_s: float = 60.0) -> None:
        """`timeout_s`: a decision that takes longer is given up, as if the engine had crashed."""
        self.book, self.timeout_s = book, timeout_s
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> IsolatedPolicy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def decide(self, facts: Mapping[str, Fact]) -> Decision:
        """As `Policy.decide`. Raises DecisionError also when the child dies; the next decision has a new child."""
        with self._lock:
            child = self._child if self._child and self._child.poll() is None else self._start()
            answer = self._ask(child, dict(facts))
        if isinstance(answer, Decision):
            return answer
        raise answer

    def close(self) -> None:
        """Ends the child."""
        with self._lock:
            self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        root = str(Path(kernelskill.__file__).parents[1])
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
        self._child = subprocess.Popen([sys.executable, "-c", _CHILD], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path})
        self._send(self._child, self.book)
        return self._child

    def _ask(self, child: subprocess.Popen[bytes], facts: dict[str, Fact]) -> Decision | DecisionError:
        late = threading.Timer(self.timeout_s, child.kill)
        late.start()
        try:
            self._send(child, facts)
            assert child.stdout is not None
            answer = _read(child.stdout)
        except (OSError, EOFError):
            return self._died(child, timed_out=not late.is_alive())
        finally:
            late.cancel()
        if isinstance(answer, (Decision, DecisionError)):
            return answer
        return DecisionError(f"the decision process answered {type(answer).__name__}")

    @staticmethod
    def _send(child: subprocess.Popen[bytes], value: object) -> None:
        assert child.stdin is not None
        try:
            _write(child.stdin, value)
        except BrokenPipeError:
            return  # the child died; reading its answer says so

    def _died(self, child: subprocess.Popen[bytes], *, timed_out: bool) -> DecisionError:
        self._end()
        hint = "only this decision is lost: report it with its facts, and decide again"
        if timed_out:
            return DecisionError(f"the rule engine took longer than {self.timeout_s:g} s and was ended", hint=hint)
        code = child.returncode
        name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return DecisionError(f"the rule engine crashed ({name}) while deciding", hint=hint)

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        for pipe in (child.stdin, child.stdout):
            try:
                if pipe:
                    pipe.close()
            except BrokenPipeError:
                continue
        try:
            child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def isolated_decide(book: RuleBook, facts: Mapping[str, Fact], timeout_s: float = 60.0) -> Decision:
    """One decision in a child process of its own. Raises DecisionError, also when the native engine crashes."""
    with IsolatedPolicy(book, timeout_s) as policy:
        return policy.decide(facts)


def _write(stream: IO[bytes], value: object) -> None:
    data = pickle.dumps(value)
    stream.write(len(data).to_bytes(_LENGTH_BYTES, "little") + data)
    stream.flush()


def _read(stream: IO[bytes]) -> object:
    """The next value. Raises EOFError when the other side is gone."""
    size = stream.read(_LENGTH_BYTES)
    data = stream.read(int.from_bytes(size, "little")) if len(size) == _LENGTH_BYTES else b""
    if not data:
        raise EOFError
    return pickle.loads(data)


def serve() -> None:
    """The child: a rule book, then facts for decisions until the other side closes. What others print goes to stderr."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's; it closes the pipe
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    policy = Policy(_read(requests))  # type: ignore[arg-type]
    while True:
        try:
            facts = _read(requests)
        except EOFError:
            return
        try:
            _write(answers, policy.decide(facts))  # type: ignore[arg-type]
        except DecisionError as error:
            _write(answers, error)
