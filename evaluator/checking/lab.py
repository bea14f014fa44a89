"""Where one solution is tried: expected values here, calls in the solution's own process, a fresh one when it dies."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evaluator.checking.special import special_expected
from evaluator.checking.types import CheckRequest, Example
from evaluator.checking.values import SPECIAL, cast, valued
from evaluator.conditions import Conditions
from evaluator.failures import Failure
from evaluator.inputs import Case
from evaluator.oracle import Oracle, Problem, TaskFault, Unjudgeable, load_oracle
from evaluator.runner import Ended, Runner
from evaluator.solutions import How
from evaluator.trees import leaves, map_leaves
from evaluator.types import Finding, Status
from evaluator.verify import has_buffers, with_buffers

SPARE_PROCESSES = {"sim": 12, "cuda": 24}
"""Forked before the reference is loaded. On a GPU an illegal access costs the process, and shrinking meets many."""
CALL_SECONDS = 20.0
"""One call may take this long."""
KEPT_EXPECTATIONS = 64
LOOKS = 8
"""Further estimates of the conditioning before an error near the allowed one is held against a solution."""
COST_OF_CALL, COST_OF_PROCESS, INSTRUCTIONS_PER_SECOND = 0.006, 0.5, 7e6
"""What a call, and a process to make it in, cost in nominal seconds, and how many simulated warp instructions cost one more:
about what they take on one core of a 2020s server, always the same, so that a check does the same however busy it is."""
SLOW_COST = 0.3
"""Nominal seconds of a call that is slow."""
MOST_COST, TELLING = 1.0, 256
"""Nominal seconds that a call may be bound to cost, judged by one on a size of at least so much."""
SLOW_CALLS = 2
"""After so many slow calls of smaller examples, a larger one is left out."""


class Excluded(Exception):
    """The task has no such input, or its reference says nothing firm about it."""


class Spent(Exception):
    """No time, or no process, is left."""


@dataclass(frozen=True)
class Posed:
    """An example with its data and what is expected."""

    example: Example
    problem: Problem
    expected: Any


@dataclass(frozen=True)
class Answer:
    """What one call gave: outputs arranged as the oracle does, or a failure."""

    outputs: Any = None
    failure: Failure | None = None
    modified: tuple[str, ...] = ()
    """Inputs that the call changed, as places."""
    launched: int = 0
    overwritten: bool = False
    """It changed what the call before it had returned."""


@dataclass
class Lab:
    """One solution, its oracle, and the processes to run it in. Make it before anything secret is in memory."""

    request: CheckRequest
    deadline: float
    calls: int = 0
    cost: float = 0.0
    """Nominal seconds of the calls so far."""
    warnings: list[Finding] = field(default_factory=list)
    slow: list[dict[str, int]] = field(default_factory=list)
    """Sizes of the calls that cost much."""
    refused: dict[tuple[tuple[str, int], ...], str] = field(default_factory=dict)
    """Sizes that the task excludes, with its own words."""

    def __post_init__(self) -> None:
        count = 1 + SPARE_PROCESSES[self.request.request.mode]
        self._runners = [Runner(self.request.request, "verify", self.deadline) for _ in range(count)]
        self._loaded = False
        self._executed = 0
        """Simulated instructions that the present process has told of."""
        self._costs: list[tuple[Mapping[str, int], float]] = []
        self._posed: dict[Example, Posed] = {}
        self.oracle: Oracle = load_oracle(self.request.request.task)

    def close(self) -> None:
        """Ends every process."""
        for runner in self._runners:
            runner.close()

    def too_slow(self, example: Example) -> bool:
        """Whether examples that are in no size larger cost much already, or this one is bound to."""
        if any(self._scaled(sizes, cost, example.sizes) > MOST_COST for sizes, cost in self._costs):
            return True
        smaller = [s for s in self.slow if all(example.sizes.get(name, 0) >= value for name, value in s.items())]
        return len(smaller) >= SLOW_CALLS

    @staticmethod
    def _scaled(sizes: Mapping[str, int], cost: float, larger: Mapping[str, int]) -> float:
        """`cost` as the one size that is larger in `larger` grows; 0 where others differ, or are too small to tell."""
        differing = [name for name in sizes if sizes[name] != larger.get(name)]
        if len(differing) != 1 or sizes[differing[0]] < TELLING:
            return 0.0
        return cost * larger[differing[0]] / sizes[differing[0]]

    @property
    def time_left(self) -> float:
        """Seconds."""
        return self.deadline - time.monotonic()

    def pose(self, example: Example) -> Posed:
        """The example's data and expected outputs. Raises Excluded."""
        if example in self._posed:
            return self._posed[example]
        problem = self.problem(example)
        posed = Posed(example, problem, self.expected(example, problem))
        if len(self._posed) >= KEPT_EXPECTATIONS:
            self._posed.pop(next(iter(self._posed)))
        self._posed[example] = posed
        return posed

    def problem(self, example: Example) -> Problem:
        """The example's data. Raises Excluded where the task has no such sizes."""
        key = tuple(sorted(example.sizes.items()))
        if key in self.refused:
            raise Excluded(self.refused[key])
        try:
            own = self.oracle.own_problem(example.sizes, example.seed)
        except TaskFault as fault:
            self.refused[key] = str(fault)
            raise Excluded(str(fault)) from fault
        problem = valued(own, example.values, example.seed)
        return cast(problem, example.dtype) if example.dtype else problem

    def expected(self, example: Example, problem: Problem) -> Any:
        """Tree of Expected. Raises Excluded."""
        try:
            if example.values in SPECIAL or example.dtype:
                return special_expected(self.oracle, problem, example.seed)
            return self.oracle.expected(problem, case_of(example))
        except TaskFault as fault:
            self.refused[tuple(sorted(example.sizes.items()))] = str(fault)
            raise Excluded(str(fault)) from fault
        except Unjudgeable as reason:
            raise Excluded(str(reason)) from reason

    def second_look(self, posed: Posed) -> Any:
        """The example's expected outputs with the largest error that any of several estimates of the conditioning allows.

        An estimate moves the inputs at random a few times; of thousands of elements one may be hardly moved by chance.
        """
        found = [posed.expected]
        for number in range(1, LOOKS + 1):
            other = posed.example.model_copy(update={"seed": posed.example.seed + number})
            try:
                found.append(self.expected(other, posed.problem))
            except Excluded:
                continue
        allowed = {path: np.max([dict(leaves(tree, "out"))[path].allowed for tree in found], axis=0)
                   for path, _ in leaves(posed.expected, "out")}
        wider = {id(want): replace(want, allowed=allowed[path]) for path, want in leaves(posed.expected, "out")}
        return map_leaves(lambda want: wider[id(want)], posed.expected)

    def call(self, posed: Posed, how: How = "fresh", conditions: Conditions | None = None) -> Answer:
        """One call of the solution. Raises Spent."""
        if self.time_left <= 0:
            raise Spent("the time is over")
        runner = self._runner()
        runner.allow_until(min(self.deadline, time.monotonic() + CALL_SECONDS))
        self.calls += 1
        self.cost += COST_OF_CALL
        layout = posed.example.layout
        conditions = (conditions or Conditions()).model_copy(update={"layout": layout, "watched": self.calls == 1})
        try:
            if self.oracle.spec.kind == "kernelbench" and (how == "fresh" or has_buffers(posed.expected)):
                runner.construct(posed.problem)
            keep = not self.oracle.changes_inputs
            began = time.monotonic()
            reply = runner.call(posed.problem.inputs, how, case_of(posed.example), keep, conditions)
        except Ended as ended:
            self._charge(ended.reply or {}, posed.example, 0.0)
            self._lost(runner, ended)
            return Answer(failure=ended.failure)
        self._charge(reply, posed.example, time.monotonic() - began)
        return self._answer(reply, posed.expected, layout == "contiguous")

    def renew(self) -> None:
        """The next call meets a process that has called nothing yet. Raises Spent without one."""
        if self._loaded:
            self._drop()
            self._runner()

    def load(self) -> None:
        """Imports the solution. Raises Ended."""
        self._runners[0].allow_until(self.deadline)
        self._runners[0].load()
        self._loaded = True

    def _runner(self) -> Runner:
        if not self._runners:
            raise Spent("the solution's process died too often")
        if not self._loaded:
            try:
                self.cost += COST_OF_PROCESS
                self.load()
            except Ended as ended:
                raise Spent(f"the solution cannot be imported again: {ended.failure.message}") from ended
        return self._runners[0]

    def _charge(self, reply: Mapping[str, Any], example: Example, seconds: float) -> None:
        """Adds what the call costs beyond the least: by its instructions in the simulator, by the clock on a GPU."""
        executed = int(reply.get("executed", self._executed))
        cost = seconds if self.request.request.mode == "cuda" else (executed - self._executed) / INSTRUCTIONS_PER_SECOND
        self._executed = executed
        self.cost += cost
        self._costs.append((example.sizes, cost))
        if cost > SLOW_COST:
            self.slow.append(dict(example.sizes))

    def _lost(self, runner: Runner, ended: Ended) -> None:
        """A process that died, hangs, or whose GPU context is broken is replaced."""
        answered = ended.reply is not None
        if not answered or (self.request.request.mode == "cuda" and ended.failure.status is Status.RUNTIME_ERROR):
            self._drop()

    def _drop(self) -> None:
        self._runners.pop(0).close()
        self._loaded, self._executed = False, 0

    def _answer(self, reply: Mapping[str, Any], expected: Any, plain: bool) -> Answer:
        findings = [Finding.model_validate(finding) for finding in reply["findings"]]
        for finding in findings:
            known = any((f.kind, f.kernel, f.line) == (finding.kind, finding.kernel, finding.line) for f in self.warnings)
            if finding.severity == "warning" and not known and plain:
                self.warnings.append(finding)
        error = next((finding for finding in findings if finding.severity == "error"), None)
        if error is None and reply.get("bands"):
            error = Finding(kind="out_of_bounds", message="; ".join(map(str, reply["bands"][:3])))
        if error is not None:
            return Answer(failure=Failure(Status.RUNTIME_ERROR, error.message, findings=(error,)))
        return Answer(with_buffers(reply["data"], expected), None, tuple(reply["modified"]), int(reply.get("launched", 1)),
                      bool(reply.get("overwritten")))


def case_of(example: Example) -> Case:
    """The example in the verification's terms."""
    return Case(dict(example.sizes), example.values, example.seed)

