"""Optimizer: has the writer apply the one chosen method, has the result reviewed, and judges what came of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluator.precision import CLASSES, allowed_classes
from evaluator.statistics import compare
from evaluator.types import Evaluation, Status, TimeEstimate
from kernelskill.agents.diagnoser import classify, imprecise, not_written, off_method
from kernelskill.agents.planner import Planner
from kernelskill.agents.repairer import repair_request, to_repair
from kernelskill.agents.reviewer import Reviewer
from kernelskill.errors import WriterError
from kernelskill.facts.changes import changed_parts
from kernelskill.memory.history import history_lines
from kernelskill.memory.run import Run
from kernelskill.methods import MethodCard, broken_precision, broken_promises, broken_scope, matching_methods
from kernelskill.model import Attempt, Decision, MethodApplication, Outcome, Part, Task
from kernelskill.writers import CodeWriter, Request

MIN_GAIN = 1.02
"""Smaller modelled gains count as equal. Measured times are compared by their intervals (`evaluator.statistics`)."""
MODEL_TRUST = 1.15
"""Modelled times that differ by less cannot be told apart reliably (benchmarks/model)."""
MEASURED: Mapping[str, Outcome] = {"faster": "improved", "equal": "equal", "slower": "regressed"}
NAMED = re.compile(r"^#\s*method:\s*([a-z][a-z0-9_]*)", re.MULTILINE)
"""How a writer that chooses freely says what it chose."""


@dataclass(frozen=True)
class Step:
    """One round's work: a method to apply to a solution, and the decision behind it."""

    round: int
    node: str
    method: MethodApplication
    decision: Decision


