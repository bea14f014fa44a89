"""Facts: what is known of a solution, each value with its unit and provenance."""

from kernelskill.facts.collect import collect

__all__ = ["collect"]
