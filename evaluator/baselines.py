"""What a solution is compared with: PyTorch's ways of running the reference, and the task's own start.

Each baseline runs in a process of its own that holds the reference and never the solution, without autograd, the model in the
mode that its constructor leaves it in, like the solution's. `torch_eager` has PyTorch's default flags, which allow TF32 in
cuDNN's convolutions and forbid it in matrix products; `_fp32` forbids it everywhere, `_tf32` allows it everywhere.
`_max_autotune` is the mode `max-autotune-no-cudagraphs`: with graphs every call would first copy its inputs, which a caller
with data in place does not do. `cuda_graph_eager` replays eager PyTorch as a CUDA graph on inputs that are written in place.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, get_args

import numpy as np

from evaluator.channel import Channel, Closed
from evaluator.comparison import Expected
from evaluator.failures import failure_of
from evaluator.oracle import Oracle, Problem
from evaluator.precision import CLASSES
from evaluator.runner import Runner
from evaluator.timing import CudaClock, TimedCalls, positions
from evaluator.trees import Leaf, leaves
from evaluator.types import BaselineName, BaselineTime, Evaluation, Request, TaskSpec

BASELINES: tuple[BaselineName, ...] = get_args(BaselineName)
START: BaselineName = "naive_start"


class Recipe(NamedTuple):
    """How a baseline runs the reference."""

    tf32: bool | None
    """Allowed everywhere, forbidden everywhere, or PyTorch's defaults (None)."""
    compile_mode: str | None = None
    """`torch.compile`'s mode; None: eager."""
    graph: bool = False

    @property
    def flags(self) -> str:
        """The precision flags in words."""
        return {None: "default: TF32 in convolutions only", True: "TF32 allowed", False: "TF32 forbidden"}[self.tf32]


MAX_AUTOTUNE = "max-autotune-no-cudagraphs"
RECIPES: Mapping[BaselineName, Recipe] = {
    "torch_eager": Recipe(None), "torch_eager_fp32": Recipe(False), "torch_eager_tf32": Recipe(True),
    "torch_compile": Recipe(None, "default"), "torch_compile_fp32": Recipe(False, "default"),
    "torch_compile_tf32": Recipe(True, "default"),
    "torch_compile_max_autotune": Recipe(None, MAX_AUTOTUNE), "torch_compile_max_autotune_tf32": Recipe(True, MAX_AUTOTUNE),
    "cuda_graph_eager": Recipe(None, graph=True),
}


class UnknownBaseline(ValueError):
    """A name that is no baseline's."""


def baselines_named(text: str, kind: str) -> tuple[BaselineName, ...]:
    """The baselines of a comma-separated list: `eager`, `compile_tf32`, full names, `all`, `none`.

    Native tasks have no PyTorch reference: for them `all` is the start alone. Raises UnknownBaseline.
    """
    possible = [name for name in BASELINES if kind == "kernelbench" or name == START]
    words = [word.strip() for word in text.split(",") if word.strip()]
    if words == ["none"] or not words:
        return ()
    if words == ["all"]:
        return tuple(possible)
    found: list[BaselineName] = []
    for word in words:
        name = next((name for name in BASELINES if word in (name, name.removeprefix("torch_"))), None)
        if name is None:
            raise UnknownBaseline(f"no baseline is called {word!r}; there are: {', '.join(BASELINES)}, all, none")
        if name not in possible:
            raise UnknownBaseline(f"{name} runs a PyTorch reference, and the task has none (it is no KernelBench module)")
        found.append(name)
    return tuple(dict.fromkeys(found))


def best_torch(evaluation: Evaluation) -> BaselineTime | None:
    """The fastest PyTorch baseline that is at least as precise as the solution: what its speedup is stated against."""
    own = evaluation.precision_class
    rows = [row for row in evaluation.baselines if row.time is not None and row.name != START
            and own is not None and row.precision_class is not None
            and CLASSES.index(row.precision_class) <= CLASSES.index(own)]
    return max(rows, key=lambda row: -(row.time.time_us if row.time else 0.0), default=None)


def speedup(row: BaselineTime) -> tuple[float, float, float] | None:
    """(ratio, low, high) of a baseline's time over the solution's, from samples that took turns; None without times."""
    from evaluator.statistics import ratio_of

    if row.time is None or row.solution_time is None:
        return None
    return ratio_of(row.time, row.solution_time)


def reference_process(request: Request, name: BaselineName | None, deadline: float) -> Runner:
    """A process that holds the reference: to time a baseline, or (None) to give expected values. Fork it early."""
    return Runner(request, "profile", deadline, partial(serve, request, name))


