"""What one turn of a run brought: the verdicts on what was handed in, and what is wanted next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evaluator.types import Evaluation, Status
from kernelskill.agents.diagnoser import diagnose
from kernelskill.agents.generator import SEED
from kernelskill.exchange import Standing, open_request
from kernelskill.memory.run import Run
from kernelskill.model import Attempt
from kernelskill.report.console import ratio_text, time_text
from kernelskill.report.speedup import HOW
from kernelskill.report.summary import report_of
from kernelskill.writers.requestbox import Entry


def turn_of(standing: Standing) -> dict[str, Any]:
    """A turn as JSON: where the run stands, and `verdicts` on what was judged in this turn, oldest first."""
    run = standing.run
    judged = [_verdict(attempt) for attempt in standing.judged]
    seeds = [verdict for verdict in judged if verdict["role"] == "generator"]
    start = [_start(run)] if standing.started and not seeds else []
    return {**standing_of(run), "verdicts": start + judged}


def standing_of(run: Run) -> dict[str, Any]:
    """Where a run stands, as JSON: `state` is `waiting` (then `request` says for what), `finished` or `ready` to go on."""
    entry, report = open_request(run), report_of(run)
    state = "finished" if run.stop_reason else "waiting" if entry else "ready"
    kept = ("run", "task", "rounds", "start_time_us", "best_time_us", "speedup", "time_provenance", "stop_reason", "solution",
            "precision_class", "device")
    return {"state": state, **{name: report[name] for name in kept}, "round_budget": run.config.rounds,
            "request": request_row(entry) if entry else None}


def request_row(entry: Entry) -> dict[str, Any]:
    """A request in a few words."""
    request = entry.posted.request
    return {"id": entry.posted.id, "role": request.role, "method": str(request.method) if request.method else None,
            "folder": str(entry.folder)}


def _start(run: Run) -> dict[str, Any]:
    evaluation = run.graph.evaluation(run.graph.start)
    passed = evaluation.status is Status.PASSED
    return {"role": "start", "round": 0, "method": None, "repair": 0, "outcome": "started" if passed else "failed",
            "message": _untimed(evaluation) if passed else diagnose(evaluation), "gain": None, **_evidence(evaluation)}


def _verdict(attempt: Attempt) -> dict[str, Any]:
    role = "generator" if attempt.method.method == SEED else "repairer" if attempt.repair else "optimizer"
    outcome = "started" if role == "generator" and attempt.outcome == "improved" else attempt.outcome
    return {"role": role, "round": attempt.round, "method": str(attempt.method), "repair": attempt.repair, "outcome": outcome,
            "message": attempt.message or _untimed(attempt.evaluation), "gain": attempt.gain, **_evidence(attempt.evaluation)}


def _untimed(evaluation: Evaluation | None) -> str:
    """Why a solution that passed has no time: without one no rule knows what limits it."""
    return f"no time: {evaluation.time_unavailable}" if evaluation and evaluation.time_unavailable else ""


def _evidence(evaluation: Evaluation | None) -> dict[str, Any]:
    """The reviewer's status and time, the counterexample, and what was found, errors first."""
    if evaluation is None:
        return {"status": None, "time_us": None, "counterexample": None, "findings": []}
    findings = sorted(evaluation.findings, key=lambda finding: finding.severity)
    return {"status": evaluation.status.value, "time_us": evaluation.time.time_us if evaluation.time else None,
            "counterexample": evaluation.mismatch.model_dump(mode="json", exclude_none=True) if evaluation.mismatch else None,
            "findings": [finding.model_dump(mode="json", exclude_none=True) for finding in findings]}


def _what(verdict: dict[str, Any]) -> str:
    repair = f", repair {verdict['repair']}" if verdict["repair"] else ""
    if verdict["role"] == "start":
        return "start"
    if verdict["method"] == SEED:
        return f"first solution {verdict['round']}{repair}"
    return f"round {verdict['round']} {verdict['method']}{repair}"


def turn_lines(turn: dict[str, Any]) -> Iterator[str]:
    """The turn for people, without markup."""
    for verdict in turn["verdicts"]:
        what = _what(verdict)
        time = f"  {time_text(verdict['time_us'])}" if verdict["time_us"] else ""
        gain = f"  {ratio_text(verdict['gain'])} on its parent" if verdict["gain"] else ""
        yield f"{what}: {verdict['outcome']}{time}{gain}"
        if verdict["message"]:
            yield f"  {verdict['message']}"
    if turn["speedup"]:
        yield (f"best so far: {ratio_text(turn['speedup'])} over the start, {turn['precision_class']}, "
               f"{HOW[turn['time_provenance']]} for {turn['device']}, {time_text(turn['best_time_us'])}")
    if turn["request"]:
        request = turn["request"]
        yield f"next: request {request['id']}, {request['method'] or request['role']}: {request['folder']}"
    elif turn["state"] == "finished":
        yield f"finished after {turn['rounds']} rounds: {turn['stop_reason']}"
