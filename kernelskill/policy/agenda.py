"""Picks exactly one method, or the stop, from the rules that fired. Pure, total and the same for any order of the input.

Stop rules end it. Then per method: vetoes, requirements, preferences, priority, expected gain, experience, id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from kernelskill.model import Candidate, Value
from kernelskill.policy.conditions import show
from kernelskill.policy.gain import Past, expected, past_of
from kernelskill.policy.schema import Action, Prefer, Propose, Require, Scalar, Stop, Veto

NOTHING_LEFT = "no_method_left"
BOTTLENECK = "bottleneck."
"""Prefix of the derived facts under which experience is counted."""
Fate = Literal["chosen", "vetoed", "beaten", "outranked", "stopped"]
Actions = Sequence[tuple["Fired", Any]]
"""Actions of one kind, each with its rule, in the order of the rules."""


@dataclass(frozen=True)
class Fired:
    """What the agenda needs of a rule that fired."""

    rule: str
    priority: int
    then: Sequence[Action]
    because: str = ""
    evidence: str = ""
    """The facts that matched, as text."""

    def __str__(self) -> str:
        return f"{self.rule} ({self.evidence})" if self.evidence else self.rule


@dataclass(frozen=True)
class Proposal:
    """A proposed method under the rule that ranks it highest."""

    method: str
    leader: Fired
    proposed_by: tuple[str, ...]
    gain: float
    note: str
    params: Mapping[str, Scalar]
    past: Past | None = None
    fate: Fate = "chosen"
    fate_reason: str = ""

    @property
    def rank(self) -> tuple[int, float, float, str]:
        """Sort key: smaller is better."""
        return -self.leader.priority, -self.gain, -self.seen, self.method

    @property
    def seen(self) -> float:
        """What a trial brought in earlier runs; it breaks ties of the expected gain, which the headroom often caps."""
        return self.past.per_trial if self.past else 1.0

    def lost(self, fate: Fate, reason: str) -> Proposal:
        """The same with its fate."""
        return replace(self, fate=fate, fate_reason=reason)


@dataclass(frozen=True)
class Selection:
    """The outcome: a method or a stop, the reason in one sentence, and every candidate with its fate."""

    chosen: Proposal | None
    stop_reason: str
    reason: str
    candidates: tuple[Candidate, ...]


def select(fired: Iterable[Fired], values: Mapping[str, Value]) -> Selection:
    """Chooses. `values` are the facts that gain formulas, `headroom` and `applied.<method>` are read from."""
    actions = _by_kind(sorted(fired, key=lambda rule: (-rule.priority, rule.rule)))
    proposals = {proposal.method: proposal for proposal in _proposals(actions[Propose], values)}
    if stops := actions[Stop]:
        rule, reason_id = stops[0][0], stops[0][1].stop
        lost = [p.lost("stopped", f"the run ends: {reason_id} by {rule}") for p in proposals.values()]
        reason = _sentence(f"{reason_id}: stop by {rule.rule}", rule.because or rule.evidence)
        return Selection(None, reason_id, reason, _candidates(lost))
    alive = dict(proposals)
    for blocked in (_vetoed(actions[Veto], alive), _waiting(actions[Require], alive, values)):
        proposals |= blocked
        alive = {name: p for name, p in alive.items() if name not in blocked}
    beaten = _beaten(actions[Prefer], alive)
    proposals |= beaten
    ranking = sorted((p for name, p in alive.items() if name not in beaten), key=lambda p: p.rank)
    if not ranking:
        return Selection(None, NOTHING_LEFT, _nothing_left(proposals.values()), _candidates(proposals.values()))
    best = ranking[0].lost("chosen", _why_best(ranking))
    proposals |= {p.method: p.lost("outranked", _why_behind(p, best)) for p in ranking[1:]}
    proposals[best.method] = best
    return Selection(best, "", _why_chosen(best), _candidates(proposals.values()))


def _by_kind(rules: Iterable[Fired]) -> Mapping[type[Any], list[tuple[Fired, Any]]]:
    kinds: dict[type[Any], list[tuple[Fired, Any]]] = defaultdict(list)
    for rule in rules:
        for action in rule.then:
            kinds[type(action)].append((rule, action))
    return kinds


def _proposals(actions: Actions, values: Mapping[str, Value]) -> Iterable[Proposal]:
    found: dict[str, list[Proposal]] = {}
    limits = [name.removeprefix(BOTTLENECK) for name in values if name.startswith(BOTTLENECK)] or ["none"]
    for rule, action in actions:
        past = past_of(action.propose, limits, values)
        gain = expected(action.gain, values, past)
        found.setdefault(action.propose, []).append(
            Proposal(action.propose, rule, (), gain.value, gain.note, action.params, past))
    for same in found.values():
        leader = min(same, key=lambda p: (p.rank, p.leader.rule, sorted(map(str, p.params.items()))))
        yield replace(leader, proposed_by=tuple(sorted({p.leader.rule for p in same})))


def _vetoed(actions: Actions, alive: Mapping[str, Proposal]) -> dict[str, Proposal]:
    blocked: dict[str, Proposal] = {}
    for rule, action in actions:
        if action.veto in alive and action.veto not in blocked:
            blocked[action.veto] = alive[action.veto].lost("vetoed", f"vetoed by {rule}")
    return blocked


def _waiting(actions: Actions, alive: Mapping[str, Proposal], values: Mapping[str, Value]) -> dict[str, Proposal]:
    blocked: dict[str, Proposal] = {}
    for rule, action in actions:
        if action.before in alive and values.get(f"applied.{action.require}") is not True:
            reason = f"needs {action.require} first, says {rule}"
            blocked.setdefault(action.before, alive[action.before].lost("beaten", reason))
    return blocked


def _beaten(actions: Actions, alive: Mapping[str, Proposal]) -> dict[str, Proposal]:
    """Methods to which another candidate is preferred. Preferences that form a circle cancel each other."""
    edges = {(action.prefer, action.over): rule for rule, action in reversed(actions)
             if action.prefer in alive and action.over in alive}
    beaten: dict[str, Proposal] = {}
    for (winner, loser), rule in sorted(edges.items(), key=lambda edge: (-edge[1].priority, edge[1].rule, edge[0])):
        if loser not in beaten and winner not in _reachable(loser, edges):
            beaten[loser] = alive[loser].lost("beaten", f"{winner} is preferred by {rule}")
    return beaten


def _reachable(start: str, edges: Iterable[tuple[str, str]]) -> set[str]:
    edges, seen, todo = list(edges), {start}, [start]
    while todo:
        here = todo.pop()
        new = {loser for winner, loser in edges if winner == here} - seen
        seen |= new
        todo += sorted(new)
    return seen


def _why_best(ranking: Sequence[Proposal]) -> str:
    if len(ranking) == 1:
        return "the only candidate left"
    return _compare(ranking[0], ranking[1])


def _why_behind(loser: Proposal, best: Proposal) -> str:
    return _compare(loser, best)


def _compare(one: Proposal, other: Proposal) -> str:
    """Why the two rank as they do, from the side of the first."""
    if one.leader.priority != other.leader.priority:
        return f"priority {one.leader.priority} ({one.leader.rule}) against {other.leader.priority} of {other.method}"
    if one.gain != other.gain:
        return f"expected {show(one.gain)}x against {show(other.gain)}x of {other.method} at the same priority"
    if one.seen != other.seen:
        seen, against = one.past or "no earlier trials", other.past or "no earlier trials"
        return f"same priority and gain as {other.method}; experience decides: {seen}, against {against}"
    return f"same priority and gain as {other.method}; the order of names decides"


def _why_chosen(best: Proposal) -> str:
    note = f" ({best.note})" if best.note else ""
    because = best.leader.because or best.leader.evidence
    return _sentence(f"{best.method}: expected {show(best.gain)}x{note}, proposed by {best.leader.rule}", because)


def _sentence(start: str, because: str) -> str:
    return f"{start} because {because}" if because else f"{start}."


def _nothing_left(proposals: Iterable[Proposal]) -> str:
    lost = sorted(proposals, key=lambda p: p.rank)
    if not lost:
        return f"{NOTHING_LEFT}: no rule proposes a method for these facts."
    return f"{NOTHING_LEFT}: " + "; ".join(f"{p.method} {p.fate_reason}" for p in lost) + "."


def _candidates(proposals: Iterable[Proposal]) -> tuple[Candidate, ...]:
    order = {"chosen": 0, "outranked": 1, "stopped": 2, "beaten": 3, "vetoed": 4}
    ranked = sorted(proposals, key=lambda p: (order[p.fate], p.rank))
    return tuple(Candidate(method=p.method, proposed_by=p.proposed_by, priority=p.leader.priority, expected_gain=p.gain,
                           params=dict(p.params), fate=p.fate, fate_reason=p.fate_reason) for p in ranked)
