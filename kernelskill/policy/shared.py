"""Rules that read the same for every method: one engine rule that any method's fact matches, instead of one per method.

A `for_each` rule has a copy per method, and everybody but the engine sees the copies. The engine pays for every pattern in
every decision (8 KiB of state each), so conjunctions on a single fact `<family>.<method>` are given to it once, with the family
in place of the name; which copy fired follows from the fact that matched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelskill.policy.compile import Variant


@dataclass(frozen=True)
class Shared:
    """A conjunction that all copies of a `for_each` rule have in common."""

    name: str
    """Of the engine rule, e.g. `failed_here[*]#0`."""
    family: str
    """What the facts' names have in common, e.g. `failed_here`, `absent:applicable`."""
    copies: Mapping[str, Variant]
    """Engine fact -> the copy that it fires; a fact about another method fires none."""

    @property
    def any_copy(self) -> Variant:
        """One of the copies: they differ in the method only."""
        return next(iter(self.copies.values()))


def family_of(fact: str) -> str:
    """The name of an engine fact less the method: `failed_here` of `failed_here.launch_tuning`."""
    return fact.rpartition(".")[0]


def shared(variants: Iterable[Variant], derived: Collection[str]) -> Iterator[Shared]:
    """The conjunctions that can be shared, in the order of the variants."""
    groups: dict[tuple[str, int], list[Variant]] = {}
    for variant in variants:
        if variant.rule.rule.for_each is not None:
            groups.setdefault((variant.rule.rule.id, variant.index), []).append(variant)
    for (ident, index), copies in groups.items():
        facts = [_only_fact(copy, derived) for copy in copies]
        said = {frozenset(replace(literal, fact="") for literal in copy.literals) for copy in copies}
        if all(facts) and len(said) == 1 and len({family_of(fact) for fact in facts}) == 1:
            yield Shared(f"{ident}[*]#{index}", family_of(facts[0]), dict(zip(facts, copies, strict=True)))


def _only_fact(copy: Variant, derived: Collection[str]) -> str:
    """The engine fact that the conjunction is about, if it is one measured fact about the copy's method; else empty."""
    facts = {literal.fact for literal in copy.literals}
    if len(facts) != 1 or len(copy.engine_facts) != 1 or facts & set(derived) or any(lit.other for lit in copy.literals):
        return ""
    (fact,) = copy.engine_facts
    return fact if fact.endswith(f".{copy.rule.method}") else ""