def serve(request: Request, name: BaselineName | None, channel: Channel) -> None:
    """Answers the judge until it hangs up. What takes seconds to import is imported while the judge does other things."""
    for module in ("torch", "cupy") if request.mode == "cuda" else ():
        with suppress(ImportError):  # reported where it is used
            importlib.import_module(module)
    if request.mode == "cuda" and name is None:
        with suppress(Exception):  # CUDA starts here, not while the timing waits; what fails is reported where it is used
            importlib.import_module("torch").zeros(1, device="cuda")
    host: _Host | None = None
    while True:
        try:
            message = channel.receive()
        except Closed:
            return
        try:
            host = host or _Host(request, name)
            channel.send(host.handle(message))
        except Closed:
            return
        except BaseException as error:
            channel.send({"data": None, "failure": failure_of(error, request.task.path).to_dict()})


class _Host:
    """What is in a reference process."""

    def __init__(self, request: Request, name: BaselineName | None) -> None:
        self.request, self.name = request, name
        self.model: Any = None
        self.timed: TimedCalls | None = None

    def handle(self, message: Mapping[str, Any]) -> dict[str, Any]:
        operation, data = message["op"], message["data"]
        if operation == "expected":
            return expected_here(self.request.task, data, int(message["seed"]), int(message["count"]))
        assert self.name is not None
        if operation == "construct":
            self.model = reference_model(self.request.task, RECIPES[self.name])
            return {"data": None, "notes": self.model.construct(data["init"], data["state"], data["training"])}
        self.timed = self.timed or TimedCalls(self.model, CudaClock(self.request.device))
        return {"data": None, **self.timed.handle(message)}


def reference_model(task: TaskSpec, recipe: Recipe) -> Any:
    """The reference as the timing takes a solution; its `construct` compiles where the recipe says so."""
    import torch

    from evaluator.kernelbench_module import load_module
    from evaluator.solutions import KernelBenchSolution

    if recipe.tf32 is not None:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = recipe.tf32
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # worker processes would outlive a killed baseline

    class ReferenceModel(KernelBenchSolution):
        """`Model`, eager or compiled."""

        def construct(self, init: Any, state: Mapping[str, Leaf], training: bool = True) -> list[str]:
            notes = super().construct(init, state, training)
            if recipe.compile_mode is not None:
                self.model = torch.compile(self.model, mode=recipe.compile_mode)
            return notes

    module = load_module(task.path, task.sizes)
    module.ModelNew = module.Model  # type: ignore[attr-defined]
    return ReferenceModel(module)


def expected_here(task: TaskSpec, data: Mapping[str, Any], seed: int, count: int) -> dict[str, Any]:
    """In a reference process: the double-precision outputs' elements at `positions`, computed on the GPU."""
    import torch

    from evaluator.oracle_torch import KernelBenchOracle

    torch.set_num_threads(1)  # OpenMP threads do not survive a fork; the work is the GPU's
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    oracle = KernelBenchOracle(task.model_copy(update={"check_sizes": ()}))
    oracle.device = "cuda" if torch.cuda.is_available() else "cpu"
    expected, shapes = expected_at(oracle, Problem(**data), seed, count)
    fields = {path: _packed(want) for path, want in expected.items()}
    return {"data": {path: values for path, (values, _) in fields.items()}, "shapes": shapes,
            "kinds": {path: kind for path, (_, kind) in fields.items()}}


def expected_at(oracle: Oracle, problem: Problem, seed: int, count: int) -> tuple[dict[str, Expected], list[list[int]]]:
    """Expected elements at `positions` of every output, by path, and the outputs' full shapes. Raises TaskFault."""
    shapes: list[list[int]] = []

    def pick(tree: Any) -> Any:
        result = tree["result"] if isinstance(tree, Mapping) and set(tree) == {"result", "buffers"} else tree
        found = dict(leaves(result, "out"))
        shapes[:] = [list(leaf.shape) for leaf in found.values()]
        return {
            path: Leaf(leaf.values.reshape(-1)[positions(seed, number, leaf.values.size, count)], leaf.dtype, leaf.source)
            for number, (path, leaf) in enumerate(found.items())
        }

    return dict(oracle.expected_elements(problem, seed, pick)), shapes


def asked(runner: Runner) -> Callable[[Problem, int, int], tuple[dict[str, Expected], list[list[int]]]]:
    """`expected_at` of a reference process, for the judge."""

    def ask(problem: Problem, seed: int, count: int) -> tuple[dict[str, Expected], list[list[int]]]:
        reply = runner.expected(problem, seed, count)
        return {path: _unpacked(values, reply["kinds"][path]) for path, values in reply["data"].items()}, reply["shapes"]

    return ask


def _packed(want: Expected) -> tuple[dict[str, Leaf], dict[str, Any]]:
    kind = {"dtype": want.dtype, "yardstick": want.yardstick.__dict__ if want.yardstick else None}
    return {"values": Leaf.of(want.values), "allowed": Leaf.of(want.allowed)}, kind


def _unpacked(arrays: Mapping[str, Leaf], kind: Mapping[str, Any]) -> Expected:
    from evaluator.precision import Yardstick

    yardstick = Yardstick(**kind["yardstick"]) if kind["yardstick"] else None
    return Expected(arrays["values"].values, kind["dtype"], np.asarray(arrays["allowed"].values), yardstick)
