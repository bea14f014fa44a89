"""Timing as the judge conducts it: which call gets what, who is timed when, and whether a timed call computed the right thing.

The solution and each baseline live in processes of their own; the judge asks them for single calls (`timing.py`), in blocks
that take turns, so that both see the same clocks and temperatures. Every call gets its own factor on the data and its own
shift of the pointers. Of some timed calls of the solution, drawn here, elements of the outputs are compared with the reference.

Sampling ends when the median is known well enough, whatever it is: its interval is looked at after LOOKS samples, and its
width alone decides (a fixed-width sequential interval: Chow and Robbins, "On the asymptotic theory of fixed-width sequential
confidence intervals for the mean", Ann. Math. Statist. 36(2), 1965). A time that would please does not end it sooner.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from evaluator.comparison import Expected, Verdict, compare
from evaluator.device_arrays import ALIGNMENT
from evaluator.gpu_state import gpu_state
from evaluator.inputs import TASK, Case, is_labels
from evaluator.oracle import Problem
from evaluator.precision import Precision
from evaluator.runner import Ended, Runner
from evaluator.soon import soon
from evaluator.statistics import known, summarise
from evaluator.timing import SHIFT_BYTES, positions, scaled
from evaluator.trees import Leaf, leaves, map_leaves, total_bytes
from evaluator.types import GpuState, Mismatch, Status, TimeEstimate

SAMPLES = (20, 200)
BUDGET_SECONDS = 1.0
"""Samples of one side are taken until this much time is spent, at least SAMPLES[0] and at most SAMPLES[1] of them."""
SLOW_SECONDS, LEAST_SAMPLES = 10.0, 7
"""Where SAMPLES[0] calls take longer than this, so many are enough."""
FIRST_SAMPLES = 4
"""Calls that tell how many the budget allows."""
LOOKS = (40, 80, 160)
"""Samples after which sampling may end."""
CHECKED_EARLY = 3
"""Timed calls before the first look that are compared with the reference; between two looks it is one."""
AFTERWARDS_US, AFTERWARDS_CALLS = 100_000.0, 1000
"""After the timing the solution is called for so long, at most so often, and then compared once more: work that is skipped
from some number of calls on shows even where fewer of them were timed."""
BLOCK = 6
"""Calls of one side in a row; the first of a block, after the other side's turn, is not counted."""
FACTOR_BITS = 20
LEAST_FACTOR = 0.9
"""Data is multiplied by a fraction of so many bits between this and 1: exact in float32, and in the range of any task."""
CACHED_SETS, SETS = 4, 2
"""Sets of input buffers: more where one set fits into the L2 cache."""
SINGLE_SET_BYTES = 16 << 30
COMPARED_ELEMENTS = 1 << 20
"""Elements of each output that are compared."""
LAUNCH_BOUND_US = 200.0
"""Below it launches can be a large part of a call: it is timed as a graph replay as well."""


class WrongWhenTimed(Exception):
    """A timed call at the full sizes gave a wrong result."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.message)
        self.verdict = verdict


class OtherEnded(Exception):
    """The baseline's process failed, died or was late; the message says how."""


class Checkpoint(NamedTuple):
    """What the reference gives for one factor on the data, at some elements of every output."""

    factor: float
    seed: int
    expected: dict[str, Expected]
    """By path in the output tree; one-dimensional."""
    shapes: list[list[int]]
    """Full shapes of the outputs, in the same order."""


Reference = Callable[[Problem, int, int], tuple[dict[str, Expected], list[list[int]]]]
"""(problem, seed, count) -> expected elements at `positions` and the outputs' full shapes."""


