"""The audit of a run's decisions: why, why not, and whether they come out the same again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelskill.errors import KernelSkillError, RunError
from kernelskill.memory.run import Run
from kernelskill.methods import load_methods
from kernelskill.model import Decision
from kernelskill.paths import methods_folder, rules_folder
from kernelskill.policy import Policy, RuleBook, load_rules, replay, why, why_not
from kernelskill.policy.explain import Depth

Recorded = tuple[int, str, Decision]


@dataclass(frozen=True)
class Selection:
    """Decisions of a run that were asked for."""

    run: Run
    decisions: list[Recorded]


def select_decisions(folder: Path, round_: int | None) -> Selection:
    """One round's decision, or all; raises RunError naming the rounds there are."""
    run = Run.open(folder)
    chosen = [d for d in run.decisions if round_ is None or d[0] == round_]
    if not chosen:
        have = f"rounds 1 to {run.decisions[-1][0]}" if run.decisions else "none yet"
        raise RunError(f"the run has no decision of round {round_}" if round_ else "the run has no decisions",
                       hint=f"decisions recorded: {have}")
    return Selection(run, chosen)


def explain(selection: Selection, *, full: bool) -> str:
    """A line a round when all are asked for; the rules that mattered for one round; everything with `full`."""
    depth: Depth = "all" if full else "rules" if len(selection.decisions) == 1 else "line"
    outcomes = {a.round: a for a in selection.run.graph.attempts}
    parts = []
    for round_, _, decision in selection.decisions:
        attempt = outcomes.get(round_)
        came = f"\n  → {attempt.outcome}" + (f" {attempt.gain:.2f}×" if attempt.gain else "") if attempt else ""
        parts.append(f"round {round_}: {why(decision, depth)}{came}")
    return "\n".join(parts)


def explain_not(selection: Selection, method: str) -> str:
    """Why a method was not chosen, for each decision asked for."""
    cards = load_methods(methods_folder())
    if method not in cards:
        raise KernelSkillError(f"no method {method!r}", hint="methods: " + ", ".join(sorted(cards)))
    book = rule_book(selection.run)
    return "\n".join(f"round {round_}: {why_not(decision, method, book)}" for round_, _, decision in selection.decisions)


def rule_book(run: Run) -> RuleBook:
    """The rules a run was made with, as they are now."""
    return load_rules([rules_folder(), *(Path(r) for r in run.config.rules)], load_methods(methods_folder()).keys())


def replay_run(folder: Path) -> tuple[int, str]:
    """(decisions taken again, the first difference; "" when every decision came out the same)."""
    run = Run.open(folder)
    policy = Policy(rule_book(run))
    for count, (round_, _, decision) in enumerate(run.decisions, start=1):
        difference = replay(decision, policy)
        if difference:
            return count, f"round {round_}: {difference}"
    return len(run.decisions), ""
