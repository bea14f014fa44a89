"""A fault that only earlier calls explain: shown by two calls in a new process, on a size as small as shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hypothesis.errors import UnsatisfiedAssumption

from evaluator.checking.counterexample import counterexample
from evaluator.checking.lab import Spent
from evaluator.checking.properties import Trial, Violation, after_call
from evaluator.checking.search import Fault
from evaluator.checking.strategies import Space
from evaluator.checking.types import TITLES, Example, Verdict
from evaluator.inputs import TASK

UNEXPLAINED = "after other calls in the same process; in a fresh one it is right"


def blamed_on_calls(fault: Fault, trial: Trial, space: Space, anchors: Sequence[Example]) -> Verdict:
    """The verdict on a fault of a single call that a fresh process does not show. `anchors`: what was called early on."""
    example: Example = fault.example
    again = example.model_copy(update={"values": TASK, "seed": example.seed + 1})
    least = example.model_copy(update={"values": TASK, "sizes": space.least(example.sizes)})
    shown = _first(fault, example, (again, least, *anchors), trial)
    title = TITLES["calls"]
    if shown is None:
        found = counterexample(fault, trial.lab, title).model_copy(update={"reproduction": "", "scenario": UNEXPLAINED})
    else:
        found = counterexample(_smallest(shown, trial, space), trial.lab, title)
    return Verdict(property="calls", title=title, outcome="violated", examples=fault.after, counterexample=found)


def _first(fault: Fault, example: Example, earlier: Iterable[Example], trial: Trial) -> Fault | None:
    """The fault on that example after the first of `earlier` that leads to it."""
    for one in earlier:
        violation = _after(one, example, trial)
        if violation is not None:
            return replace(fault, violation=violation, example=example)
    return None


def _smallest(shown: Fault, trial: Trial, space: Space) -> Fault:
    """By halves among the smaller sizes: every try takes a process of its own."""
    smaller = [example for example in space.smaller(shown.example) if example.seed == shown.example.seed]
    before = shown.violation.steps[0].posed.example
    follows = before.sizes == shown.example.sizes
    low, high = 0, len(smaller)
    while low < high:
        middle = (low + high) // 2
        example = smaller[middle]
        found = _first(shown, example, (before.model_copy(update={"sizes": example.sizes}) if follows else before,), trial)
        if found is None:
            low = middle + 1
        else:
            shown, high = found, middle
    return shown


def _after(earlier: Example, example: Example, trial: Trial) -> Violation | None:
    try:
        trial.lab.renew()
        after_call(trial, earlier, example)
    except Violation as violation:
        return violation
    except (UnsatisfiedAssumption, Spent):
        return None
    return None
