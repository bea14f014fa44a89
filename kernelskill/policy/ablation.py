"""Deciders for ablations, from the facts alone: the random policy, and the one that leaves the choice to the writer."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.model import Candidate, Decision, Fact, MethodApplication

APPLICABLE = "applicable."
IN_VAIN = ("failed_here", "no_gain_here")
FREE_CHOICE = "free_choice"
"""What stands for a method where the writer is to choose one."""


@dataclass(frozen=True)
class RandomPolicy:
    """Any applicable method with equal chance; the same seed, round and facts give the same one."""

    seed: int

    def decide(self, facts: Mapping[str, Fact]) -> Decision:
        """One of the methods that are applicable and not tried here in vain, or a stop where there is none or no round left."""
        open_ = sorted(name.removeprefix(APPLICABLE) for name, fact in facts.items()
                       if name.startswith(APPLICABLE) and fact.value is True)
        fresh = [method for method in open_ if not any(_count(facts, f"{kind}.{method}") for kind in IN_VAIN)]
        if not _count(facts, "rounds_left") or not fresh:
            return _stop(facts, "no_method_left" if _count(facts, "rounds_left") else "budget_exhausted")
        chosen = random.Random(f"{self.seed}:{_count(facts, 'round')}").choice(fresh)
        reason = f"{chosen}: drawn from {len(fresh)} applicable methods (random policy, seed {self.seed})"
        candidates = tuple(Candidate(method=method, proposed_by=("random",), priority=0, expected_gain=1.0,
                                     fate="chosen" if method == chosen else "outranked",
                                     fate_reason="drawn" if method == chosen else f"{chosen} was drawn") for method in fresh)
        return Decision(outcome="method", chosen=MethodApplication(method=chosen), reason=reason, candidates=candidates,
                        facts={name: facts[name] for name in sorted(facts)})


@dataclass(frozen=True)
class FreeChoice:
    """The writer chooses, until no round is left or five brought nothing."""

    patience: int = 5

    def decide(self, facts: Mapping[str, Fact]) -> Decision:
        """The writer's turn, or the stop."""
        if not _count(facts, "rounds_left"):
            return _stop(facts, "budget_exhausted")
        if _count(facts, "rounds_since_best") >= self.patience:
            return _stop(facts, "no_gain")
        return Decision(outcome="method", chosen=MethodApplication(method=FREE_CHOICE),
                        reason=f"{FREE_CHOICE}: the writer chooses from the catalogue (no long-term memory)",
                        facts={name: facts[name] for name in sorted(facts)})


def _count(facts: Mapping[str, Fact], name: str) -> float:
    return float(facts[name].value) if name in facts else 0.0


def _stop(facts: Mapping[str, Fact], reason: str) -> Decision:
    return Decision(outcome="stop", stop_reason=reason, reason=f"{reason}: ablation without rules",
                    facts={name: facts[name] for name in sorted(facts)})
