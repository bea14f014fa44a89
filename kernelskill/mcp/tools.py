"""What the server offers, as plain functions: JSON-able values in and out, KernelSkillError for what the caller can mend."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from kernelskill import assembly
from kernelskill.errors import RunError
from kernelskill.exchange import go_on, hand_in, open_request
from kernelskill.memory.run import Run
from kernelskill.methods import load_methods
from kernelskill.paths import methods_folder
from kernelskill.report import audit
from kernelskill.report.live import Silent
from kernelskill.report.summary import attempt_rows
from kernelskill.report.turn import standing_of, turn_of
from kernelskill.writers.requestbox import PROMPT


def start_run(task: str, out: str = "", rounds: int = 15, device: Literal["auto", "sim", "cuda"] = "auto",
              arch: str = "sm_90", card: str = "", allow_library: list[str] | None = None) -> dict[str, Any]:
    """Start optimising a task: a folder with task.toml, or a Python file in KernelBench or native form.

    Takes as long as one evaluation. `out` is the run folder (default runs/<task>-<time>); `device` sim models an H200 without
    a GPU; `allow_library` names the operators that may stay library calls. Returns where the run stands; with `state` waiting,
    call next_request.
    """
    folder = Path(out) if out else assembly.default_folder(Path(task))
    options = assembly.Options(rounds=rounds, device=device, arch=arch, card=card, writer="handoff",
                               allow_library=tuple(allow_library or ()))
    assembly.create_run(Path(task), options, folder)
    return turn_of(go_on(folder, Silent()))


def resume_run(run: str) -> dict[str, Any]:
    """Go on with a run folder, also one that was interrupted. Returns where it stands."""
    return turn_of(go_on(Path(run), Silent()))


def next_request(run: str) -> dict[str, Any]:
    """What to write now: `request` (its id is needed to submit) and `prompt`, which says everything: the one method, the
    current solution, the evidence, what must hold. Without an open request, `state` says how the run stands.
    """
    opened = Run.open(Path(run))
    entry = open_request(opened)
    prompt = (entry.folder / PROMPT).read_text(encoding="utf-8") if entry else None
    return {**standing_of(opened), "prompt": prompt}


def submit_solution(run: str, request: str, source: str) -> dict[str, Any]:
    """Hand in the whole Python module for a request. It is compiled, verified, held to the method and timed.

    Returns `verdicts` (status, message, the counterexample with expected and got, findings with lines, gain) and the next
    `request`, or the finished run. A failure is no error: read the verdict, then answer the next request.
    """
    hand_in(Path(run), source.encode(), Path(f"request {request}"), request)
    return turn_of(go_on(Path(run), Silent()))


def why(run: str, round: int | None = None) -> str:
    """Why the method of a round was chosen: facts, rules, and the fate of every other. Without a round: a line for each."""
    return audit.explain(audit.select_decisions(Path(run), round), None)


def why_not(run: str, method: str, round: int | None = None) -> str:
    """Why a method was not chosen, in one round or in all: which rule vetoed it, or which condition failed and by how much."""
    found = audit.explain_not(audit.select_decisions(Path(run), round), method)
    return "\n".join(f"round {entry['round']}: {entry['verdict']}" for entry in found)


def list_methods(method: str = "") -> dict[str, Any]:
    """The optimisation methods, a line each; with `method`, that card in full."""
    cards = load_methods(methods_folder())
    if method:
        audit.known_method(method)
        card = cards[method]
        return {"id": card.id, "title": card.title, "summary": card.summary, "families": card.families, "text": card.body,
                "sources": card.sources}
    return {"methods": {card.id: card.summary for card in cards.values()}}


def show_run(run: str) -> dict[str, Any]:
    """Where a run stands, and every attempt so far. `solution` is the best one's file."""
    opened = Run.open(Path(run))
    if not opened.graph.start:
        raise RunError("nothing was evaluated yet", hint="resume_run goes on with it")
    return {**standing_of(opened), "attempts": attempt_rows(opened)}


TOOLS = (start_run, resume_run, next_request, submit_solution, why, why_not, list_methods, show_run)
