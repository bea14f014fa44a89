"""Tables from the committed fact sets and the shipped rules: decisions.md, steps.md, nsight.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ruamel.yaml import YAML

from benchmarks.model.measured import load as measured
from benchmarks.policy_corpus.facts import FactSet, read
from benchmarks.policy_corpus.kernels import profiles
from kernelskill.facts.nsight import bottleneck
from kernelskill.methods import MethodCard, load_methods, unmet_preconditions
from kernelskill.model import Decision
from kernelskill.paths import methods_folder, rules_folder
from kernelskill.policy import Policy, load_rules

FOLDER = Path(__file__).resolve().parent
FIRST_48 = 48
GOOD_ENOUGH = 0.8
"""A choice counts when it leads to this share of the best single step's gain."""
NOISE = 1.02
"""Smaller gains are not counted as a faster variant."""
SAME = {"dram": ("dram",), "l2": ("l2", "uncoalesced_loads", "uncoalesced_stores"), "l1": ("l1", "shared", "mio", "lsu"),
        "compute": ("issue", "fma", "tensor", "transcendental", "integer"), "balanced": ("issue", "fma", "dram", "tensor"),
        "latency": ("latency", "barriers", "parallelism", "atomics", "bank_conflicts")}
"""NVIDIA's word -> ours that mean the same or name its cause."""


@dataclass(frozen=True)
class Decided:
    """One fact set with what the rules made of it."""

    name: str
    origin: str
    decision: Decision
    unmet: tuple[str, ...]
    """False preconditions of the chosen method's card."""

    @property
    def kernel(self) -> str:
        """The last part of the name."""
        return self.name.split("/")[-1]

    @property
    def method(self) -> str:
        """The method, or "" for a stop."""
        return self.decision.chosen.method if self.decision.chosen else ""

    @property
    def is_reasoned(self) -> bool:
        """A method, a stop by a rule, or a stop because every proposed method has lost for a reason that is named."""
        return bool(self.method) or self.decision.stop_reason != "no_method_left" or bool(self.decision.candidates)

    @property
    def bottlenecks(self) -> tuple[str, ...]:
        """Derived bottlenecks, without the prefix and the summary `memory`."""
        words = (name.partition(".")[2] for name in self.decision.derived)
        return tuple(word for word in words if word != "memory")


def decide_all(sets: Iterable[FactSet], policy: Policy, cards: Mapping[str, MethodCard]) -> Iterator[Decided]:
    """Every set decided."""
    for one in sets:
        facts = one.expand(cards)
        decision = policy.decide(facts)
        unmet = unmet_preconditions(cards[decision.chosen.method], facts) if decision.chosen else []
        yield Decided(one.name, one.origin, decision, tuple(unmet))


@lru_cache(maxsize=2)
def decided(*more: Path) -> tuple[Decided, ...]:
    """The committed corpus under the shipped rules, with more folders after them."""
    cards = load_methods(methods_folder())
    return tuple(decide_all(read(), Policy(load_rules([rules_folder(), *more], cards)), cards))


@dataclass(frozen=True)
class Step:
    """A measured kernel, the method chosen for it, and what that is worth."""

    kernel: str
    facts: str
    method: str
    variant: str
    """The variant that the method leads to; a trailing `*`: with further methods; "" where none was measured."""
    gain: float | None
    best: str
    best_gain: float

    @property
    def is_good(self) -> bool:
        """The choice leads to 80 % of the best step or more."""
        return self.gain is not None and self.gain >= GOOD_ENOUGH * self.best_gain

    @property
    def is_alone(self) -> bool:
        """The method alone makes the variant."""
        return not self.variant.endswith("*")


def steps(all_decided: Iterable[Decided], origin: str = "h200") -> Iterator[Step]:
    """For every kernel with a step to a faster variant: what was chosen and what was best."""
    table = YAML(typ="safe").load(FOLDER / "steps.yaml")
    times = {name: record.cold_us for name, record in measured().items()}
    for one in all_decided:
        if one.origin != origin or one.kernel not in table:
            continue
        gains = {method: times[one.kernel] / times[variant.rstrip("*")] for method, variant in table[one.kernel].items()}
        best = max(gains, key=lambda method: gains[method])
        if gains[best] < NOISE:
            continue
        yield Step(one.kernel, ", ".join(one.bottlenecks), one.method or one.decision.stop_reason,
                   table[one.kernel].get(one.method, ""), gains.get(one.method), best, gains[best])


def agreement(all_decided: Iterable[Decided]) -> list[tuple[str, str, tuple[str, ...], bool]]:
    """For each recorded profile: kernel, NVIDIA's word, our words, and whether they agree."""
    named = {kernel: bottleneck(profile) for kernel, profile in profiles().items()}
    return [(one.kernel, named[one.kernel], one.bottlenecks, any(word in one.bottlenecks for word in SAME[named[one.kernel]]))
            for one in all_decided if one.kernel in named]


def without_nsight() -> Iterator[Decided]:
    """The recorded profiles decided from counters alone: NVIDIA's rule results are taken away first."""
    known = {f"h200/{kernel}" for kernel in profiles()}
    cards = load_methods(methods_folder())
    bare = (FactSet(s.name, s.origin, {p: {n: v for n, v in group.items() if not n.startswith("nsight_")}
                                       for p, group in s.facts.items()}, s.applicable, s.methods)
            for s in read() if s.name in known)
    yield from decide_all(bare, Policy(load_rules([rules_folder()], cards)), cards)


