"""The `handoff` writer: a person or a coding agent writes. Requests go out as folders; see `requestbox`."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from kernelskill.errors import AnswerError, AwaitingAnswer
from kernelskill.model import Task
from kernelskill.writers.free import FreeWriter
from kernelskill.writers.request import Request
from kernelskill.writers.requestbox import ANSWER, Entry, RequestBox

POLL_S = 0.5
SETTLED_S = 1.0
"""A file that was not changed for this long is taken to be complete: before, an editor may still be writing it."""
Waiting = Callable[[AwaitingAnswer], None]


class HandoffWriter(FreeWriter):
    """Posts each request once and answers with what was put there; without an answer it waits, or the run pauses."""

    name = "handoff"

    def __init__(self, box: RequestBox, methods: Collection[str], waiting: Waiting | None = None) -> None:
        """`waiting` is told what is awaited, and again when that changes; None: the run pauses instead."""
        super().__init__(methods)
        self.box, self.waiting = box, waiting

    def write(self, task: Task, request: Request) -> str:
        """The answer. Raises AwaitingAnswer where there is none, or none that can be taken, unless it is to wait."""
        entry, told = self.box.post(request), ""
        while True:
            problem = ""
            try:
                answer = entry.answer()
            except AnswerError as error:
                answer, problem = None, str(error)
            if answer is not None and (self.waiting is None or _settled(entry)):
                return answer
            awaited = _awaited(entry, problem)
            if self.waiting is None:
                raise awaited
            if answer is None and str(awaited) != told:
                self.waiting(awaited)
                told = str(awaited)
            time.sleep(POLL_S)


def _settled(entry: Entry) -> bool:
    return time.time() - (entry.folder / ANSWER).stat().st_mtime >= SETTLED_S


def _awaited(entry: Entry, problem: str) -> AwaitingAnswer:
    request = entry.posted.request
    what = {"generator": "a first solution", "repairer": f"a repair of {request.method}"}.get(request.role)
    message = f"request {entry.posted.id} waits for {what or request.method or 'a faster solution'}"
    return AwaitingAnswer(f"{message}; what is there cannot be taken: {problem}" if problem else message, folder=entry.folder,
                          hint=f"read {entry.folder / 'request.md'} and put the module at {entry.folder / ANSWER}")
