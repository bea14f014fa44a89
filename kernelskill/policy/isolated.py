"""Decisions in a process of their own, so that a crash of the native engine costs one decision and not the run.

The child gets the rule book once, then answers one decision after another; after a crash the next decision starts a new one.
`serve` is that child: pickled values, each with its length in front, on stdin and stdout.
"""

from __future__ import annotations

import contextlib
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
_START_S = 120.0
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
            if self._child is None or self._child.poll() is not None:
                self._start()
            answer = self._ask(dict(facts), self.timeout_s)
        if isinstance(answer, Decision):
            return answer
        raise answer if isinstance(answer, DecisionError) else DecisionError(f"the decision process answered {answer!r}")

    def close(self) -> None:
        """Ends the child."""
        with self._lock:
            self._end()

    def _start(self) -> None:
        """A new child, ready to decide. Raises DecisionError when it does not come up."""
        self._end()
        root = str(Path(kernelskill.__file__).parents[1])
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
        self._child = subprocess.Popen([sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       env={**os.environ, "PYTHONPATH": path})
        answer = self._ask(self.book, _START_S)
        if isinstance(answer, DecisionError):
            raise answer

    def _ask(self, question: object, timeout_s: float) -> object:
        """What the child answers, or the DecisionError that says how it died."""
        child = self._child
        assert child is not None and child.stdin is not None and child.stdout is not None
        late = threading.Timer(timeout_s, child.kill)
        late.start()
        try:
            _write(child.stdin, question)
            return _read(child.stdout)
        except (OSError, EOFError):
            return self._died(child, None if late.is_alive() else timeout_s)
        finally:
            late.cancel()

    def _died(self, child: subprocess.Popen[bytes], timeout_s: float | None) -> DecisionError:
        self._end()
        hint = "only this decision is lost: report it with its facts, and decide again"
        if timeout_s is not None:
            return DecisionError(f"the rule engine took longer than {timeout_s:g} s and was ended", hint=hint)
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
    _write(answers, "ready")
    while True:
        with contextlib.suppress(DecisionError):  # the decision that needs it says so
            policy.prepare()
        try:
            facts = _read(requests)
        except EOFError:
            return
        try:
            _write(answers, policy.decide(facts))  # type: ignore[arg-type]
        except DecisionError as error:
            _write(answers, error)