@dataclass
class Session:
    """One task's full-size problem, and everything that is timed on it."""

    problem: Problem
    sizes: dict[str, int]
    l2_bytes: int
    rng: np.random.Generator
    reference: Reference
    deadline: float = float("inf")
    """`time.monotonic()` by which sampling stops early."""
    kernelbench: bool = False
    states: list[GpuState] = field(default_factory=list)
    can_check: bool = True
    """False: the reference does not run at the full sizes."""
    exact: bool = True
    """Whether what is timed must keep the task's tolerance."""
    checked: int = 0
    """Timed calls that were compared with the reference."""
    _checkpoint: Checkpoint | None = None
    _coming: Future[Checkpoint] | None = None

    def prepare(self, runner: Runner) -> dict[str, Any]:
        """Gives a process the inputs; its reply (`outputs`, `device`). Raises Ended."""
        return runner.time("prepare", dict(self.problem.inputs), sets=self.sets, scaled=self._scaled_paths())

    @property
    def sets(self) -> int:
        """How many sets of input buffers take turns."""
        size = total_bytes(self.problem.inputs)
        return 1 if size > SINGLE_SET_BYTES else SETS if size > self.l2_bytes else CACHED_SETS

    def alone(self, runner: Runner, precision: Precision) -> TimeEstimate:
        """Times a solution and compares some of the timed calls with the reference. Raises Ended, WrongWhenTimed."""
        self.note_state()
        samples = [self.sample(runner)]  # it is slow in other ways, too
        began = time.monotonic()
        samples += [self.sample(runner) for _ in range(FIRST_SAMPLES - 1)]
        count = _planned((time.monotonic() - began) / (FIRST_SAMPLES - 1))
        for look in (*(look for look in LOOKS if look < count), count):
            checked = self._drawn(len(samples), look, CHECKED_EARLY if len(samples) == FIRST_SAMPLES else 1)
            while len(samples) <= look:
                samples.append(self.checked_sample(runner, precision) if len(samples) in checked else self.sample(runner))
            if known(samples[1:]):
                break
        self.note_state()
        return summarise(samples[1:])

    def _drawn(self, first: int, last: int, count: int) -> set[int]:
        """Which of the calls `first` to `last` are compared."""
        return set(self.rng.choice(np.arange(first, last + 1), min(count, last + 1 - first), replace=False).tolist())

    def afterwards(self, runner: Runner, time_us: float, precision: Precision) -> None:
        """Calls the solution many times more and compares one last call. Raises Ended, WrongWhenTimed."""
        runner.time("repeat", calls=int(min(max(AFTERWARDS_US / max(time_us, 1.0), 1), AFTERWARDS_CALLS)))
        self.checked_sample(runner, precision)

    def checked_sample(self, runner: Runner, precision: Precision, graph: bool = False) -> float:
        """A timed call whose outputs are compared with the reference's. Raises Ended, WrongWhenTimed."""
        if not self.can_check:
            return self.sample(runner, graph=graph)
        microseconds = self.sample(runner, self.checkpoint().factor, graph)
        self.check(runner, self.checkpoint(), precision, self.exact)
        self.checked += 1
        return microseconds

    def in_turns(
        self, first: Runner, second: Runner, *, graphs: tuple[bool, bool] = (False, False)
    ) -> tuple[TimeEstimate, TimeEstimate]:
        """Times two processes in alternating blocks (first second second first ...). Of every second block of the first, one
        call is compared with the reference. Raises Ended, WrongWhenTimed; OtherEnded for the second."""
        samples: tuple[list[float], list[float]] = ([], [])
        began, turn = time.monotonic(), 0
        while self._wants_more(min(map(len, samples)), began, 2.0) and not (
                min(map(len, samples)) in LOOKS and all(map(known, samples))):
            for side in ((0, 1), (1, 0))[turn % 2]:
                if side == 0:
                    samples[0].extend(self._own_block(first, graphs[0], checked=turn % 2 == 1))
                    continue
                try:
                    samples[1].extend([self.sample(second, graph=graphs[1]) for _ in range(BLOCK)][1:])
                except Ended as ended:
                    raise OtherEnded(ended.failure.message) from ended
            turn += 1
        return summarise(samples[0], _provenance(graphs[0])), summarise(samples[1], _provenance(graphs[1]))

    def _own_block(self, runner: Runner, graph: bool, checked: bool) -> list[float]:
        chosen = int(self.rng.integers(1, BLOCK)) if checked else -1
        return [
            self.checked_sample(runner, Precision(), graph) if call == chosen else self.sample(runner, graph=graph)
            for call in range(BLOCK)
        ][1:]

    def replayed(self, runner: Runner, time_us: float) -> tuple[TimeEstimate | None, str]:
        """The time as a CUDA graph replay, or why there is none; (None, "") where launches hardly matter. Raises Ended."""
        if time_us > LAUNCH_BOUND_US:
            return None, ""
        reason = str(runner.time("graph")["reason"])
        if reason:
            return None, f"the call cannot be captured as a CUDA graph: {reason}"
        samples: list[float] = []
        began = time.monotonic()
        while self._wants_more(len(samples) - 1, began, 0.5) and not (len(samples) - 1 in LOOKS and known(samples[1:])):
            samples.append(self.sample(runner, graph=True))
        return summarise(samples[1:], "cuda_graph"), ""

    def sample(self, runner: Runner, factor: float | None = None, graph: bool = False) -> float:
        """Microseconds of one call."""
        factor = self._factor() if factor is None else factor
        shift = int(self.rng.integers(0, SHIFT_BYTES // ALIGNMENT)) * ALIGNMENT
        reply = runner.time("sample", set=int(self.rng.integers(self.sets)), shift=shift, scale=factor, graph=graph)
        return float(reply["us"])

    def begin_reference(self) -> None:
        """Has the checkpoint computed in a thread, while something else is done that is not timed."""
        self._coming = soon(self._checkpoint_maker())

    def checkpoint(self) -> Checkpoint:
        """The reference's outputs for one factor; computed once. Raises TaskFault, Ended of the reference's process."""
        if self._checkpoint is None:
            self._checkpoint = self._coming.result() if self._coming else self._checkpoint_maker()()
        return self._checkpoint

    def _checkpoint_maker(self) -> Callable[[], Checkpoint]:
        """What computes the checkpoint; everything that is drawn for it is drawn now."""
        factor, seed = self._factor(), int(self.rng.integers(1 << 32))
        names, inputs = set(self._scaled_paths()), dict(self.problem.inputs)
        wanted = {id(leaf) for path, leaf in leaves(inputs, "") if path in names}

        def make() -> Checkpoint:
            changed = map_leaves(partial(_scaled_where, wanted, factor), inputs)
            expected, shapes = self.reference(replace(self.problem, inputs=changed), seed, COMPARED_ELEMENTS)
            return Checkpoint(factor, seed, expected, shapes)

        return make

    def check(self, runner: Runner, checkpoint: Checkpoint, precision: Precision, exact: bool = True) -> None:
        """Compares the last call's outputs; without `exact` only their shapes. Raises WrongWhenTimed, Ended."""
        reply = runner.time("outputs", seed=checkpoint.seed, count=COMPARED_ELEMENTS)
        got = dict(leaves(reply["data"], "out"))
        case = Case(self.sizes, TASK, checkpoint.seed)
        if list(got) != list(checkpoint.expected) or reply["shapes"] != checkpoint.shapes:
            mismatch = Mismatch(output="out", case=str(case), sizes=self.sizes)
            message = f"at the full sizes the outputs have the shapes {reply['shapes']}, the reference's {checkpoint.shapes}."
            raise WrongWhenTimed(Verdict(Status.INCORRECT_SHAPE, message, mismatch))
        verdict = compare(checkpoint.expected, got, case)
        if verdict and exact:
            raise WrongWhenTimed(_located(verdict, checkpoint))
        precision.take(checkpoint.expected, got)

    def note_state(self) -> None:
        """Remembers the card's clocks, temperature and throttle reasons now."""
        state = gpu_state()
        if state:
            self.states.append(state)

    def _factor(self) -> float:
        whole = 1 << FACTOR_BITS
        return int(self.rng.integers(int(LEAST_FACTOR * whole), whole)) / whole

    def _wants_more(self, counted: int, began: float, share: float) -> bool:
        """Until the budget is spent, at least SAMPLES[0] and at most SAMPLES[1]; very slow calls get fewer."""
        now = time.monotonic()
        if now > self.deadline and counted >= LEAST_SAMPLES:
            return False
        least = SAMPLES[0] if now - began < SLOW_SECONDS else LEAST_SAMPLES
        return counted < least or (counted < SAMPLES[1] and now - began < share * BUDGET_SECONDS)

    def _scaled_paths(self) -> list[str]:
        """Inputs whose values are magnitudes: floating-point arrays that hold no labels."""
        return [
            path for path, leaf in leaves(dict(self.problem.inputs), "")
            if isinstance(leaf, Leaf) and leaf.is_float and leaf.shape and not is_labels(leaf)
        ]


def _planned(seconds: float) -> int:
    """How many calls of so many seconds are worth their time."""
    count = min(max(int(BUDGET_SECONDS / seconds), SAMPLES[0]), SAMPLES[1])
    return count if count * seconds < SLOW_SECONDS else max(int(SLOW_SECONDS / seconds), LEAST_SAMPLES)


def _scaled_where(wanted: set[int], factor: float, leaf: Any) -> Any:
    return scaled(leaf, factor) if id(leaf) in wanted else leaf


def _provenance(graph: bool) -> Literal["cuda_event", "cuda_graph"]:
    return "cuda_graph" if graph else "cuda_event"


def _located(verdict: Verdict, checkpoint: Checkpoint) -> Verdict:
    """The verdict with the element's place in the whole output."""
    mismatch = verdict.mismatch
    paths: Sequence[str] = list(checkpoint.expected)
    path = next((path for path in paths if repr(path) in mismatch.output), paths[0])
    output = paths.index(path)
    shape = checkpoint.shapes[output]
    where = positions(checkpoint.seed, output, int(np.prod(shape)), COMPARED_ELEMENTS)
    index = None
    if mismatch.index is not None:
        index = tuple(int(i) for i in np.unravel_index(int(where[mismatch.index[0]]), shape)) if shape else ()
    mismatch = mismatch.model_copy(update={"output": path, "index": index, "expected_shape": tuple(shape)})
    place = f"{path}[{', '.join(map(str, index))}]" if index else path
    message = (
        f"A timed call at the full sizes is wrong: {place} is {mismatch.got}, expected {mismatch.expected} (allowed error "
        f"{mismatch.allowed_error}); {mismatch.wrong_elements} of {mismatch.total_elements} compared elements are wrong. "
        "Calls on the small check sizes were right: look for work that is skipped on repeated calls, or limits that the "
        "full sizes exceed."
    )
    return Verdict(verdict.status, message, mismatch)
