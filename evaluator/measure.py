"""The timing stage on a GPU: the solution alone, its graph replay, then every baseline in turns with it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from evaluator.baselines import MAX_AUTOTUNE, RECIPES, START, asked, expected_at, reference_process
from evaluator.judge_timing import OtherEnded, Session, WrongWhenTimed
from evaluator.oracle import Oracle, Problem, TaskFault, load_oracle
from evaluator.precision import Precision
from evaluator.profile_sim import full_problem
from evaluator.runner import Ended, Runner
from evaluator.soon import soon
from evaluator.trees import total_bytes
from evaluator.types import BaselineName, BaselineTime, Request, TimeEstimate
from evaluator.verify import Record, task_sizes
from evaluator.wall_clock import check_reported

CROWDED_BYTES = 32 << 30
"""What the baselines' copies of the inputs may take together."""


Stage = Callable[[str], AbstractContextManager[None]]


@dataclass
class Processes:
    """Everything that is forked before the task is loaded, so that no process holds what it must not see."""

    solution: Runner
    reference: Runner | None = None
    """Gives expected values of KernelBench tasks at the full sizes."""
    baselines: dict[BaselineName, Runner] = field(default_factory=dict)
    ready: set[BaselineName] = field(default_factory=set)
    """Baselines that hold the inputs and are warm."""
    profiler: Runner | None = None
    """Mode sim: runs the full sizes."""

    @classmethod
    def start(cls, request: Request, deadline: float) -> Processes:
        """Forks what the request needs; a native task has no baseline but its start."""
        made = cls(Runner(request, "verify", deadline))
        if "profile" not in request.stages:
            return made
        if request.mode == "sim":
            made.profiler = Runner(request, "profile", deadline)
            return made
        if request.task.kind == "kernelbench":
            made.reference = reference_process(request, None, deadline)
        for name in request.baselines:
            if name != START and request.task.kind == "kernelbench":
                made.baselines[name] = reference_process(request, name, deadline)
            elif name == START and request.start:
                made.baselines[name] = Runner(request.model_copy(update={"solution": request.start}), "verify", deadline)
        return made

    def __iter__(self) -> Iterator[Runner]:
        return (runner for runner in (self.solution, self.reference, self.profiler, *self.baselines.values()) if runner)

    def close_reference(self) -> None:
        """Frees the card's memory of it."""
        if self.reference:
            self.reference.close()
            self.reference = None

    def close_baseline(self, name: BaselineName) -> None:
        """Frees the card's memory of it."""
        self.baselines.pop(name).close()


def session_here(request: Request, oracle: Oracle, processes: Processes, secret: int, deadline: float) -> Session:
    """The session of an evaluation on a new full-size problem, its reference under way. Raises NoTime, TaskFault."""
    session = session_for(request, oracle, full_problem(oracle, secret), processes, secret, deadline)
    session.begin_reference()
    return session


def session_soon(request: Request, processes: Processes, secret: int, deadline: float) -> Future[Session] | None:
    """`session_here`, made while the solution is verified; None for a task whose reference cannot run twice at a time.

    PyTorch's random numbers are one stream in a process, so a KernelBench module has to wait for the verification.
    """
    if request.task.kind != "native":
        return None
    return soon(lambda: session_here(request, load_oracle(request.task), processes, secret, deadline))


def session_for(
    request: Request, oracle: Oracle, problem: Problem, processes: Processes, secret: int, deadline: float,
) -> Session:
    """The session in which everything of an evaluation is timed."""
    reference = (
        asked(processes.reference) if processes.reference
        else lambda problem, seed, count: expected_at(oracle, problem, seed, count)
    )
    return Session(
        problem, oracle.spec.sizes, request.device.l2_bytes, np.random.default_rng([secret, 2]), reference, deadline,
        request.task.kind == "kernelbench")


def measure(session: Session, processes: Processes, record: Record, stage: Stage) -> tuple[dict[str, Any], str]:
    """The Evaluation's measured fields, and the GPU's name. Raises Ended and WrongWhenTimed for the solution's faults.

    `stage` notes the seconds of a part by its name.
    """
    solution = processes.solution
    with stage("prepare"):
        if session.kernelbench:
            solution.construct(session.problem)
        prepared = session.prepare(solution)
    with stage("reference"):
        _compute_reference(session, record)
        processes.close_reference()
    with stage("timing"):
        estimate = session.alone(solution, record.precision)
        check_reported(solution, estimate.time_us)
        session.afterwards(solution, estimate.time_us, record.precision)
    record.checks["timed_calls_checked"] = session.checked
    with stage("replay"):
        graph, missing = session.replayed(solution, estimate.time_us)
    facts = task_sizes(session.problem, prepared["outputs"])
    fields = {"time": estimate, "graph_time": graph, "graph_unavailable": missing, "task_facts": facts}
    return fields, str(prepared["device"])


def baseline_rows(request: Request, session: Session, processes: Processes, graph: bool) -> tuple[BaselineTime, ...]:
    """Every baseline of the request, in turns with the solution, whose graph was captured where `graph`. Raises Ended."""
    failures = _prepare_together(request, session, processes)
    rows = tuple(_row(request, session, processes, name, graph, failures) for name in request.baselines)
    session.note_state()
    return rows


