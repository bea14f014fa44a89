"""Errors for the person who meets them: what, where (`path:line:col`), what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Location:
    """A place in a file, 1-based; `line` and `column` may be unknown."""

    path: str | Path
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        parts = [str(self.path)] + [str(n) for n in (self.line, self.column) if n is not None]
        return ":".join(parts)


class KernelSkillError(Exception):
    """Base of every error that a user can cause. `str()` is the whole message; the CLI prints it without a traceback."""

    exit_code = 2

    def __init__(self, message: str, *, location: Location | None = None, hint: str = "") -> None:
        self.message, self.location, self.hint = message, location, hint
        super().__init__(message)

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        todo = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{where}{self.message}{todo}"


class TaskError(KernelSkillError):
    """A task file or folder that cannot be used."""


class RuleError(KernelSkillError):
    """A rule file that cannot be used."""


class MethodError(KernelSkillError):
    """A method card that cannot be used."""


class RunError(KernelSkillError):
    """A run folder that cannot be read or resumed."""


class ExperienceError(KernelSkillError):
    """A store of experience that cannot be used (a run goes on without it)."""


class RunHeldError(RunError):
    """Another process is working on the run."""


class DecisionError(KernelSkillError):
    """The policy could not decide: engine failure, or engine and oracle disagree. Never a silent choice."""

    exit_code = 1


class ModelError(KernelSkillError):
    """A language model gives no answer at all: wrong key, wrong name, out of reach. The run stops and can be gone on with."""

    exit_code = 1


class WriterError(KernelSkillError):
    """A writer could not produce code for the method (the attempt fails; the run goes on)."""

    exit_code = 1


class AwaitingAnswer(KernelSkillError):
    """The run cannot go on before somebody has answered a request. Nothing failed; `folder` is the request's."""

    exit_code = 3

    def __init__(self, message: str, *, folder: Path, hint: str = "") -> None:
        self.folder = folder
        super().__init__(message, location=Location(folder), hint=hint)


class AnswerError(KernelSkillError):
    """What was handed in cannot be taken as a solution; the request stays open."""


def did_you_mean(word: str, known: Iterable[str], most: int = 3) -> str:
    """`did you mean 'rows' or 'cols'?` for the nearest known words; empty when none is near."""
    near = difflib.get_close_matches(word, sorted(known), n=most, cutoff=0.6)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


def near_or_all(word: str, known: Iterable[str]) -> str:
    """The nearest known word, else the list of what exists; empty when nothing exists."""
    known = sorted(known)
    return did_you_mean(word, known, most=1) or (f"known: {', '.join(known)}" if known else "")
