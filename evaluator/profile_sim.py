"""The profile stage in the simulator: one call at the full sizes, its launches counted and its time modelled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluator.failures import Failure, rejection, summary
from evaluator.inputs import TASK, Case
from evaluator.oracle import Oracle, Problem
from evaluator.runner import Ended, Runner
from evaluator.simulator.time_facts import limiter
from evaluator.tiles import LIMIT_BYTES, available, tiled_bytes
from evaluator.trees import total_bytes
from evaluator.types import DeviceSpec, Finding, LaunchRecord, Status, TaskSpec, TimeEstimate
from evaluator.verify import library_findings, task_sizes

INPUT_LIMIT_BYTES = 8 << 30
OUT_OF_MEMORY = ("MemoryError", "can't allocate memory")
"""What Python, or torch's allocator, says where the solution's outputs do not fit."""
LEAST_WRITTEN = 0.9
"""Outputs of which less than this share can have been written are an error."""
IMPLAUSIBLE = 0.5
"""Modelled times below this share of the task's bytes over the datasheet bandwidth get a warning."""


class NoTime(Exception):
    """The solution passed, but no time can be given; the message says why."""


def full_problem(oracle: Oracle, secret: int | None = None) -> Problem:
    """The task's own inputs at the full sizes, of the task's seed or a secret one.

    Raises NoTime where they do not fit, TaskFault where they fail.
    """
    predicted = oracle.input_bytes(oracle.spec.sizes)
    if predicted is not None and predicted > INPUT_LIMIT_BYTES:
        raise NoTime(_too_big(oracle, predicted))
    return _fitting(oracle, lambda: oracle.problem(
        Case(oracle.spec.sizes, TASK, oracle.spec.seed if secret is None else secret)))


def sampled_problem(oracle: Oracle) -> Problem:
    """As `full_problem`, of the task's seed; draws that are too large to hold are tiles of their values, repeated."""
    if not available():
        return full_problem(oracle)
    return _fitting(oracle, lambda: oracle.sampled_problem(oracle.spec.sizes, oracle.spec.seed))


def _fitting(oracle: Oracle, made: Callable[[], Problem]) -> Problem:
    try:
        problem = made()
    except MemoryError as error:
        raise NoTime(f"the inputs at {_sizes(oracle)} do not fit into this machine's memory {error}".rstrip()) from None
    arrays = problem.inputs, problem.state
    tiled = tiled_bytes(arrays)
    held = total_bytes(arrays) - tiled
    if held > INPUT_LIMIT_BYTES or tiled > LIMIT_BYTES:
        raise NoTime(_too_big(oracle, held + tiled))
    return problem


def profile(
    oracle: Oracle, runner: Runner, device: DeviceSpec,
) -> tuple[list[LaunchRecord], TimeEstimate, dict[str, float], dict[str, Any]]:
    """Launches, modelled time, task facts, and the runner's reply.

    Raises NoTime; Ended where the solution fails at the full sizes, which makes it wrong whatever the check sizes said.
    """
    problem = sampled_problem(oracle)
    try:
        runner.load()
        if oracle.spec.kind == "kernelbench":
            runner.construct(problem)
        reply = runner.profile(problem.inputs)
    except Ended as ended:
        failure = ended.failure
        if failure.status is Status.RUNTIME_ERROR and not any(said in failure.message for said in OUT_OF_MEMORY):
            raise
        reason = "does not fit into memory" if failure.status is Status.RUNTIME_ERROR else failure.status.value
        raise NoTime(f"{reason} at {_sizes(oracle)}: {failure.message}") from ended
    launches = [LaunchRecord.model_validate(launch) for launch in reply["launches"]]
    unwritten = unwritten_outputs(launches, reply["stored_bytes"], int(reply["kernels_write_bytes"]), oracle.spec.sizes)
    if unwritten is not None:
        raise Ended(Failure(Status.RUNTIME_ERROR, f"{summary(unwritten)} (at the full sizes)", findings=(unwritten,)), reply)
    estimate, facts = modelled_time(launches), task_sizes(problem, reply["outputs"])
    if tiled_bytes(problem.inputs):
        estimate = estimate.model_copy(update={"sampled_inputs": True})
    _refuse_library_calls(reply["library_calls"], oracle.spec, runner.solution)
    suspicious = implausible_time(estimate, facts["task_bytes"], device, oracle.spec.sizes)
    if suspicious is not None:
        reply["findings"].append(suspicious.model_dump(mode="json"))
    return launches, estimate, facts, reply


def _refuse_library_calls(calls: Sequence[Sequence[Any]], task: TaskSpec, solution: str) -> None:
    """Raises Ended where the full-size call computes with operators that the task does not let stay; NoTime for CuPy's.

    Torch's are launches of their own, with a modelled time.
    """
    refused = [finding for finding in library_findings(calls, task, solution) if finding.severity == "error"]
    if refused:
        raise Ended(rejection(refused))
    calls = [call for call in calls if not str(call[0]).startswith("torch.")]
    if calls:
        named = ", ".join(f"{name} ({Path(solution).name}:{line}, {count} calls)" for name, line, count in calls[:4])
        more = f" and {len(calls) - 4} more" if len(calls) > 4 else ""
        raise NoTime(f"the time of library operators cannot be modelled: {named}{more} at the full sizes; compute this in a "
                     "kernel of the solution, or measure on a GPU")


def unwritten_outputs(
    launches: Sequence[LaunchRecord], stored_bytes: Sequence[float], output_bytes: int, sizes: Mapping[str, int],
) -> Finding | None:
    """The finding where all launches together cannot have stored the outputs that only kernels write. Bytes throughout.

    The check sizes are small: a grid or a loop that is capped shows at the full sizes only.
    """
    if not launches or sum(stored_bytes) >= LEAST_WRITTEN * output_bytes:
        return None
    most = max(range(len(launches)), key=lambda i: float(stored_bytes[i]))
    launch = launches[most]
    at = ", ".join(f"{name}={value}" for name, value in sizes.items())
    return Finding(
        kind="uninitialised_output", kernel=launch.kernel, sizes=dict(sizes),
        message=(
            f"at most {int(sum(stored_bytes))} of the {output_bytes} output bytes can have been written at the full sizes "
            f"({at}); the check sizes are smaller. Check the grid {launch.grid} (a cap such as min(rows, 128)?) and the "
            "kernel's loop bounds for limits that the full sizes exceed"))


def implausible_time(estimate: TimeEstimate, task_bytes: float, device: DeviceSpec, sizes: Mapping[str, int]) -> Finding | None:
    """A warning where the modelled time is far below what the task's bytes need at the device's datasheet bandwidth."""
    bound_us = task_bytes / device.dram_bytes_per_s * 1e6
    if estimate.time_us >= IMPLAUSIBLE * bound_us:
        return None
    return Finding(
        kind="implausible_time", severity="warning", sizes=dict(sizes),
        message=(
            f"the modelled time, {estimate.time_us:.3g} us, is below {IMPLAUSIBLE:g} times the {bound_us:.3g} us that the "
            f"task's {int(task_bytes)} bytes take at {device.name}'s bandwidth: check that the kernels read all inputs and "
            "write all outputs at the full sizes"))


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


def _sizes(oracle: Oracle) -> str:
    return ", ".join(f"{name}={value}" for name, value in oracle.spec.sizes.items())


def _too_big(oracle: Oracle, size: int) -> str:
    return (
        f"the inputs at {_sizes(oracle)} take {size / 2**30:.1f} GiB, more than the {INPUT_LIMIT_BYTES >> 30} GiB that are "
        "simulated; give the task smaller full sizes, or measure on a GPU"
    )
