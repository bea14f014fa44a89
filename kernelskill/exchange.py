"""A run in turns with whoever writes: take the answer, go on until the next request or the end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelskill import assembly
from kernelskill.errors import AwaitingAnswer, Location, RunError
from kernelskill.loop import Observer
from kernelskill.memory.run import Run, held
from kernelskill.memory.store import solution_digest
from kernelskill.model import Attempt
from kernelskill.writers.handoff import Waiting
from kernelskill.writers.requestbox import REQUESTS, Entry, RequestBox, checked, put_answer


@dataclass(frozen=True)
class Standing:
    """Where a run stands after it has gone on as far as it can."""

    run: Run
    awaited: AwaitingAnswer | None
    """What it waits for; None: it is finished."""
    started: bool
    """The first solution was judged just now."""
    judged: tuple[Attempt, ...]
    """The first solutions and the attempts that were judged just now."""


def go_on(folder: Path, observer: Observer, waiting: Waiting | None = None) -> Standing:
    """Play the run until it is finished or waits for an answer; raises RunHeldError when another process does so.

    `waiting` makes it wait for answers as they come, and is told of each.
    """
    with held(folder):
        run = assembly.open_run(folder)
        had_start, seeds, had = bool(run.graph.start), len(run.seeds), len(run.graph.attempts)
        observer.opened(run)
        try:
            with assembly.assembled(run, observer, waiting) as loop:
                loop.optimise()
            awaited = None
        except AwaitingAnswer as pause:
            awaited = pause
        assembly.learn(run)
    judged = (*run.seeds[seeds:], *run.graph.attempts[had:])
    return Standing(run, awaited, bool(run.graph.start) and not had_start, judged)


def open_request(run: Run) -> Entry | None:
    """What the run waits for, as far as its folder says."""
    return None if run.stop_reason else RequestBox(run.folder / REQUESTS).open_entry()


def hand_in(folder: Path, data: bytes, name: Path, request: str = "") -> Entry:
    """Put a solution into the run's open request (`request` names it where that matters); the run is to go on then.

    Raises AnswerError for what cannot be taken; RunError where nothing or something else is asked, or the same was judged.
    """
    run = Run.open(folder)
    text = checked(data, name)
    entry = open_request(run)
    if entry is None:
        what = f"the run is finished ({run.stop_reason})" if run.stop_reason else "the run has no open request"
        raise RunError(what, location=Location(folder), hint=f"its result: kernelskill show {folder}" if run.stop_reason else
                       f"go on with it: kernelskill optimize --resume {folder}")
    if request and request != entry.posted.id:
        raise RunError(f"request {request} is not open; the run waits for an answer to {entry.posted.id}",
                       location=Location(folder), hint=f"read {entry.folder / 'request.md'}")
    if (digest := solution_digest(text)) in run.graph or any(digest == seed.child for seed in run.seeds):
        raise RunError(f"this is solution {digest[:8]}, which the run has judged before", location=Location(name),
                       hint=f"request {entry.posted.id} wants another one: {entry.folder / 'request.md'}")
    put_answer(entry.folder, text)
    return entry
