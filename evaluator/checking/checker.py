"""One check: a CheckRequest in, a CheckReport out. Runs in the judge's process; the solution runs in its own."""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from evaluator.checking.counterexample import counterexample
from evaluator.checking.dangers import Dangers, find_dangers
from evaluator.checking.declaration import DeclarationError, read_declaration
from evaluator.checking.lab import Excluded, Lab, Spent
from evaluator.checking.properties import (
    Scenario,
    Trial,
    Violation,
    after_other_calls,
    late_stream,
    one_call,
    other_layout,
    other_memory,
    other_order,
    repeated,
    special_call,
)
from evaluator.checking.relation_scenario import related
from evaluator.checking.relations import relations_of
from evaluator.checking.search import Fault, Search
from evaluator.checking.state import blamed_on_calls
from evaluator.checking.strategies import FailedBefore, Space, examples_of, prepared_of, space_of, sweep
from evaluator.checking.types import (
    LAYOUTS,
    TITLES,
    CheckReport,
    CheckRequest,
    Example,
    Layout,
    Outcome,
    Property,
    Verdict,
)
from evaluator.checking.values import FINITE, SPECIAL
from evaluator.environment import environment
from evaluator.oracle import TaskFault
from evaluator.runner import Ended
from evaluator.types import Status

WORK_LIMIT = {"sim": 1 << 14, "cuda": 1 << 20}
"""Largest product of the sizes of a drawn example (`strategies.LONG` times as much where all sizes but one are the least)."""
LEAST_COST, COST_OF_EXAMPLE = 4.0, 0.05
"""Nominal seconds (`lab.COST_OF_CALL`) of the whole check, and more for each random example that is asked for: 100 of them take
less than ten seconds on a core of its own. What stops a search is counted, not measured: the same seed finds the same."""
LARGEST_SHARE, CALLS_OF_PAIR = 0.5, 4.0
"""What the first search may take, which shows most faults; calls of an example that is a pair, over those of another."""
REST_COST = 2.0
"""Nominal seconds for all that is left once a property is violated: there is something to mend, and then a next check."""
ONE_CALL: tuple[Property, ...] = ("runs", "agreement", "written", "inputs", "bounds", "synchronisation")
"""What one call shows; the last of them in the simulator only."""
COMPARED = ("memory", "block_order", "calls", "stream")
"""Properties whose faults are differences between two answers: where the second look shows none, neither is repeatable."""
AFTER_CALLS: tuple[Property, ...] = ("special_values", "memory", "repeatable", "block_order", "layouts", "stream")
"""Not tested where a call's result depends on earlier ones: all would show that once more."""
MARGIN_SECONDS = 2.0
NOTE_CHARACTERS = 160


class Refused(Exception):
    """Nothing can be checked."""


def check_here(request: CheckRequest, sandbox: str = "rlimits") -> CheckReport:
    """Checks in this process (the runners are forks of it). Whatever the solution does, the answer is a report."""
    began, used = time.monotonic(), _processor_seconds()
    try:
        report = _Check(request, sandbox, began).run()
        return report.model_copy(update={"processor_s": round(_processor_seconds() - used, 3)})
    except Refused as reason:
        message = str(reason)
    except TaskFault as fault:
        message = f"the task itself cannot be judged: {fault}"
    return CheckReport(task=request.request.task.name, solution=request.request.solution, outcome="refused", message=message,
                       environment=environment(request.request, sandbox), seed=request.request.seed or 0,
                       seconds=round(time.monotonic() - began, 3))


