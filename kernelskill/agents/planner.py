"""Planner: turns a decision into work, i.e. a plan for the one method, and the request that a writer gets.

Nothing of it is left to a model: target, parameters, what must stay and the evidence follow from the decision and the card.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluator.library import in_full
from evaluator.types import DeviceSpec, Evaluation, Mode
from kernelskill.methods import PARTS, MethodCard
from kernelskill.model import Decision, Fact, MethodApplication, Task
from kernelskill.policy.explain import behind
from kernelskill.tasks.reference import reference_inputs
from kernelskill.vocabulary import lookup
from kernelskill.writers.request import MethodBrief, Plan, Request, TaskBrief

IMPORTS = {"native": ("cupy", "numpy", "math", "functools"), "kernelbench": ("torch", "cupy", "numpy", "math", "functools")}
TIMES = ("time_us", "time_limiter", "sol_time_us", "headroom")
"""What every request tells first, where it is known."""
SAME = "what is computed, its precision, and the interface"


@dataclass(frozen=True)
class Planner:
    """Makes requests for one task on one device."""

    task: Task
    cards: Mapping[str, MethodCard]
    device: DeviceSpec
    mode: Mode

    def plan(self, method: MethodApplication, decision: Decision, target_kernel: str = "") -> Plan:
        """What to change and what not, for the method that was decided."""
        card = self.cards[method.method]
        return Plan(method=method, target_kernel=target_kernel, because=decision.reason.removeprefix(f"{method.method}: "),
                    may_change=tuple(PARTS[part] for part in card.scope), follow_up=card.follow_up,
                    must_not_change=(SAME, *(PARTS[part] for part in PARTS if part not in card.scope)))

    def request(self, method: MethodApplication, decision: Decision, source: str, history: Iterable[str],
                evaluation: Evaluation | None = None) -> Request:
        """The method as a writer gets it. It sees no other one."""
        card, facts = self.cards.get(method.method), decision.facts
        if card is None:  # the ablation without long-term memory: no rule chose, the writer does
            return self._free_choice(decision, source, history)
        evidence = tuple(_evidence(decision, card))
        return Request(
            method=method, source=source, task=self.brief(), card=method_brief(card, facts),
            plan=self.plan(method, decision, target_kernel(evaluation)), evidence=evidence, meanings=_meanings(evidence),
            because=tuple(_reasons(decision)), history=tuple(history))

    def first_solution(self, number: int) -> Request:
        """The nth first solution of the task, for a writer."""
        return Request(role="generator", source="", task=self.brief(), seed=number)

    def _free_choice(self, decision: Decision, source: str, history: Iterable[str]) -> Request:
        catalogue = tuple(f"`{card.id}`: {card.summary}" for card in self.cards.values())
        evidence = tuple(decision.facts[name] for name in TIMES if name in decision.facts)
        return Request(source=source, task=self.brief(), evidence=evidence, meanings=_meanings(evidence),
                       history=tuple(history), catalogue=catalogue)

    def brief(self) -> TaskBrief:
        """The task as a writer must know it."""
        spec = self.task.spec
        reference = Path(spec.path).read_text(encoding="utf-8")
        return TaskBrief(
            name=spec.name, kind=spec.kind, entry=entry_of(self.task, reference), reference=reference, sizes=spec.sizes,
            check_sizes=spec.check_sizes if spec.shapes == "general" else (), tolerance=spec.tolerance,
            imports=IMPORTS[spec.kind], library_calls=tuple(map(in_full, spec.allow_library)),
            precision=tuple(sorted(self.task.allow)),
            device=f"{self.device.name} ({self.device.arch})", simulated=self.mode == "sim")


def entry_of(task: Task, reference: str) -> str:
    """What a solution must define: `run(x, bias)`, or `ModelNew`."""
    if task.spec.kind == "kernelbench":
        return "ModelNew"
    names = reference_inputs(Path(task.spec.path), ast.parse(reference), task.spec.sizes)
    return f"run({', '.join(names)})"


def method_brief(card: MethodCard, facts: Mapping[str, Fact]) -> MethodBrief:
    """The card, its conditions with the values of the solution that it is applied to."""
    return MethodBrief(
        id=card.id, title=card.title, summary=card.summary, changes_precision=card.changes_precision, text=card.body,
        parameters=tuple(f"`{p.name}` ({p.type}, {_choices(p.values)}default {p.default}): {p.meaning}"
                         for p in card.parameters),
        preconditions=tuple(c.describe(facts, facts) for c in card.preconditions),
        promises=tuple(c.wanted(facts) for c in card.promises), forbids=tuple(c.wanted(facts) for c in card.forbids))


def _choices(values: tuple[object, ...]) -> str:
    return f"one of {', '.join(map(str, values))}, " if values else ""


def target_kernel(evaluation: Evaluation | None) -> str:
    """The kernel with the largest share of the time; "" where no launch has a time."""
    launches = [launch for launch in evaluation.launches if launch.time_us is not None] if evaluation else []
    shares: dict[str, float] = {}
    for launch in launches:
        shares[launch.kernel] = shares.get(launch.kernel, 0.0) + (launch.time_us or 0.0)
    return max(shares, key=lambda name: shares[name]) if shares else ""


def _evidence(decision: Decision, card: MethodCard) -> Iterator[Fact]:
    """Time and limiter, what the rules behind the choice matched, then what the card's conditions read; each fact once."""
    facts = decision.facts
    names = [*TIMES, *(name for rule in behind(decision) for name in rule.matched), *_facts_of(card)]
    return (facts[name] for name in dict.fromkeys(names) if name in facts and "." not in name)


def _facts_of(card: MethodCard) -> Iterator[str]:
    for condition in (*card.preconditions, *card.promises, *card.forbids):
        yield from (each.fact or "" for each in (condition.any or (condition,)))


def _reasons(decision: Decision) -> Iterator[str]:
    """Of the rules that proposed the method, and of those that derived what they needed, the sentence with its numbers."""
    return (rule.because for rule in behind(decision) if rule.because)


def _meanings(evidence: Iterable[Fact]) -> dict[str, str]:
    specs = ((fact.name, lookup(fact.name)) for fact in evidence)
    return {name: spec.meaning for name, spec in specs if spec is not None}
