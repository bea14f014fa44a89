"""One search: prepared examples first, then Hypothesis's random ones, then its shrinking, within a share of the work."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.database import ExampleDatabase
from hypothesis.errors import Flaky, Unsatisfiable, UnsatisfiedAssumption
from hypothesis.strategies import SearchStrategy

from evaluator.checking.lab import Spent
from evaluator.checking.properties import Scenario, Trial, Violation
from evaluator.checking.types import SHARE_DONE, Example

PHASES = (Phase.reuse, Phase.generate, Phase.shrink)
"""`explain` would call the solution many times more."""
SUPPRESSED = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large, HealthCheck.large_base_example)
"""A call takes what it takes, and which sizes a task refuses is found by asking it."""
ATTEMPTS = 2
"""Examples may be tried so many times as often as they are wanted."""
SHRINKING_COST = 2.0
"""Nominal seconds (`lab.COST_OF_CALL`) after the first fault, however much of its share the search still has."""
WALK_COST = 1.0
"""Nominal seconds for trying every smaller size of what is left, fault by fault."""
SHRINKING_SECONDS = {"sim": 20.0, "cuda": 4.0}
"""By the clock."""


@dataclass
class Fault:
    """A violated property and the smallest example that showed it."""

    violation: Violation
    example: Any
    first_found: Any
    after: int
    """Examples until it showed."""
    flaky: bool = False


@dataclass
class Search:
    """What a search has seen; `run` fills it."""

    trial: Trial
    scenario: Scenario
    share: float
    """Nominal seconds."""
    shrinks: bool = True
    judged: int = 0
    """Examples that ended with a verdict."""
    attempts: int = 0
    limit: int = 0
    """Attempts before the first fault, dropped examples included."""
    left_out: int = 0
    """Examples not tried because smaller ones took too long."""
    spent: str = ""
    """Why it stopped early."""
    faults: dict[str, Fault] = field(default_factory=dict)
    """By property."""
    _known: dict[Any, Violation] = field(default_factory=dict)
    _most: float = 0.0
    """Of the lab's cost."""
    _until: float = math.inf
    """Of the clock."""

    def run(
        self, strategy: SearchStrategy[Any], prepared: Sequence[Example], failing: Callable[[Example], ExampleDatabase],
        examples: int, seed_value: int,
    ) -> None:
        """Tries the prepared examples until one fails, then draws up to `examples` others; shrinks what fails.

        `failing` makes of an example what has Hypothesis begin with it. Never raises for what the solution does.
        """
        self._most = self.trial.lab.cost + self.share
        self.limit = ATTEMPTS * (examples + len(prepared)) + 20
        found = next((example for example in prepared if self._fails(example)), None)
        database = failing(found) if found is not None else None

        # `settings` outside of `seed`, which switches the database off.
        @settings(max_examples=examples, deadline=None, database=database, phases=PHASES if self.shrinks else PHASES[:2],
                  suppress_health_check=SUPPRESSED, report_multiple_bugs=True, verbosity=Verbosity.quiet, print_blob=False)
        @seed(seed_value)
        @given(strategy)
        def property_test(example: Any) -> None:
            self._try(example)

        try:
            property_test()
        except Unsatisfiable:
            return
        except Exception as failed:  # a Violation, a group of them, Flaky
            if not self.faults:
                raise
            self._mark_flaky(failed)

    def _fails(self, example: Example) -> bool:
        try:
            return self._verdict(example) is not None
        except UnsatisfiedAssumption:
            return False

    def walk(self, smaller: Callable[[Example], Iterable[Example]]) -> None:
        """Takes for each fault the first of `smaller(its example)` that shows it too.

        Hypothesis tries sizes below the failing one by halves and steps; a fault of some sizes only, 67 and 131 among 130
        others, is left at the larger one then.
        """
        for fault in self.faults.values():
            most = self.trial.lab.cost + WALK_COST
            for example in smaller(fault.example) if isinstance(fault.example, Example) and not fault.flaky else ():
                if self.trial.lab.cost > most or time.monotonic() > self._until or self._walked(fault, example):
                    break

    def _walked(self, fault: Fault, example: Example) -> bool:
        """Whether the fault shows, and is noted, on that example."""
        try:
            self.scenario(self.trial, example)
        except Violation as violation:
            if violation.property == fault.violation.property:
                fault.violation, fault.example = violation, example
                return True
        except (UnsatisfiedAssumption, Spent):
            pass
        return False

    def _try(self, example: Any) -> None:
        violation = self._verdict(example)
        if violation is not None:
            # One line raises everything: Hypothesis takes faults of one class from one line for one fault.
            raise type(violation)(violation.message, violation.steps, violation.mismatch, violation.finding, violation.got)

    def _verdict(self, example: Any) -> Violation | None:
        if self.spent or self.trial.lab.cost > self._most or time.monotonic() > self._until:
            # Shrinking ends when nothing smaller fails; what failed before must still fail, or it would pass for flaky.
            self.spent = self.spent or SHARE_DONE
            return self._known.get(example)
        self.attempts += 1
        if self.attempts > self.limit:
            self.spent = f"{self.judged} of {self.limit} examples got as far: others are excluded, or a plain call is wrong"
            return self._known.get(example)
        if example not in self._known and any(self.trial.lab.too_slow(part) for part in _parts(example)):
            self.left_out += 1
            raise UnsatisfiedAssumption
        try:
            self.scenario(self.trial, example)
        except Violation as violation:
            self.judged += 1
            self._note(example, violation)
            return violation
        except Spent as spent:
            self.spent = str(spent)
            return self._known.get(example)
        self.judged += 1
        return None

    def _note(self, example: Any, violation: Violation) -> None:
        if not self.faults:
            self.limit = 1 << 30
            self._most = min(self._most, self.trial.lab.cost + SHRINKING_COST)
            self._until = time.monotonic() + SHRINKING_SECONDS[self.trial.lab.request.request.mode]
        self._known[example] = violation
        known = self.faults.get(violation.property)
        if known is None:
            self.faults[violation.property] = Fault(violation, example, example, self.judged)
        else:
            # Hypothesis ends by trying its smallest example once more: the last one noted is the smallest.
            known.violation, known.example = violation, example

    def _mark_flaky(self, failed: BaseException) -> None:
        flaky = failed if isinstance(failed, Flaky) else next(
            (e for e in getattr(failed, "exceptions", ()) if isinstance(e, Flaky)), None)
        if flaky is not None:
            for fault in self.faults.values():
                fault.flaky = True


def _parts(drawn: Any) -> tuple[Example, ...]:
    """The examples of a draw: one, or a pair."""
    return drawn if isinstance(drawn, tuple) else (drawn,)
