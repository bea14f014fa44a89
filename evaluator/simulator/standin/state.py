"""The session and the memory of this process: the stand-in is one per process, like a CUDA context."""

from __future__ import annotations

from evaluator.simulator.standin.memory import Registry
from evaluator.simulator.standin.session import Session

registry = Registry()
_sessions: list[Session] = []


def begin(new: Session) -> None:
    """Makes `new` the session that everything reports to."""
    _sessions[:] = [new]


def end() -> None:
    """No session: the stand-in refuses to work until the next `begin`."""
    _sessions.clear()


def session() -> Session:
    """The session in force. Raises RuntimeError outside one."""
    if not _sessions:
        raise RuntimeError("the cupy stand-in is not installed: call evaluator.simulator.standin.install(session) first")
    return _sessions[0]
