"""`python -m evaluator SANDBOX shapes`: at which sizes other than their own KernelBench problems can be verified.

Every problem runs in a fork of the process, so that torch is loaded once, and one that hangs or dies costs itself alone.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from pathlib import Path
from typing import Any

from evaluator.kernelbench_module import load_module
from evaluator.lint.cost import NotCounted, called_without_data
from evaluator.oracle import TaskFault, describe_failure, load_oracle
from evaluator.trees import Leaf, leaves
from evaluator.types import Frozen, TaskSpec

Shape = tuple[int, ...]
LOST = "it died, or was not done within"


class SurveyRequest(Frozen):
    """Problems to look at. JSON on the process's stdin."""

    tasks: tuple[TaskSpec, ...]
    seconds: float
    """For each."""


class Variant(Frozen):
    """Sizes at which a problem is verified, and what they make of it."""

    sizes: dict[str, int]
    inputs: tuple[Shape, ...]
    parameters: tuple[Shape, ...]
    outputs: tuple[Shape, ...]

    @property
    def shapes(self) -> tuple[tuple[Shape, ...], ...]:
        """What tells two variants apart."""
        return self.inputs, self.parameters, self.outputs


class Survey(Frozen):
    """What one problem accepts."""

    task: str
    own: Variant | None = None
    """As the file has it; None where its code does not run on tensors without data."""
    variants: tuple[Variant, ...] = ()
    refused: int = 0
    """Proposals that its own code refuses, or whose outputs say nothing."""
    fault: str = ""
    """Why there is none."""
    seconds: float = 0.0

    def others(self) -> tuple[Variant, ...]:
        """Variants that differ in a shape from the file's own and from each other."""
        unique = {variant.shapes: variant for variant in self.variants}
        return tuple(v for v in unique.values() if self.own is None or v.shapes != self.own.shapes)


class Surveys(Frozen):
    """The answer, in the request's order."""

    surveys: tuple[Survey, ...]


def survey_here(request: SurveyRequest) -> Surveys:
    """Surveys every problem in a fork of this process."""
    import torch

    torch.set_num_threads(1)  # a pool of threads does not survive a fork
    with torch.device("meta"):
        torch.relu(torch.rand(2, 2))  # what meta tensors need is loaded before the forks
    return Surveys(surveys=tuple(_forked(task, request.seconds) for task in request.tasks))


def _forked(task: TaskSpec, seconds: float) -> Survey:
    began = time.monotonic()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(task, writing)
    os.close(writing)
    answer = b""
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while (left := began + seconds - time.monotonic()) > 0 and select.select([pipe], [], [], left)[0]:
            part = pipe.read(1 << 16)
            if not part:
                break
            answer += part
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    lost = Survey(task=task.name, fault=f"{LOST} {seconds:g} s")
    found = Survey.model_validate_json(answer) if answer else lost
    return found.model_copy(update={"seconds": round(time.monotonic() - began, 1)})


def _answer(task: TaskSpec, writing: int) -> None:
    """In the fork; does not return."""
    try:
        os.write(writing, survey(task).model_dump_json().encode())
    except Exception as error:  # the problem's own code
        os.write(writing, Survey(task=task.name, fault=describe_failure(error)).model_dump_json().encode())
    finally:
        os._exit(0)


def survey(task: TaskSpec) -> Survey:
    """Of one problem, in this process."""
    try:
        oracle = load_oracle(task)
        variants = tuple(_variant(oracle, sizes) for sizes in oracle.spec.check_sizes)
    except TaskFault as fault:
        return Survey(task=task.name, own=_own(task), fault=str(fault)[:300])
    return Survey(task=task.name, own=_own(task), variants=variants, refused=len(oracle.notes))


def _variant(oracle: Any, sizes: dict[str, int]) -> Variant:
    problem = oracle.own_problem(sizes, oracle.spec.seed)
    return Variant(sizes=sizes, inputs=_shapes(dict(problem.inputs)), parameters=_shapes(dict(problem.state)),
                   outputs=_shapes(oracle.outputs(problem)))


def _own(task: TaskSpec) -> Variant | None:
    """On tensors that hold no data."""
    try:
        model, inputs, outputs, _ = called_without_data(load_module(Path(task.path)))
    except NotCounted:
        return None
    return Variant(sizes=task.sizes, inputs=_shapes(tuple(inputs)), parameters=_shapes(dict(model.state_dict())),
                   outputs=_shapes(outputs))


def _shapes(tree: Any) -> tuple[Shape, ...]:
    return tuple(tuple(leaf.shape) for _, leaf in leaves(tree, "") if isinstance(leaf, Leaf) or hasattr(leaf, "shape"))
