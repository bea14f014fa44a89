"""The loop: review → facts → one method by rule → write → verify → repair → record, until a rule says stop.

Everything that a kill must not lose is in the run's journal before the next step starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evaluator.types import Evaluation, Status
from kernelskill.agents.generator import Generator
from kernelskill.agents.optimizer import Optimizer, Step
from kernelskill.errors import DecisionError, Location
from kernelskill.memory.attempts import AttemptGraph
from kernelskill.memory.experience import experience_facts
from kernelskill.memory.history import history_facts, pair_facts
from kernelskill.memory.run import Run, budget_facts
from kernelskill.methods import obstacles
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
    generator: Generator
    optimizer: Optimizer
    observer: Observer

    def optimise(self) -> str:
        """Play rounds until the run has a stop reason; return it."""
        if not self.run.graph.start and not self.run.stop_reason:
            self.make_start()
        while not self.run.stop_reason:
            if self.run.graph.rounds < self.run.config.rounds or self.unfinished():
                self.play_round()
            else:
                self.stop_by_budget()
        self.measure_best()
        return self.run.stop_reason

    def measure_best(self) -> None:
        """On a GPU: the winner once more on fresh samples, beside the baselines; the best of several is else too good."""
        run = self.run
        best, reviewer = run.graph.best, self.optimizer.reviewer
        if not run.config.baselines or run.final or not best or run.graph.evaluation(best).status is not Status.PASSED:
            return
        self.observer.comparing(run.config.baselines)
        final = reviewer.compare(run.source_path(best), run.source_path(run.graph.start), run.config.baselines)
        run.keep_final(best, final)

    def make_start(self) -> None:
        """Take the task's start or have one made; a start that does not pass ends the run."""
        made = self.generator.start()
        if made is None:
            self.run.finish("nothing_written")
            return
        self.run.keep_start(*made)
        self.observer.started(made[1])
        if made[1].status is not Status.PASSED:
            self.run.finish("start_failed")

    def play_round(self) -> None:
        """Decide once, attempt once and repair, or stop. What a kill left undone of a round is taken up again."""
        round_, node, decision = self.unfinished() or self.decide()
        method = self.with_parameters(node, decision.chosen) if decision.chosen else None
        self.observer.decided(round_, decision, method)
        if method is None:
            self.run.finish(decision.stop_reason)
            return
        for attempt in self.optimizer.attempts(Step(round_, node, method, decision)):
            self.run.keep_attempt(attempt)
            self.observer.attempted(attempt)

    def unfinished(self) -> tuple[int, str, Decision] | None:
        """The newest decision, where its attempt or a repair of it is still to be made."""
        last = self.run.last_decision
        if last is None or (last[2].chosen is None and last[1] != self.run.graph.best):
            return None
        return last if not self.run.graph.of_round(last[0]) or self.optimizer.due(last[0]) else None

    def stop_by_budget(self) -> None:
        """The rules say why the run stops; rules that do not stop without a round left cannot make it go on."""
        round_, _, decision = self.decide()
        self.observer.decided(round_, decision, None)
        self.run.finish(decision.stop_reason or "budget_exhausted")

    def decide(self) -> tuple[int, str, Decision]:
        """The policy's choice at the run's position. Raises DecisionError that says how to go on."""
        node, round_ = self.run.position, self.run.graph.rounds + 1
        facts = self.facts(node, round_)
        try:
            decision = self.policy.decide(facts)
        except DecisionError as error:
            raise self._undecided(error, round_, node, facts) from error
        self.run.keep_decision(round_, node, decision)
        if decision.chosen is None and node != self.run.graph.best:  # nothing completes the pair: back to the best solution
            return self.decide()
        return round_, node, decision

    def with_parameters(self, node: str, chosen: MethodApplication) -> MethodApplication:
        """A rule's parameters win; where it gives none, the writer's first offer that was not tried here."""
        return chosen if chosen.params else self.offers(node).get(chosen.method, chosen)

    def offers(self, node: str) -> dict[str, MethodApplication]:
        """What the writer can apply to a solution now."""
        tried = [attempt.method for attempt in self.memory(node).from_here(node)]
        return self.optimizer.writer.applicable(self.optimizer.task, self.run.source(node), tried)

    def memory(self, node: str) -> AttemptGraph:
        """The graph of attempts; without short-term memory a graph that knows of this solution alone."""
        return self.run.graph if self.run.config.short_term else AttemptGraph.of_one(node, self.run.graph.evaluation(node))

    def facts(self, node: str, round_: int) -> dict[str, Fact]:
        """Everything known at a solution: its review, the run's past, and what the writer can do to it."""
        run, cards, offers = self.run, self.optimizer.cards, self.offers(node)
        known = {**self.optimizer.reviewer.facts(run.source(node), run.graph.evaluation(node)),
                 **history_facts(self.memory(node), node, round_, run.config.rounds, cards),
                 **pair_facts(run.graph.open_pair if node != run.graph.best else None), **budget_facts(run),
                 **experience_facts(run.config.experience)}
        able = {method: method in offers and not obstacles(card, cards, known) for method, card in cards.items()}
        return known | {name: Fact(name=name, value=value, provenance="writer")
                        for method, value in able.items() for name in [f"applicable.{method}"]}

    def _undecided(self, error: DecisionError, round_: int, node: str, facts: Mapping[str, Fact]) -> DecisionError:
        """The run stays as it is, the facts are kept for whoever looks into it; the error names both."""
        self.run.keep_undecided(round_, node, facts, error.message)
        hints = [error.hint, f"the facts are in the last line of {self.run.journal.path}",
                 f"every earlier round is kept; go on with: kernelskill optimize --resume {self.run.folder}"]
        return DecisionError(f"round {round_} has no decision: {error.message}", location=Location(self.run.folder),
                             hint="\n  hint: ".join(filter(None, hints)))
