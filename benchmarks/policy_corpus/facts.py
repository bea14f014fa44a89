"""Fact sets as data: `facts/*.jsonl`, one set a line, facts grouped by where they come from.

Facts about methods (`applicable.<method>` and history) are stored as what differs from "never tried", and are expanded over
all methods that exist when the corpus is read: a method that came later is not applicable in a recorded run.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelskill.model import Fact, Value
from kernelskill.vocabulary import PER_METHOD, lookup

FOLDER = Path(__file__).resolve().parent / "facts"
ANY_METHOD = "*"
"""In `applicable`: a writer that can write anything, so that only the rules decide."""
NEVER: dict[str, Value] = {"applied": False, "repeats": 0, "tried_here": 0, "failed_here": 0, "no_gain_here": 0}
FRESH: dict[str, Value] = {"round": 1, "rounds_left": 15, "rounds_since_best": 0, "attempts_here": 0, "last_outcome": "none",
                           "best_speedup": 1.0}
"""History of a solution nobody has worked on."""


@dataclass(frozen=True)
class FactSet:
    """What is known of one solution at one moment."""

    name: str
    origin: str
    """`h200` (Nsight Compute and CUDA events), `modelled` (time model), `run` (journal of an optimise run), `nsight` (CSV)."""
    facts: Mapping[str, Mapping[str, Value]]
    """Provenance -> fact -> value, without facts about methods."""
    applicable: tuple[str, ...] = (ANY_METHOD,)
    methods: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """Method -> its history facts that differ from `NEVER`."""

    def expand(self, methods: Collection[str]) -> dict[str, Fact]:
        """Every fact of a decision, by name."""
        found = {name: _fact(name, value, provenance) for provenance, group in self.facts.items()
                 for name, value in group.items()}
        for method in sorted(methods):
            can = method in self.applicable or ANY_METHOD in self.applicable
            found[f"applicable.{method}"] = _fact(f"applicable.{method}", can, "writer")
            for name, value in {**NEVER, **self.methods.get(method, {})}.items():
                found[f"{name}.{method}"] = _fact(f"{name}.{method}", value, "history")
        return found


def _fact(name: str, value: Value, provenance: str) -> Fact:
    spec = lookup(name)
    return Fact.model_validate({"name": name, "value": value, "provenance": provenance, "unit": spec.unit if spec else ""})


def from_facts(name: str, origin: str, facts: Mapping[str, Fact]) -> FactSet:
    """The set that expands to `facts` again; values rounded to five digits. Without a word on applicability: any method."""
    groups: dict[str, dict[str, Value]] = {}
    per_method: dict[str, dict[str, Value]] = {}
    asked = any(name.startswith("applicable.") for name in facts)
    applicable = [] if asked else [ANY_METHOD]
    for fact in facts.values():
        match = PER_METHOD.match(fact.name)
        if match is None:
            groups.setdefault(fact.provenance, {})[fact.name] = _rounded(fact.value)
        elif match[1] == "applicable":
            applicable += [match[2]] if fact.value else []
        elif NEVER.get(match[1]) != fact.value:
            per_method.setdefault(match[2], {})[match[1]] = _rounded(fact.value)
    return FactSet(name, origin, groups, tuple(sorted(applicable)), per_method)


def _rounded(value: Value) -> Value:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def write(path: Path, sets: Iterable[FactSet]) -> int:
    """One line a set; the number of lines."""
    lines = [json.dumps({"name": s.name, "origin": s.origin, "applicable": s.applicable, "methods": s.methods,
                         "facts": s.facts}, sort_keys=True) for s in sets]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines)


def read(folder: Path = FOLDER) -> Iterator[FactSet]:
    """Every set of the folder, file by file."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            data: dict[str, Any] = json.loads(line)
            yield FactSet(data["name"], data["origin"], data["facts"], tuple(data["applicable"]), data["methods"])
