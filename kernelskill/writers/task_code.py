"""What a task's own code raises while the writer looks at it, as an error of the task with its place."""

from __future__ import annotations

import traceback
from pathlib import Path

from kernelskill.errors import Location, TaskError


def raised_by_task(error: Exception, path: Path) -> TaskError:
    """The error at the last line of the task's file that the traceback passes."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
    return TaskError(f"the task's code raises {type(error).__name__}: {error}",
                     location=Location(path, lines[-1] if lines else None), hint="mend the task and try again")
