"""How well modelled times rank and match measured ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

CLOSE = 1.15
"""Measured times nearer than this count as equal."""
FAR = 2.0
"""Pairs up to this ratio are the hard ones."""


@dataclass(frozen=True)
class Score:
    """Agreement over a set of kernels."""

    pairs: int
    right: int
    hard_pairs: int
    hard_right: int
    error_factor: float
    """exp of the mean |log(modelled / measured)|; 1 is exact."""
    worst: tuple[str, float]
    """The kernel that is farthest off, and modelled / measured."""
    wrong: tuple[tuple[str, str], ...]
    """Pairs that are ranked wrongly, the measured faster one first."""

    @property
    def percent(self) -> float:
        """Pairs ranked right, of all that differ."""
        return 100 * self.right / self.pairs if self.pairs else 100.0


def score(groups: Iterable[Sequence[str]], modelled: Mapping[str, float], measured: Mapping[str, float]) -> Score:
    """`groups`: kernels that solve one problem, ranked against each other only."""
    pairs, wrong, hard, hard_wrong, logs = 0, [], 0, 0, {}
    for names in groups:
        known = [name for name in names if name in modelled]
        logs.update({name: math.log(modelled[name] / measured[name]) for name in known})
        for pair in combinations(known, 2):
            fast, slow = sorted(pair, key=lambda name: measured[name])
            ratio = measured[slow] / measured[fast]
            if ratio <= CLOSE:
                continue
            mistaken = modelled[slow] <= modelled[fast]
            pairs, hard = pairs + 1, hard + (ratio <= FAR)
            hard_wrong += mistaken and ratio <= FAR
            if mistaken:
                wrong.append((fast, slow))
    worst = max(logs, key=lambda name: abs(logs[name])) if logs else ""
    error = math.exp(sum(map(abs, logs.values())) / len(logs)) if logs else 1.0
    return Score(pairs, pairs - len(wrong), hard, hard - hard_wrong, error, (worst, math.exp(logs[worst]) if worst else 1.0),
                 tuple(wrong))
