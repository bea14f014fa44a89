"""What a run's writer was asked in a round: the very prompt where it is kept, otherwise rendered again from the record."""

from __future__ import annotations

from pathlib import Path

from kernelskill import assembly
from kernelskill.agents.optimizer import Optimizer, Step
from kernelskill.agents.reviewer import Reviewer
from kernelskill.errors import RunError
from kernelskill.memory.run import Run
from kernelskill.methods import load_methods
from kernelskill.model import Decision, MethodApplication
from kernelskill.paths import methods_folder
from kernelskill.report.audit import select_decisions
from kernelskill.writers.request import Request, render
from kernelskill.writers.requestbox import PROMPT, REQUESTS, RequestBox


def prompt_of(folder: Path, round_: int) -> str:
    """The prompt of a round, as Markdown. Raises RunError for a round that the run did not ask anybody in."""
    selection = select_decisions(folder, round_)
    _, node, decision = selection.decisions[0]
    if decision.chosen is None:
        raise RunError(f"nobody was asked in round {round_}: the run stopped ({decision.stop_reason})")
    run = selection.run
    request = request_of(run, round_, node, decision, decision.chosen)
    posted = RequestBox(run.folder / REQUESTS).find(request)
    return (posted.folder / PROMPT).read_text(encoding="utf-8") if posted else render(request).markdown


def request_of(run: Run, round_: int, node: str, decision: Decision, chosen: MethodApplication) -> Request:
    """The request of a round, made again from the run's record; the writer's parameters are those of the attempt."""
    writer = assembly.writer_of(run)
    task, config = assembly.run_task(run, writer), run.config
    optimizer = Optimizer(task, run, Reviewer(task, config.device, config.mode, config.timeout_s), writer,
                          load_methods(methods_folder()))
    applied = next((a.method for a in run.graph.attempts if a.round == round_), chosen)
    return optimizer.request(Step(round_, node, applied, decision))
