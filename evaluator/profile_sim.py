"""The profile stage in the simulator: one call at the full sizes, its launches counted and its time modelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluator.inputs import TASK, Case
from evaluator.oracle import Oracle, Problem
from evaluator.runner import Ended, Runner
from evaluator.simulator.time_model import limiter
from evaluator.trees import total_bytes
from evaluator.types import LaunchRecord, Status, TimeEstimate
from evaluator.verify import task_sizes

INPUT_LIMIT_BYTES = 8 << 30


class NoTime(Exception):
    """The solution passed, but no time can be given; the message says why."""


def full_problem(oracle: Oracle) -> Problem:
    """The task's own inputs at the full sizes. Raises NoTime where they do not fit, TaskFault where they fail."""
    sizes = ", ".join(f"{name}={value}" for name, value in oracle.spec.sizes.items())
    predicted = oracle.input_bytes(oracle.spec.sizes)
    if predicted is not None and predicted > INPUT_LIMIT_BYTES:
        raise NoTime(_too_big(sizes, predicted))
    try:
        problem = oracle.problem(Case(oracle.spec.sizes, TASK, oracle.spec.seed))
    except MemoryError:
        raise NoTime(f"the inputs at {sizes} do not fit into this machine's memory") from None
    size = total_bytes((problem.inputs, problem.state))
    if size > INPUT_LIMIT_BYTES:
        raise NoTime(_too_big(sizes, size))
    return problem


def profile(oracle: Oracle, runner: Runner) -> tuple[list[LaunchRecord], TimeEstimate, dict[str, float], dict[str, Any]]:
    """Launches, modelled time, task facts, and the runner's reply.

    Raises NoTime; Ended where the solution fails at the full sizes, which makes it wrong whatever the check sizes said.
    """
    problem = full_problem(oracle)
    try:
        runner.load()
        if oracle.spec.kind == "kernelbench":
            runner.construct(problem)
        reply = runner.profile(problem.inputs)
    except Ended as ended:
        failure = ended.failure
        if failure.status is Status.RUNTIME_ERROR and "MemoryError" not in failure.message:
            raise
        raise NoTime(f"{failure.status.value}: {failure.message}") from ended
    launches = [LaunchRecord.model_validate(launch) for launch in reply["launches"]]
    return launches, modelled_time(launches), task_sizes(problem, reply["outputs"]), reply


def modelled_time(launches: Sequence[LaunchRecord]) -> TimeEstimate:
    """The whole call's time from its launches' modelled times.

    Each launch's time holds its own launch term (the latency from the host's call to the first block). Launches are queued
    asynchronously on one stream, so the latency of all but the first is hidden behind the launch before it, as far as
    that one runs long enough: t = t_1 + sum over i > 1 of (t_i - min(launch_i, t_{i-1} - launch_{i-1})).
    Raises NoTime where nothing was launched or a launch could not be modelled.
    """
    if not launches:
        raise NoTime("the solution launches no kernel of its own")
    unknown = next((launch.kernel for launch in launches if launch.time_us is None), None)
    if unknown is not None:
        raise NoTime(f"the time of kernel {unknown} cannot be modelled")
    total, hidden_by = 0.0, 0.0
    for launch in launches:
        time, latency = launch.time_us or 0.0, launch.terms_us.get("launch", 0.0)
        total += time - min(latency, hidden_by)
        hidden_by = max(time - latency, 0.0)
    longest = max(launches, key=lambda launch: launch.time_us or 0.0)
    return TimeEstimate(provenance="modelled", time_us=total, limiter=limiter(longest.terms_us))


def _too_big(sizes: str, size: int) -> str:
    return (
        f"the inputs at {sizes} take {size / 2**30:.1f} GiB, more than the {INPUT_LIMIT_BYTES >> 30} GiB that are simulated; "
        "give the task smaller full sizes, or measure on a GPU"
    )
