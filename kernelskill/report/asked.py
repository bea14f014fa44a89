"""What a run's writer was asked in a round: the very prompt where it is kept, otherwise rendered again from the record."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from kernelskill import assembly
from kernelskill.agents.optimizer import Optimizer, Step
from kernelskill.agents.planner import Planner
from kernelskill.agents.repairer import repair_request
from kernelskill.agents.reviewer import Reviewer
from kernelskill.errors import RunError
from kernelskill.memory.run import Run
from kernelskill.methods import load_methods
from kernelskill.model import Attempt
from kernelskill.paths import methods_folder
from kernelskill.report.audit import select_decisions
from kernelskill.writers.litellm import TRANSCRIPT
from kernelskill.writers.request import Request, render, templates_digest
from kernelskill.writers.requestbox import PROMPT, REQUESTS, RequestBox


def prompt_of(folder: Path, round_: int = 0, first: int = 0, repair: int = 0) -> str:
    """The prompt of a round, or of the nth `first` solution, as Markdown; with `repair` that of its nth repair.

    Raises RunError for what the run asked nobody.
    """
    run = Run.open(folder)
    request = first_solution_of(run, first) if first else request_of(run, round_)
    if repair:
        request = repair_of(run, request, run.seeds if first else run.graph.attempts, first or round_, repair)
    posted = RequestBox(run.folder / REQUESTS).find(request)
    return (posted.folder / PROMPT).read_text(encoding="utf-8") if posted else render(request).markdown


def outdated(folder: Path) -> bool:
    """The templates have changed since a model was asked, so that a prompt rendered now may differ from what went out."""
    run = Run.open(folder)
    chats = (json.loads(run.store.get(call.digest, TRANSCRIPT)) for call in run.calls)
    return any(chat["prompt_version"] != templates_digest() for chat in chats)


def request_of(run: Run, round_: int) -> Request:
    """The request of a round, made again from the run's record; the writer's parameters are those of the attempt."""
    _, node, decision = select_decisions(run.folder, round_).decisions[0]
    if decision.chosen is None:
        raise RunError(f"nobody was asked in round {round_}: the run stopped ({decision.stop_reason})")
    writer, config = assembly.writer_of(run), run.config
    task = assembly.run_task(run, writer)
    optimizer = Optimizer(task, run, Reviewer(task, config.device, config.mode, config.timeout_s), writer,
                          load_methods(methods_folder()))
    made = run.graph.of_round(round_)
    applied = made[0].method if made and made[0].method.method == decision.chosen.method else decision.chosen
    return optimizer.request(Step(round_, node, applied, decision))


def first_solution_of(run: Run, number: int) -> Request:
    """The request of the nth first solution."""
    if number > run.config.seeds:
        raise RunError(f"the writer was not asked for a first solution {number}", hint=f"it makes {run.config.seeds}")
    task = assembly.run_task(run, assembly.writer_of(run))
    return Planner(task, load_methods(methods_folder()), run.config.device, run.config.mode).first_solution(number)


def repair_of(run: Run, request: Request, attempts: Iterable[Attempt], round_: int, repair: int) -> Request:
    """The request to mend what became of `request`, for the nth time."""
    made = [attempt for attempt in attempts if attempt.round == round_]
    failed = made[repair - 1] if repair <= len(made) else None
    if failed is None or failed.diagnosis is None or not failed.child:
        raise RunError(f"nothing was asked for a repair {repair} there", hint=f"kernelskill show {run.folder}")
    return repair_request(request, failed.diagnosis, run.source(failed.child), run.source_path(failed.child))