@dataclass(frozen=True)
class Optimizer:
    """One round: write, refuse duplicates, review, hold the code to the method's contract, compare times, repair."""

    task: Task
    run: Run
    reviewer: Reviewer
    writer: CodeWriter
    cards: Mapping[str, MethodCard]

    def attempts(self, step: Step) -> Iterator[Attempt]:
        """The round's attempt, then its repairs while one is due; each must be kept before the next is asked for.

        Where a part of the round is in the graph already, it goes on from there. What the writer or its code does never
        raises: a failure is an attempt with its diagnosis.
        """
        graph, request = self.run.graph, self.request(step)
        if not graph.of_round(step.round):
            yield self._bring(request, self._draft(step), step)
        while (failed := self.due(step.round)) is not None and failed.diagnosis is not None:
            mend = repair_request(request, failed.diagnosis, self.run.source(failed.child), self.run.source_path(failed.child))
            edge = {"parent": failed.child, "repair": failed.repair + 1}
            yield self._bring(mend, self._draft(step).model_copy(update=edge), step)

    def due(self, round_: int) -> Attempt | None:
        """The attempt of a round that is to be mended now."""
        return to_repair(self.run.graph.of_round(round_), self.run.config.repairs)

    def request(self, step: Step) -> Request:
        """What the writer is asked; made from the run's record alone, so it can be made again later."""
        planner = Planner(self.task, self.cards, self.run.config.device, self.run.config.mode)
        history = history_lines(self.run.graph, step.node, step.round) if self.run.config.short_term else ()
        request = planner.request(step.method, step.decision, self.run.source(step.node), history,
                                  self.run.graph.evaluation(step.node))
        return request.model_copy(update={"round": step.round})

    @staticmethod
    def _draft(step: Step) -> Attempt:
        return Attempt(round=step.round, parent=step.node, child="", method=step.method, outcome="not_written")

    def _bring(self, request: Request, draft: Attempt, step: Step) -> Attempt:
        """The draft with what became of the request."""
        try:
            source = self.writer.write(self.task, request)
        except WriterError as error:
            return draft.model_copy(update={"message": str(error), "diagnosis": not_written(str(error))})
        child = self.run.keep_source(source)
        draft = draft.model_copy(update={"child": child, "method": self._named(source, draft.method)})
        if child in self.run.graph:
            message = f"the same code as solution {child[:8]}, which was evaluated before"
            return draft.model_copy(update={"outcome": "duplicate", "message": message})
        return self._judged(draft, source, step)

    def _named(self, source: str, method: MethodApplication) -> MethodApplication:
        """The method that a freely choosing writer says it applied; a method that was asked for stays."""
        found = NAMED.search(source)
        chosen = found is not None and method.method not in self.cards and found[1] in self.cards
        return MethodApplication(method=found[1]) if found and chosen else method

    def _judged(self, draft: Attempt, source: str, step: Step) -> Attempt:
        evaluation = self.reviewer.review(self.run.source_path(draft.child), rival=self._rival(draft.method))
        draft = draft.model_copy(update={"evaluation": evaluation})
        if evaluation.status is not Status.PASSED:
            diagnosis = classify(evaluation)
            return draft.model_copy(update={"outcome": "failed", "message": diagnosis.summary, "diagnosis": diagnosis})
        if reason := self._too_imprecise(evaluation):
            return draft.model_copy(update={"outcome": "failed", "message": reason, "diagnosis": imprecise(reason)})
        outcome, gain, message = self._compare(self.run.graph.best, evaluation)
        judged = {"outcome": outcome, "gain": gain, "message": message, "opens": self._opens(draft.method, outcome)}
        broken = self._broken(draft.method.method, source, evaluation, step)
        if not broken:
            return draft.model_copy(update=judged)
        other = self._other_method(source, evaluation, step) if outcome == "improved" else ""
        if other:
            message = f"asked for {draft.method}, which it is not ({'; '.join(broken)}): kept as an attempt of {other}"
            relabelled = {"method": MethodApplication(method=other), "asked": draft.method.method, "message": message}
            return draft.model_copy(update={**judged, **relabelled, "opens": ()})
        return draft.model_copy(update={"outcome": "off_method", "message": "; ".join(broken), "diagnosis": off_method(broken)})

    def _rival(self, method: MethodApplication) -> TimeEstimate | None:
        """The time to beat; None for half of a coupled edit: the other half is decided by its facts even if it is slower."""
        card = self.cards.get(method.method)
        return None if card is not None and card.follow_up else self.run.graph.evaluation(self.run.graph.best).time

    def _broken(self, method: str, source: str, evaluation: Evaluation, step: Step) -> Sequence[str]:
        """What of the method's contract the new code breaks. A free choice has none: its knowledge is what is left out."""
        if not self.run.config.long_term:
            return []
        card, child = self.cards[method], self.reviewer.facts(source, evaluation)
        before = self.run.graph.evaluation(step.node).precision_class
        return (broken_promises(card, step.decision.facts, child) + broken_precision(card, before, evaluation.precision_class)
                + broken_scope(card, self._changed(source, evaluation, step)))

    def _changed(self, source: str, evaluation: Evaluation, step: Step) -> frozenset[Part]:
        return changed_parts(self.run.source(step.node), source, self.run.graph.evaluation(step.node), evaluation)

    def _other_method(self, source: str, evaluation: Evaluation, step: Step) -> str:
        """The method whose contract the code keeps, where the run takes such code; "" for none, or one that a rule vetoes."""
        if self.run.config.off_method != "relabel":
            return ""
        facts, child = step.decision.facts, self.reviewer.facts(source, evaluation)
        vetoed = {c.method for c in step.decision.candidates if c.fate == "vetoed"}
        matching = matching_methods(self.cards, facts, child, self._changed(source, evaluation, step))
        return next((method for method in matching if method not in vetoed), "")

    def _opens(self, method: MethodApplication, outcome: Outcome) -> tuple[str, ...]:
        """The other half of a coupled edit, where this half brought nothing by itself."""
        card = self.cards.get(method.method)
        return card.follow_up if card is not None and outcome in ("regressed", "equal") else ()

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

