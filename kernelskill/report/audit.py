"""The audit of a run's decisions: why, why not, what would have been enough, and whether they come out the same again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelskill.errors import KernelSkillError, RunError, did_you_mean
from kernelskill.expertise import rule_book
from kernelskill.memory.run import Run
from kernelskill.methods import load_methods
from kernelskill.model import Decision
from kernelskill.paths import methods_folder
from kernelskill.policy import Policy, RuleBook, nearest, replay, why, why_not
from kernelskill.policy.ablation import FreeChoice, RandomPolicy
from kernelskill.policy.explain import Depth
from kernelskill.policy.replay import differences

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


def explain(selection: Selection, depth: Depth | None) -> str:
    """Every decision at one depth, with what came of it; None: a line each for several, the rules that mattered for one."""
    depth = depth or ("rules" if len(selection.decisions) == 1 else "line")
    outcomes = {a.round: a for a in selection.run.graph.attempts}
    parts = []
    for round_, _, decision in selection.decisions:
        attempt = outcomes.get(round_)
        came = f"\n  → {attempt.outcome}" + (f" {attempt.gain:.2f}×" if attempt.gain else "") if attempt else ""
        parts.append(f"round {round_}: {why(decision, depth)}{came}")
    own = selection.run.config.rules
    if depth == "all" or (own and depth == "rules"):
        built_in = "rules of this run: the built-in ones" + (", then (a later rule wins by id)" if own else "")
        parts.append("\n  ".join([built_in, *own]))
    return ("\n" if depth == "line" else "\n\n").join(parts)


def explain_not(selection: Selection, method: str) -> list[dict[str, Any]]:
    """Per decision why the method was not chosen (or that it was): `round` and `verdict`."""
    known_method(method)
    book = rules_of(selection.run)
    return [{"round": round_, "verdict": why_not(decision, method, book)} for round_, _, decision in selection.decisions]


def explain_nearest(selection: Selection, method: str) -> list[dict[str, Any]]:
    """Per decision the smallest set of fact changes under which the method would have been chosen.

    `changes`: fact -> `{from, to}` (null: not known); null when none was found; `verdict` says it in words.
    """
    known_method(method)
    policy = Policy(rules_of(selection.run))
    return list(_nearest(selection, method, policy))


def _nearest(selection: Selection, method: str, policy: Policy) -> Iterator[dict[str, Any]]:
    for round_, _, decision in selection.decisions:
        if decision.chosen is not None and decision.chosen.method == method:
            yield {"round": round_, "changes": {}, "verdict": f"{method} was chosen"}
            continue
        found = nearest(decision, method, policy)
        if found is None:
            verdict = f"no change of facts was found under which {method} is chosen"
            yield {"round": round_, "changes": None, "verdict": verdict}
            continue
        known = decision.facts
        changes = {name: {"from": known[name].value if name in known else None, "to": value}
                   for name, value in sorted(found.changes.items())}
        lines = "".join(f"\n  {line}" for line in str(found).splitlines())
        verdict = f"{method} would have been chosen with{lines}\n  then: {found.after.reason}"
        yield {"round": round_, "changes": changes, "verdict": verdict}


def known_method(method: str) -> None:
    """Raises KernelSkillError for a method that has no card."""
    cards = load_methods(methods_folder())
    if method not in cards:
        hint = did_you_mean(method, cards) or "methods: " + ", ".join(sorted(cards))
        raise KernelSkillError(f"no method {method!r}", hint=hint)


def rules_of(run: Run, more: Sequence[Path] = (), builtin: Path | None = None) -> RuleBook:
    """The rules a run was made with, as they are now, with more folders after them; `builtin`: instead of the built-in ones."""
    return rule_book([*map(Path, run.config.rules), *more], builtin)


def decider_of(run: Run, builtin: Path | None = None) -> Policy | RandomPolicy | FreeChoice:
    """Who decided in a run, as it is now, or with other built-in rules."""
    if not run.config.long_term:
        return FreeChoice()
    return RandomPolicy(run.config.policy_seed) if run.config.policy == "random" else Policy(rules_of(run, (), builtin))


def replay_run(folder: Path, builtin: Path | None = None) -> tuple[int, str]:
    """(decisions taken again, the first difference; "" when every decision came out the same)."""
    run = Run.open(folder)
    policy = decider_of(run, builtin)
    for count, (round_, _, decision) in enumerate(run.decisions, start=1):
        difference = (replay(decision, policy) if isinstance(policy, Policy) else
                      next(differences(decision, policy.decide(decision.facts)), ""))
        if difference:
            return count, f"round {round_}: {difference}"
    return len(run.decisions), ""