def _prepare_together(request: Request, session: Session, processes: Processes) -> dict[BaselineName, str]:
    """Prepares, and so compiles, baselines at the same time, before any is timed; (name, why) of those that failed.

    Not those that tune kernels by timing them, and none where their copies of the inputs would crowd the card.
    """
    together = [name for name in processes.baselines if not (name in RECIPES and RECIPES[name].compile_mode == MAX_AUTOTUNE)]
    if total_bytes(session.problem.inputs) * (session.sets + 1) * len(together) > CROWDED_BYTES:
        return {}
    with ThreadPoolExecutor(max(len(together), 1)) as threads:
        failures = dict(zip(together, threads.map(partial(_prepared, request, session, processes), together), strict=True))
    return {name: reason for name, reason in failures.items() if reason is not None}


def _prepared(request: Request, session: Session, processes: Processes, name: BaselineName) -> str | None:
    """Prepares the baseline's process; why that failed."""
    process = processes.baselines[name]
    process.allow_until(time.monotonic() + request.baseline_timeout_s)
    try:
        if name == START:
            process.load()
        if session.kernelbench:
            process.construct(session.problem)
        session.prepare(process)
    except Ended as ended:
        return ended.failure.message
    processes.ready.add(name)
    return None


def _compute_reference(session: Session, record: Record) -> None:
    """A reference that fails at the full sizes leaves the timed calls unchecked; the evaluation says so."""
    try:
        session.checkpoint()
    except (TaskFault, Ended, MemoryError) as error:
        session.can_check = False
        record.notes.append(f"no timed call was compared, the reference fails at the full sizes: {error}"[:300])


def _row(
    request: Request, session: Session, processes: Processes, name: BaselineName, solution_graph: bool,
    failures: Mapping[BaselineName, str],
) -> BaselineTime:
    """One baseline. Raises Ended where the solution fails meanwhile."""
    flags = RECIPES[name].flags if name in RECIPES else "none"
    process = processes.baselines.get(name)
    if process is None:
        what = "the task has no starting solution" if name == START else "a native task has no PyTorch reference"
        return BaselineTime(name=name, flags=flags, reason=what)
    session.deadline = time.monotonic() + request.baseline_timeout_s
    processes.solution.allow_until(session.deadline)
    try:
        reason = failures.get(name) or (None if name in processes.ready else _prepared(request, session, processes, name))
        if reason is not None:
            return BaselineTime(name=name, flags=flags, reason=reason)
        process.allow_until(session.deadline)
        precision = _precision_of(session, name, process)
        graph = name in RECIPES and RECIPES[name].graph
        if graph and (reason := _captured(process)):
            return BaselineTime(name=name, flags=flags, reason=f"eager PyTorch cannot be captured: {reason}")
        own, other = session.in_turns(processes.solution, process, graphs=(graph and solution_graph, graph))
        replayed = None if graph else _replayed(session, process, other)
    except OtherEnded as ended:
        return BaselineTime(name=name, flags=flags, reason=str(ended))
    finally:
        processes.close_baseline(name)
    return BaselineTime(
        name=name, flags=flags, precision_class=precision.classify(), time=other, graph_time=replayed, solution_time=own)


def _captured(process: Runner) -> str:
    """Captures the baseline's call; why that is not possible. Raises OtherEnded."""
    try:
        return str(process.time("graph")["reason"])
    except Ended as ended:
        raise OtherEnded(ended.failure.message) from ended


def _replayed(session: Session, process: Runner, measured: TimeEstimate) -> TimeEstimate | None:
    """The baseline as graph replay, where it is short and can be captured. Raises OtherEnded."""
    try:
        return session.replayed(process, measured.time_us)[0]
    except Ended as ended:
        raise OtherEnded(ended.failure.message) from ended


def _precision_of(session: Session, name: BaselineName, process: Runner) -> Precision:
    """Measured on one call. Raises OtherEnded; for a start that is wrong, too."""
    precision = Precision()
    try:
        if session.can_check:
            checkpoint = session.checkpoint()
            session.sample(process, factor=checkpoint.factor)
            session.check(process, checkpoint, precision, exact=name == START)
    except Ended as ended:
        raise OtherEnded(ended.failure.message) from ended
    except WrongWhenTimed as wrong:
        raise OtherEnded(f"its result is wrong: {wrong}") from wrong
    return precision


def reference_rows(request: Request) -> tuple[BaselineTime, ...]:
    """The baselines of a KernelBench task without a solution, in turns with `torch_eager`. Raises Ended, TaskFault, NoTime."""
    deadline = time.monotonic() + request.timeout_s
    processes = Processes(
        reference_process(request, "torch_eager", deadline), reference_process(request, None, deadline),
        {name: reference_process(request, name, deadline) for name in request.baselines},
    )
    try:
        oracle = load_oracle(request.task)
        secret = secrets.randbits(32) if request.seed is None else request.seed
        session = session_for(request, oracle, full_problem(oracle, secret), processes, secret, deadline)
        processes.solution.construct(session.problem)
        session.prepare(processes.solution)
        session.exact = False
        _compute_reference(session, Record())
        processes.close_reference()
        return baseline_rows(request, session, processes, graph=False)
    finally:
        for process in list(processes):
            process.close()