def share(chosen: Sequence[Step]) -> float:
    """Share of good steps, in per cent."""
    return 100.0 * sum(step.is_good for step in chosen) / len(chosen)


def compared(more: Sequence[Path]) -> Iterator[str]:
    """What more folders of rules would change: every choice that becomes another one, then the share of good steps."""
    before, after = decided(), decided(*more)
    count = 0
    for old, new in zip(before, after, strict=True):
        if (old.method, old.decision.stop_reason) != (new.method, new.decision.stop_reason):
            count += 1
            yield f"{new.name}: {old.method or old.decision.stop_reason} -> {new.method or new.decision.stop_reason}"
            yield f"  {new.decision.reason}"
    yield f"{count} of {len(after)} choices change"
    broken = [one.name for one in after if one.unmet]
    yield f"choices whose card's preconditions are false: {', '.join(broken) or 'none'}"
    good = " -> ".join(f"{share(list(steps(every))):.0f} %" for every in (before, after))
    yield f"choices for measured kernels that lead to 80 % of the best step: {good}"


def write() -> None:
    """The three tables."""
    everything = decided()
    (FOLDER / "decisions.md").write_text(decisions_page(everything), encoding="utf-8")
    (FOLDER / "steps.md").write_text(steps_page(everything), encoding="utf-8")
    (FOLDER / "nsight.md").write_text(nsight_page(tuple(without_nsight())), encoding="utf-8")


def decisions_page(everything: Sequence[Decided]) -> str:
    """Counts over the corpus and every decision."""
    reasoned, broken = sum(one.is_reasoned for one in everything), [one for one in everything if one.unmet]
    methods = Counter(one.method or f"stop: {one.decision.stop_reason}" for one in everything)
    lines = ["# Decisions over the corpus", "", "Made by `python -m benchmarks.policy_corpus report`.", "",
             f"{len(everything)} fact sets; {reasoned} ({100 * reasoned / len(everything):.1f} %) yield a method or a reasoned "
             f"stop; {len(broken)} choose a method whose card's preconditions are false.", "",
             "| choice | sets |", "| --- | --- |"]
    lines += [f"| {name} | {count} |" for name, count in methods.most_common()]
    lines += ["", "| set | bottlenecks | choice | rule |", "| --- | --- | --- | --- |"]
    for one in everything:
        rule = next((", ".join(c.proposed_by) for c in one.decision.candidates if c.fate == "chosen"), "")
        lines.append(f"| {one.name} | {', '.join(one.bottlenecks)} | {one.method or one.decision.stop_reason} | {rule} |")
    return "\n".join(lines) + "\n"


def steps_page(everything: Sequence[Decided]) -> str:
    """The table of measured steps."""
    first = set(list(measured())[:FIRST_48])
    found = list(steps(everything))
    early, late = ([s for s in found if (s.kernel in first) == flag] for flag in (True, False))
    model = [s for s in steps(everything, "modelled") if s.kernel in first]
    alone = [s for s in early if s.is_alone and s.is_good]
    lines = ["# Is the choice a step to a faster kernel?", "", "Made by `python -m benchmarks.policy_corpus report`. "
             "Facts: Nsight Compute and CUDA events of an H200, compiler, machine code, source text. Any method may be chosen "
             "(a writer that can write anything). Gains are measured (cold L2). `*`: the variant holds further methods, the "
             "choice is the first part of the way. Which variant a method leads to is written in steps.yaml.", "",
             f"First 48 kernels: {len(early)} have a faster variant; {share(early):.0f} % of the choices lead to at least "
             f"80 % of the best step's gain ({len(alone)} of {len(early)} by the chosen method alone). The same with the "
             f"facts of the time model: {share(model):.0f} % of {len(model)}. Kernels measured later: {share(late):.0f} % "
             f"of {len(late)}. Rules were written with a look at all of these kernels: the shares say that the rules hold "
             "what the measurements taught, not how well they do on kernels nobody has seen.", ""]
    for title, group in (("First 48 kernels", early), ("Measured later", late)):
        lines += [f"## {title}", "", "| kernel | bottlenecks | chosen | leads to | gain | best step | its gain | 80 % |",
                  "| --- | --- | --- | --- | --- | --- | --- | --- |"]
        lines += [f"| {s.kernel} | {s.facts} | {s.method} | {s.variant or '-'} | {f'{s.gain:.2f}' if s.gain else '-'} "
                  f"| {s.best} | {s.best_gain:.2f} | {'yes' if s.is_good else 'no'} |" for s in group]
        lines.append("")
    return "\n".join(lines)


def nsight_page(bare: Sequence[Decided]) -> str:
    """NVIDIA's bottleneck beside ours."""
    rows = agreement(bare)
    agree = sum(row[3] for row in rows)
    lines = ["# NVIDIA's rules and ours", "", "Made by `python -m benchmarks.policy_corpus report`. For each recorded profile: "
             "what Nsight Compute's rule SOLBottleneck names, and which bottlenecks our rules derive from the counters "
             "alone (the `nsight_*` facts are taken away). They agree when one of ours says the same or names its cause: "
             "`latency` means waiting for something (latency, barriers, atomics, too few warps, bank conflicts), `l2` also "
             "the access pattern that loads it.", "",
             f"{agree} of {len(rows)} agree.", "", "| kernel | Nsight Compute | ours | agree |", "| --- | --- | --- | --- |"]
    lines += [f"| {kernel} | {theirs} | {', '.join(ours)} | {'yes' if same else '**no**'} |"
              for kernel, theirs, ours, same in rows]
    return "\n".join(lines) + "\n"
