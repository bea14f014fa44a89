"""All probes, group by group."""

from __future__ import annotations

import functools
import importlib

from benchmarks.probes.probe import Group, Probe

GROUPS = ("integers", "floats", "conversions", "halves", "warps", "atomics", "memory", "control", "matrices", "asynchronous",
          "libraries")


@functools.cache
def groups() -> tuple[Group, ...]:
    """In the order of the table."""
    return tuple(importlib.import_module(f"benchmarks.probes.{name}").GROUP for name in GROUPS)


def load_probes() -> list[Probe]:
    """Every probe."""
    return [probe for group in groups() for probe in group.probes]


def find_probe(name: str) -> Probe:
    """By name. Raises KeyError that lists the nearest."""
    import difflib

    found = {probe.name: probe for probe in load_probes()}
    if name not in found:
        raise KeyError(f"no probe {name}; near: {', '.join(difflib.get_close_matches(name, found)) or 'none'}")
    return found[name]
