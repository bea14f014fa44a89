"""The loop: review → facts → one method by rule → write → verify → record, until a rule says stop.

Everything that a kill must not lose is in the run's journal before the next step starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evaluator.types import Evaluation, Status
from kernelskill.agents.optimizer import Optimizer
from kernelskill.errors import DecisionError, Location
from kernelskill.memory.experience import experience_facts
from kernelskill.memory.history import history_facts
from kernelskill.memory.run import Run
from kernelskill.methods import unmet_preconditions
from kernelskill.model import Attempt, Decision, Fact, MethodApplication


class Decider(Protocol):
    """The policy, in this process or in one of its own."""

    def decide(self, facts: Mapping[str, Fact]) -> Decision:
        """One decision; raises DecisionError."""
        ...


class Observer(Protocol):
    """Told of every step, for live progress."""

    def opened(self, run: Run) -> None:
        """The run's folder exists."""

    def started(self, evaluation: Evaluation) -> None:
        """The starting solution was reviewed."""

    def decided(self, round_: int, decision: Decision, method: MethodApplication | None) -> None:
        """A method was chosen, with the parameters it will be applied with; None: the run stops."""

    def attempted(self, attempt: Attempt) -> None:
        """An attempt ended."""

    def comparing(self, baselines: Sequence[str]) -> None:
        """The best solution is measured again, beside the baselines."""


@dataclass
class Loop:
    """One optimisation of one task."""

    run: Run
    policy: Decider
    optimizer: Optimizer
    observer: Observer

    def optimise(self) -> str:
        """Play rounds until the run has a stop reason; return it."""
        if not self.run.graph.start:
            self.review_start()
        while not self.run.stop_reason:
            if len(self.run.graph.attempts) < self.run.config.rounds or self.run.pending_decision():
                self.play_round()
            else:
                self.stop_by_budget()
        self.measure_best()
        return self.run.stop_reason

    def measure_best(self) -> None:
        """On a GPU: the winner once more on fresh samples, beside the baselines; the best of several is else too good."""
        run = self.run
        best, reviewer = run.graph.best, self.optimizer.reviewer
        if not run.config.baselines or run.final or run.graph.evaluation(best).status is not Status.PASSED:
            return
        self.observer.comparing(run.config.baselines)
        final = reviewer.compare(run.source_path(best), run.source_path(run.graph.start), run.config.baselines)
        run.keep_final(best, final)

    def review_start(self) -> None:
        """Evaluate the start; a start that does not pass ends the run."""
        digest = self.run.keep_source(self.optimizer.task.start_source)
        evaluation = self.optimizer.reviewer.review(self.run.source_path(digest))
        self.run.keep_start(digest, evaluation)
        self.observer.started(evaluation)
        if evaluation.status is not Status.PASSED:
            self.run.finish("start_failed")

    def play_round(self) -> None:
        """Decide once and attempt once, or stop. A decision that a kill left without its attempt is taken up again."""
        round_, node, decision = self.run.pending_decision() or self.decide()
        method = self.with_parameters(node, decision.chosen) if decision.chosen else None
        self.observer.decided(round_, decision, method)
        if method is None:
            self.run.finish(decision.stop_reason)
            return
        attempt = self.optimizer.attempt(round_, node, method, decision)
        self.run.keep_attempt(attempt)
        self.observer.attempted(attempt)

    def stop_by_budget(self) -> None:
        """The rules say why the run stops; rules that do not stop without a round left cannot make it go on."""
        round_, _, decision = self.decide()
        self.observer.decided(round_, decision, None)
        self.run.finish(decision.stop_reason or "budget_exhausted")

    def decide(self) -> tuple[int, str, Decision]:
        """The policy's choice at the best solution so far. Raises DecisionError that says how to go on."""
        node, round_ = self.run.graph.best, len(self.run.graph.attempts) + 1
        facts = self.facts(node, round_)
        try:
            decision = self.policy.decide(facts)
        except DecisionError as error:
            raise self._undecided(error, round_, node, facts) from error
        self.run.keep_decision(round_, node, decision)
        return round_, node, decision

    def with_parameters(self, node: str, chosen: MethodApplication) -> MethodApplication:
        """A rule's parameters win; where it gives none, the writer's first offer that was not tried here."""
        return chosen if chosen.params else self.offers(node).get(chosen.method, chosen)

    def offers(self, node: str) -> dict[str, MethodApplication]:
        """What the writer can apply to a solution now."""
        tried = [attempt.method for attempt in self.run.graph.from_here(node)]
        return self.optimizer.writer.applicable(self.optimizer.task, self.run.source(node), tried)

    def facts(self, node: str, round_: int) -> dict[str, Fact]:
        """Everything known at a solution: its review, the run's past, and what the writer can do to it."""
        offers = self.offers(node)
        reviewed = self.optimizer.reviewer.facts(self.run.source(node), self.run.graph.evaluation(node))
        past = history_facts(self.run.graph, node, round_, self.run.config.rounds, self.optimizer.cards)
        known = {**reviewed, **past, **experience_facts(self.run.config.experience)}
        able = {method: method in offers and not unmet_preconditions(card, known)
                for method, card in self.optimizer.cards.items()}
        return known | {name: Fact(name=name, value=value, provenance="writer")
                        for method, value in able.items() for name in [f"applicable.{method}"]}

    def _undecided(self, error: DecisionError, round_: int, node: str, facts: Mapping[str, Fact]) -> DecisionError:
        """The run stays as it is, the facts are kept for whoever looks into it; the error names both."""
        self.run.keep_undecided(round_, node, facts, error.message)
        hints = [error.hint, f"the facts are in the last line of {self.run.journal.path}",
                 f"every earlier round is kept; go on with: kernelskill optimize --resume {self.run.folder}"]
        return DecisionError(f"round {round_} has no decision: {error.message}", location=Location(self.run.folder),
                             hint="\n  hint: ".join(filter(None, hints)))
