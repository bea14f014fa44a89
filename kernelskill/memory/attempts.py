"""The attempt graph: nodes are solutions, edges are attempts. It answers where to go on from and what was tried there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evaluator.types import Evaluation, Status
from kernelskill.model import Attempt, MethodApplication

if TYPE_CHECKING:
    import networkx


class AttemptGraph:
    """networkx MultiDiGraph over solution digests. A solution enters once: an equal one is refused before it is evaluated."""

    def __init__(self) -> None:
        import networkx  # 90 ms; commands that need no graph must not pay for it

        self._graph: networkx.MultiDiGraph = networkx.MultiDiGraph()
        self.start = ""
        self.best = ""
        self.attempts: list[Attempt] = []

    @classmethod
    def of_one(cls, digest: str, evaluation: Evaluation) -> AttemptGraph:
        """A graph of one solution from which nothing was tried."""
        graph = cls()
        graph.add_start(digest, evaluation)
        return graph

    def add_start(self, digest: str, evaluation: Evaluation) -> None:
        """The first solution."""
        self._graph.add_node(digest, evaluation=evaluation, round=0)
        self.start = self.best = digest

    def __contains__(self, digest: str) -> bool:
        return digest in self._graph

    @property
    def networkx(self) -> networkx.MultiDiGraph:
        """The graph itself, for reports; do not change it."""
        return self._graph

    def evaluation(self, digest: str) -> Evaluation:
        """The reviewer's result for a node."""
        result = self._graph.nodes[digest]["evaluation"]
        assert isinstance(result, Evaluation)
        return result

    def time_us(self, digest: str) -> float | None:
        """A node's time in µs; None when it has none."""
        estimate = self.evaluation(digest).time
        return estimate.time_us if estimate else None

    def record(self, attempt: Attempt) -> None:
        """Add an attempt; an improving child becomes the best, failed children are nodes too.

        An attempt that produced nothing new (no code, or code the graph already holds) adds no edge: the graph has no cycle.
        """
        self.attempts.append(attempt)
        if not attempt.child or attempt.child in self._graph:
            return
        self._graph.add_node(attempt.child, evaluation=attempt.evaluation, round=attempt.round)
        self._graph.add_edge(attempt.parent, attempt.child, attempt=attempt)
        if attempt.outcome == "improved":
            self.best = attempt.child

    @property
    def rounds(self) -> int:
        """Rounds played; a round is an attempt and its repairs."""
        return max((a.round for a in self.attempts), default=0)

    def of_round(self, round_: int) -> list[Attempt]:
        """A round's attempt and its repairs, in order."""
        return [a for a in self.attempts if a.round == round_]

    def from_here(self, digest: str) -> list[Attempt]:
        """Attempts made from this very solution, in order; a repair that went well stands for what it mended."""
        return [verdict(self.of_round(a.round)) for a in self.attempts if a.parent == digest and not a.repair]

    def path(self, digest: str) -> list[Attempt]:
        """The attempts that lead from the start to this solution, each of which passed; repairs stand for what they mended."""
        steps: dict[str, Attempt] = {a.child: a for _, _, a in self._graph.edges(data="attempt")}
        out: list[Attempt] = []
        while digest in steps:
            out.append(steps[digest])
            digest = out[-1].parent
        return [a for a in out[::-1] if a.diagnosis is None and a.outcome != "failed"]

    @property
    def open_pair(self) -> Attempt | None:
        """The last attempt, when it is half of a coupled edit from which nothing was tried yet."""
        last = self.attempts[-1] if self.attempts else None
        return last if last is not None and last.opens else None

    def methods(self, digest: str) -> list[MethodApplication]:
        """The methods on the path from the start, in order."""
        return [a.method for a in self.path(digest)]

    def speedup(self, digest: str) -> float | None:
        """Start's time / this solution's time; None unless both have a time of the same provenance."""
        first, last = self.evaluation(self.start).time, self.evaluation(digest).time
        if not first or not last or first.provenance != last.provenance:
            return None
        return first.time_us / last.time_us

    def passed(self) -> Iterator[str]:
        """Digests of the solutions that passed."""
        return (n for n in self._graph if self.evaluation(n).status is Status.PASSED)


def verdict(attempts: list[Attempt]) -> Attempt:
    """Of an attempt and its repairs the one that says what came of the method: a good one, else the first failure."""
    return attempts[-1] if attempts[-1].diagnosis is None else attempts[0]