def _processor_seconds() -> float:
    """Of this process and of those that it started and that have ended."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


@dataclass(frozen=True)
class Experiment:
    """One search and the properties that it decides."""

    properties: tuple[Property, ...]
    scenario: Scenario
    space: Space
    examples: int
    prepared: Sequence[Example] = ()
    pairs: bool = False
    title: str = ""
    """Of a relation."""
    note: str = ""
    counts: bool = True
    """False: a fault is reported, not held against the solution."""

    @property
    def weight(self) -> float:
        """What it costs beside the others."""
        return (self.examples + len(self.prepared)) * (CALLS_OF_PAIR if self.pairs else 1.0)


class _Check:
    """One check in progress."""

    def __init__(self, request: CheckRequest, sandbox: str, began: float) -> None:
        self.request, self.began = request, began
        self.inner = request.request
        self.environment = environment(self.inner, sandbox)
        self.seed = self.inner.seed or 0
        self.gpu = self.inner.mode == "cuda"
        self.verdicts: list[Verdict] = []
        self.after_calls: list[Fault] = []
        """Faults of single calls that a fresh process does not show."""
        self.anchors: list[Example] = []
        """Examples of the task's own check sizes."""
        self.examples = 0
        try:
            source = Path(self.inner.solution).read_text(encoding="utf-8")
            self.declaration = read_declaration(source, self.inner.solution, dict(self.inner.task.sizes))
            self.dangers: Dangers = find_dangers(source)
        except (OSError, UnicodeDecodeError) as error:
            raise Refused(f"the solution cannot be read: {error}") from error
        except DeclarationError as error:
            raise Refused(str(error)) from error
        except SyntaxError as error:
            raise Refused(f"{self.inner.solution}:{error.lineno}: {error.msg}") from error

    def run(self) -> CheckReport:
        """The report."""
        from evaluator.worker import guard_findings, preload

        try:
            rejected = [finding for finding in guard_findings(self.inner) if finding.severity == "error"]
            if rejected:
                raise Refused(f"{rejected[0].file}:{rejected[0].line}: {rejected[0].message}")
            preload(self.inner)
        except Ended as ended:
            raise Refused(ended.failure.message) from ended
        lab = Lab(self.request, self.began + self.inner.timeout_s - MARGIN_SECONDS)
        try:
            return self._searched(lab)
        finally:
            lab.close()

    def _searched(self, lab: Lab) -> CheckReport:
        trial = Trial(lab, self.dangers.float_atomics, self.gpu)
        anchors = self._first_call(lab)
        self.anchors = [Example(sizes=sizes, seed=self.seed) for sizes in anchors[:2]]
        experiments = list(self._experiments(lab, anchors))
        most, shown = self.request.cost or LEAST_COST + self.request.examples * COST_OF_EXAMPLE, False
        for position, experiment in enumerate(experiments):
            if self.after_calls or ("relation" in experiment.properties and self._violated()):
                continue
            if experiment.pairs:
                lab.renew()  # what it kept from the calls so far is no fault of the shapes that are drawn now
            if self._violated() and not shown:
                most, shown = min(most, lab.cost + REST_COST), True
            left = max(most - lab.cost, 0.0)
            weight = experiment.weight / sum(other.weight for other in experiments[position:])
            self._decide(experiment, trial, left * (LARGEST_SHARE if position == 0 else weight))
        self._not_tested()
        return self._report(lab)

    def _first_call(self, lab: Lab) -> list[dict[str, int]]:
        """The check sizes that the task accepts. Raises Refused where the solution cannot be imported, built or simulated."""
        try:
            lab.load()
        except Ended as ended:
            raise Refused(f"{ended.failure.status.value}: {ended.failure.message}") from ended
        lab.oracle.refuse_without_sizes()
        anchors, reasons = [], []
        for sizes in sorted(lab.oracle.spec.check_sizes or (self.inner.task.sizes,), key=lambda s: math.prod(s.values())):
            try:
                posed = lab.pose(Example(sizes=dict(sizes), seed=self.seed))
            except Excluded as reason:
                reasons.append(str(reason))
                continue
            anchors.append(dict(sizes))
            failure = lab.call(posed).failure if len(anchors) == 1 else None
            if failure and failure.status in (Status.COMPILE_ERROR, Status.UNSUPPORTED, Status.REJECTED):
                raise Refused(f"{failure.status.value}: {failure.message}")
        if not anchors:
            raise TaskFault(reasons[0])
        return anchors

    def _space(self, lab: Lab, values: Sequence[str], **more: Any) -> Space:
        limit = self.request.work_limit or WORK_LIMIT[self.inner.mode]
        return space_of(lab.oracle.spec, self.declaration, self.dangers.numbers, values, limit, self.request.known, **more)

    def _experiments(self, lab: Lab, anchors: list[dict[str, int]]) -> Iterator[Experiment]:
        n = self.request.examples
        finite = self._space(lab, tuple(FINITE), dtypes=("", *self.declaration.dtypes))
        swept = list(sweep(finite, self.dangers.numbers, anchors, self.seed))
        short = [example for example in swept if math.prod(example.sizes.values()) <= finite.work_limit]
        few = short[:: max(1, len(short) // 12)]
        yield Experiment(ONE_CALL[:-1] if self.gpu else ONE_CALL, one_call, finite, n, swept)
        if self.declaration.values == "any":
            special = self._space(lab, tuple(SPECIAL))
            prepared = [Example(sizes=sizes, values=kind, seed=i) for sizes in anchors[:2] for i, kind in enumerate(SPECIAL)]
            yield Experiment(("special_values",), special_call, special, n // 3 + 1, prepared)
        yield Experiment(("memory",), other_memory, finite, n // 4 + 1, few)
        yield Experiment(("repeatable",), repeated, finite, n // 6 + 1)
        if not self.gpu:
            yield Experiment(("block_order",), other_order, finite, n // 4 + 1, few)
        yield Experiment(("calls",), after_other_calls, finite, n // 4 + 1, pairs=True)
        if self.gpu:
            yield Experiment(("stream",), late_stream, finite, n // 6 + 1)
        for layout in LAYOUTS[1:]:
            yield self._layout(lab, layout, anchors)
        spec = lab.oracle.spec
        # Else the shape may be one that nobody promised.
        resize = spec.kind == "native" and spec.shapes == "general" and not self.declaration.sizes
        for relation in relations_of(lab, self._relation_examples(lab, anchors), resize):
            yield Experiment(("relation",), related(relation), finite, n // 16 + 1, few[:4], title=relation.title)

    def _layout(self, lab: Lab, layout: Layout, anchors: list[dict[str, int]]) -> Experiment:
        promised = layout in self.declaration.layouts or layout in self.request.layouts
        space = self._space(lab, ("task", "normal"), layouts=(layout,))
        prepared = [Example(sizes=sizes, layout=layout, seed=1) for sizes in anchors]
        count = self.request.examples // 6 + 1 if promised else 1
        return Experiment(("layouts",), other_layout, space, count, prepared, title=f"{layout} inputs", counts=promised)

    def _relation_examples(self, lab: Lab, anchors: list[dict[str, int]]) -> list[Example]:
        native = lab.oracle.spec.kind == "native" and lab.oracle.spec.shapes == "general"
        distinct = [dict(zip(self.inner.task.sizes, (5, 7, 3, 11, 13), strict=False))] if native else []
        found = []
        for seed, sizes in enumerate([*distinct, *anchors[::-1]]):
            example = Example(sizes=sizes, values="normal", seed=seed)
            try:
                lab.pose(example)
            except (Excluded, Spent):
                continue
            found.append(example)
        return found[:3]

    def _decide(self, experiment: Experiment, trial: Trial, share: float) -> None:
        search = Search(trial, experiment.scenario, share, shrinks=experiment.counts)
        known = [example for example in self.request.known if not experiment.pairs]
        strategy: Any = examples_of(experiment.space)
        prepared = [*(e for e in known if experiment.space.choices(e)), *prepared_of(experiment.space, experiment.prepared)]
        search.run(st.tuples(strategy, strategy) if experiment.pairs else strategy, prepared,
                   partial(FailedBefore, experiment.space), experiment.examples, self.seed)
        self.examples += search.judged
        if experiment.counts:
            search.walk(experiment.space.smaller)
        if experiment.scenario in (one_call, special_call):
            self._settle(search, trial, experiment.space)
        for name in [name for name, fault in search.faults.items() if fault.flaky and name in COMPARED]:
            search.faults["repeatable"] = search.faults.pop(name)
            search.judged, search.spent = 0, "the result is not repeatable"
        for name in dict.fromkeys((*experiment.properties, *search.faults)):
            self.verdicts.append(self._verdict(name, experiment, search, trial.lab))

    def _settle(self, search: Search, trial: Trial, space: Space) -> None:
        """A fault of a single call that a fresh process does not show is a matter of what was called before."""
        for name, fault in list(search.faults.items()):
            try:
                trial.lab.renew()
                one_call(trial, fault.example)
            except Violation:
                continue
            except Spent:
                return
            self.after_calls.append(search.faults.pop(name))
        if self.after_calls:
            self.verdicts.append(blamed_on_calls(self.after_calls[0], trial, space, self.anchors))

    def _verdict(self, name: Any, experiment: Experiment, search: Search, lab: Lab) -> Verdict:
        title = TITLES[name] if not experiment.title else f"{TITLES[name]}: {experiment.title}"
        fault: Fault | None = search.faults.get(name)
        if fault is None:
            outcome: Outcome = "held" if search.judged else "not_tested"
            left_out = f"{search.left_out} larger examples left out: they take too long here" if search.left_out else ""
            note = search.spent or left_out or ("" if search.judged else "no example got as far")
            return Verdict(property=name, title=title, outcome=outcome, examples=search.judged, note=note)
        note = "" if experiment.counts else f"nobody promised it: {fault.violation.message}"[:NOTE_CHARACTERS]
        return Verdict(property=name, title=title, outcome="violated" if experiment.counts else "not_promised",
                       examples=search.judged, note=note, counterexample=counterexample(fault, lab, title))

    def _violated(self) -> bool:
        return any(verdict.outcome == "violated" for verdict in self.verdicts)

    def _not_tested(self) -> None:
        kept = "what earlier calls left behind changes the result: mend that first"
        reasons: dict[Property, str] = {
            **(dict.fromkeys(AFTER_CALLS, kept) if self.after_calls else {}),
            "relation": "other properties are violated" if self._violated() else "the reference has none",
            **({"special_values": "the solution declares finite values only"} if self.declaration.values == "finite" else {}),
            **({"block_order": "a GPU chooses the order itself; repeated calls stand in"} if self.gpu else {}),
            **({} if self.gpu else {"stream": "the simulator has one stream; run with --device cuda"}),
            "synchronisation": "only the simulator sees races; run with --device sim",
        }
        seen = {verdict.property for verdict in self.verdicts}
        for name, reason in reasons.items():
            if name not in seen:
                self.verdicts.append(Verdict(property=name, title=TITLES[name], outcome="not_tested", note=reason))

    def _report(self, lab: Lab) -> CheckReport:
        order = list(TITLES)
        verdicts = sorted(_merged(self.verdicts), key=lambda verdict: order.index(verdict.property))
        violated = [verdict for verdict in verdicts if verdict.outcome == "violated"]
        seconds = time.monotonic() - self.began
        message = f"{len(violated)} of {len(verdicts)} properties are violated" if violated else (
            f"all {sum(v.outcome == 'held' for v in verdicts)} tested properties hold")
        return CheckReport(
            task=self.inner.task.name, solution=self.inner.solution, outcome="failed" if violated else "passed",
            message=message, environment=self.environment, declaration=self.declaration, seed=self.seed,
            verdicts=tuple(verdicts),
            warnings=tuple(lab.warnings), notes=tuple(sorted(lab.oracle.notes)), examples=self.examples,
            calls=lab.calls, seconds=round(seconds, 3),
            dangers=self.dangers.numbers)


def _merged(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """One verdict a title: several searches may find the same property violated; the first one's example is kept."""
    kept: dict[str, Verdict] = {}
    for verdict in verdicts:
        known = kept.get(verdict.title)
        if known is None or (known.outcome in ("held", "not_tested") and verdict.outcome not in ("held", "not_tested")):
            kept[verdict.title] = verdict
        elif known.outcome == verdict.outcome == "held":
            kept[verdict.title] = known.model_copy(update={"examples": known.examples + verdict.examples})
    return list(kept.values())
