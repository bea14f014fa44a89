"""The facts of one solution as they are collected; every value is checked against the vocabulary here and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kernelskill.errors import KernelSkillError
from kernelskill.model import Fact, Provenance, Value
from kernelskill.vocabulary import FactSpec, lookup

ROUNDING_PCT = 0.5
"""A percentage this far outside 0-100 is a rounding effect of its source and becomes the bound."""


class FactError(KernelSkillError):
    """A fact that contradicts the vocabulary: a source of facts is wrong."""

    exit_code = 3


class FactTable:
    """Name -> Fact. What was not measured is not added."""

    def __init__(self) -> None:
        self._facts: dict[str, Fact] = {}

    def add(self, name: str, value: Value | None, provenance: Provenance) -> None:
        """Add a fact, replacing one of the same name; None means unknown and adds nothing.

        Raises FactError for an unknown name, a wrong type, a value out of range, or a source that cannot know it.
        """
        if value is None:
            return
        spec = lookup(name)
        if spec is None:
            raise FactError(f"no fact is called '{name}'", hint="the names are in kernelskill/vocabulary.py")
        if provenance not in spec.sources:
            raise FactError(f"fact '{name}' cannot come from '{provenance}', only from {', '.join(spec.sources)}")
        self._facts[name] = Fact(name=name, value=_checked(spec, value), unit=spec.unit, provenance=provenance)

    def value(self, name: str) -> Value | None:
        """The value so far; None when unknown."""
        fact = self._facts.get(name)
        return None if fact is None else fact.value

    def number(self, name: str) -> float | None:
        """The numeric value so far; None when unknown."""
        value = self.value(name)
        return None if value is None else float(value)

    def facts(self) -> Mapping[str, Fact]:
        """All facts, in the order they were added."""
        return dict(self._facts)


def _checked(spec: FactSpec, value: Value) -> Value:
    """The value in the vocabulary's type and range; whole numbers as int."""
    if spec.kind == "bool" and isinstance(value, bool):
        return value
    if spec.kind == "text" and isinstance(value, str) and value and (not spec.values or value in spec.values):
        return value
    if spec.kind == "number" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return _in_range(spec, value)
    allowed = f" of {', '.join(spec.values)}" if spec.values else ""
    raise FactError(f"fact '{spec.name}' is a {spec.kind}{allowed}, got {value!r}")


def _in_range(spec: FactSpec, value: float) -> int | float:
    if not math.isfinite(value):
        raise FactError(f"fact '{spec.name}' is {value}")
    slack = ROUNDING_PCT if spec.unit == "%" else 0.0
    low = -math.inf if spec.low is None else spec.low
    high = math.inf if spec.high is None else spec.high
    if not low - slack <= value <= high + slack:
        raise FactError(f"fact '{spec.name}' = {value:g} {spec.unit} is outside {low:g} to {high:g}")
    bounded = min(max(value, low), high)
    return int(bounded) if float(bounded).is_integer() and abs(bounded) < 2**53 else bounded
