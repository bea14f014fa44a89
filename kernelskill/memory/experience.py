"""Experience: what methods brought in earlier runs, as facts of later ones.

An outcome is one round of a past run; outcomes are counted per (method, bottleneck, device, mode, family). A run takes a
snapshot of the counts when it starts and keeps it in `run.json`, so that its decisions never change afterwards. The facts
break ties and scale the gain that a rule expects (`kernelskill.policy.gain`); they choose nothing by themselves.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator

from evaluator.types import Frozen, Mode
from kernelskill.memory.store import digest_of
from kernelskill.model import Fact, Value

BOTTLENECK = "bottleneck."
"""Prefix of the derived facts that say what a solution was limited by."""
UNCOUNTED = frozenset({"duplicate", "not_written"})
"""Outcomes that say something of the writer and nothing of the method."""


class Outcome(Frozen):
    """What one round of one run brought."""

    run: str
    """Identity of the run: the same wherever its folder is copied to."""
    round: int
    method: str
    bottlenecks: tuple[str, ...]
    """What the parent was limited by, as the rules derived it, e.g. `dram`; `none` alone where they derived nothing."""
    device: str
    mode: Mode
    """Modelled (`sim`) and measured (`cuda`) gains are never counted together."""
    family: str
    success: bool
    gain: float | None
    """Parent's time / child's time; None where the child has no time."""


class Row(Frozen):
    """The counts of one method under one bottleneck, for one device, mode and family."""

    method: str
    bottleneck: str
    trials: int
    successes: int
    gain: float | None
    """Median gain of the successes; None where there is none."""


class Snapshot(Frozen):
    """What a run knew of earlier runs when it started."""

    store: str
    """Where it came from and where the run's own outcomes go: `user`, or the path of a file."""
    device: str
    mode: Mode
    family: str
    rows: tuple[Row, ...]

    @property
    def digest(self) -> str:
        """Digest of the counts, for comparing runs."""
        return digest_of("\n".join(row.model_dump_json() for row in self.rows))


def rows_of(outcomes: Iterable[Outcome]) -> tuple[Row, ...]:
    """The counts, ordered by method and bottleneck. The outcomes are of one device, mode and family."""
    groups: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        for bottleneck in outcome.bottlenecks:
            groups[outcome.method, bottleneck].append(outcome)
    return tuple(_row(*key, group) for key, group in sorted(groups.items()))


def _row(method: str, bottleneck: str, group: list[Outcome]) -> Row:
    gains = [o.gain for o in group if o.success and o.gain is not None]
    return Row(method=method, bottleneck=bottleneck, trials=len(group), successes=sum(o.success for o in group),
               gain=statistics.median(gains) if gains else None)


def experience_facts(snapshot: Snapshot | None) -> dict[str, Fact]:
    """The snapshot as facts: `experience_trials.<method>.<bottleneck>`, `experience_successes`, `experience_gain`."""
    return {fact.name: fact for row in (snapshot.rows if snapshot else ()) for fact in _row_facts(row)}


def _row_facts(row: Row) -> Iterator[Fact]:
    found: list[tuple[str, Value | None, str]] = [("trials", row.trials, "attempts"), ("successes", row.successes, "attempts"),
                                                  ("gain", row.gain, "ratio")]
    for name, value, unit in found:
        if value is not None:
            yield Fact(name=f"experience_{name}.{row.method}.{row.bottleneck}", value=value, unit=unit, provenance="experience")
