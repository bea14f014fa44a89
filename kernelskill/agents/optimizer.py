"""Optimizer: has the writer apply the one chosen method, has the result reviewed, and judges what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluator.precision import CLASSES, allowed_classes
from evaluator.statistics import compare
from evaluator.types import Evaluation, Status
from kernelskill.agents.diagnoser import diagnose
from kernelskill.agents.planner import Planner
from kernelskill.agents.reviewer import Reviewer
from kernelskill.errors import WriterError
from kernelskill.memory.history import history_lines
from kernelskill.memory.run import Run
from kernelskill.methods import MethodCard, broken_promises
from kernelskill.model import Attempt, Decision, MethodApplication, Outcome, Task
from kernelskill.writers import CodeWriter, Request

MIN_GAIN = 1.02
"""Smaller modelled gains count as equal. Measured times are compared by their intervals (`evaluator.statistics`)."""
MODEL_TRUST = 1.15
"""Modelled times that differ by less cannot be told apart reliably (benchmarks/model)."""
MEASURED: Mapping[str, Outcome] = {"faster": "improved", "equal": "equal", "slower": "regressed"}


@dataclass(frozen=True)
class Optimizer:
    """One attempt: write, refuse duplicates, review, hold the code to the method's promise, compare times."""

    task: Task
    run: Run
    reviewer: Reviewer
    writer: CodeWriter
    cards: Mapping[str, MethodCard]

    def attempt(self, round_: int, parent: str, method: MethodApplication, decision: Decision) -> Attempt:
        """Never raises for what the writer or its code does: a failure is an attempt with its reason."""
        def edge(child: str, outcome: Outcome, message: str = "", **more: object) -> Attempt:
            return Attempt.model_validate(dict(round=round_, parent=parent, child=child, method=method, outcome=outcome,
                                               message=message, **more))

        try:
            source = self.writer.write(self.task, self.request(round_, parent, method, decision))
        except WriterError as error:
            return edge("", "not_written", str(error))
        child = self.run.keep_source(source)
        if child in self.run.graph:
            return edge(child, "duplicate", f"the same code as solution {child[:8]}, which was evaluated before")
        best = self.run.graph.evaluation(parent).time
        evaluation = self.reviewer.review(self.run.source_path(child), worth_us=best.time_us if best else None)
        if evaluation.status is not Status.PASSED:
            return edge(child, "failed", diagnose(evaluation), evaluation=evaluation)
        if imprecise := self._too_imprecise(evaluation):
            return edge(child, "failed", imprecise, evaluation=evaluation)
        broken = broken_promises(self.cards[method.method], decision.facts, self.reviewer.facts(source, evaluation))
        if broken:
            return edge(child, "off_method", "; ".join(broken), evaluation=evaluation)
        outcome, gain, message = self._compare(parent, evaluation)
        return edge(child, outcome, message, gain=gain, evaluation=evaluation)

    def request(self, round_: int, parent: str, method: MethodApplication, decision: Decision) -> Request:
        """What the writer is asked; made from the run's record alone, so it can be made again later."""
        planner = Planner(self.task, self.cards, self.run.config.device, self.run.config.mode)
        return planner.request(method, decision, self.run.source(parent), history_lines(self.run.graph, parent, round_),
                               self.run.graph.evaluation(parent))

    def _compare(self, parent: str, child: Evaluation) -> tuple[Outcome, float | None, str]:
        before, after = self.run.graph.evaluation(parent).time, child.time
        if before is None or after is None or before.provenance != after.provenance:
            return "equal", None, f"no time to compare: {child.time_unavailable or 'the parent has none'}"
        if after.provenance != "modelled":
            found = compare(before, after)
            return MEASURED[found.verdict], found.ratio, f"95 % interval of the ratio: {found.low:.3f} to {found.high:.3f}"
        gain = before.time_us / after.time_us
        if gain < MIN_GAIN:
            return ("equal" if gain > 1 / MIN_GAIN else "regressed"), gain, ""
        return "improved", gain, "within the time model's error" if gain < MODEL_TRUST else ""

    def _too_imprecise(self, child: Evaluation) -> str:
        """Why the task does not permit the child's precision; "" where it does. What the start had may stay."""
        graph = self.run.graph
        own = graph.evaluation(graph.start).precision_class
        lowest = [own] if own else []
        permitted = allowed_classes([*self.task.allow, *lowest])
        if child.precision_class is None or child.precision_class in permitted:
            return ""
        return (f"precision class {child.precision_class} (its error is {child.precision_ratio:.3g} times the reference's), "
                f"and the task permits {', '.join(name for name in CLASSES if name in permitted)}; keep full precision, or "
                f"permit it: --allow {child.precision_class}, or allow = [\"{child.precision_class}\"] in task.toml")

