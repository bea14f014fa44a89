"""Facts from Nsight Compute: `ncu --csv --page raw` (metrics) and `--page details` (NVIDIA's own rule results).

Metrics become the fact that names them in the vocabulary; a rule's estimated speedup becomes `nsight_<rule>_speedup_pct`.
Lines around the table (==PROF==, the program's own output) are skipped.
"""

from __future__ import annotations

import ast
import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kernelskill.errors import KernelSkillError
from kernelskill.facts.table import FactTable
from kernelskill.vocabulary import VOCABULARY, lookup

BY_METRIC = {spec.ncu: name for name, spec in VOCABULARY.items() if spec.ncu and "ncu" in spec.sources}
"""Nsight Compute metric -> fact of one kernel."""
SCALES = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6, "nsecond": 1e-3, "usecond": 1.0, "msecond": 1e3, "second": 1e6,
          "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}
"""Unit -> factor to the vocabulary's unit (times in us, sizes in bytes)."""
OCCUPANCY_LIMITS = {"registers": "launch__occupancy_limit_registers", "shared_memory": "launch__occupancy_limit_shared_mem",
                    "warps": "launch__occupancy_limit_warps", "blocks": "launch__occupancy_limit_blocks"}
SOL_RULE = "SOLBottleneck"
_UNIT_NAMED = re.compile(r"identify the (DRAM|L2|L1)\b|analyzing (DRAM|L2|L1)\b")
_SOL_TEXTS = (("Compute is more heavily", "compute"), ("well-balanced", "balanced"), ("latency issues", "latency"),
              ("grid is too small", "latency"))


class NsightError(KernelSkillError):
    """The text is no export of Nsight Compute."""

    exit_code = 3


@dataclass(frozen=True)
class RuleResult:
    """What one of NVIDIA's rules said of a kernel."""

    rule: str
    description: str
    speedup_pct: float | None
    """The estimate; None where the rule gives none."""


@dataclass
class KernelProfile:
    """One profiled launch."""

    kernel: str
    block: tuple[int, ...] = ()
    grid: tuple[int, ...] = ()
    metrics: dict[str, float] = field(default_factory=dict)
    """By metric, times in us and sizes in bytes."""
    rules: list[RuleResult] = field(default_factory=list)

    @property
    def bottleneck(self) -> str:
        """What SOLBottleneck names: dram, l2, l1, compute, latency, balanced; "" where it is missing or names nothing."""
        text = next((rule.description for rule in self.rules if rule.rule == SOL_RULE), "")
        unit = _UNIT_NAMED.search(text)
        if unit:
            return (unit[1] or unit[2]).lower()
        return next((word for phrase, word in _SOL_TEXTS if phrase in text), "")


def read_profiles(raw: str, details: str = "") -> list[KernelProfile]:
    """The launches of a raw page, with the rule results of a details page of the same run (matched by ID, else by order).

    Raises NsightError when the raw page holds no table.
    """
    rows = _table(raw)
    if not rows:
        raise NsightError("this is no raw page of Nsight Compute", hint="export it with: ncu --csv --page raw -i REPORT")
    units, launches = rows[0], {row["ID"]: _profile(row, rows[0]) for row in rows[1:]}
    if units["ID"]:  # some versions write no row of units
        launches = {row["ID"]: _profile(row, {}) for row in rows}
    for row in _table(details):
        if row.get("Rule Name") and row["ID"] in launches:
            launches[row["ID"]].rules.append(
                RuleResult(row["Rule Name"], row["Rule Description"], _number(row.get("Estimated Speedup") or "")))
    return list(launches.values())


def rule_fact(rule: str) -> str:
    """The fact that holds the rule's estimate, e.g. `nsight_cpi_stall_speedup_pct` for CPIStall."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", rule)
    return f"nsight_{words.lower()}_speedup_pct"


def add_nsight_facts(table: FactTable, profile: KernelProfile) -> None:
    """Facts of the launch; a metric, rule or value that the vocabulary does not know adds nothing."""
    for metric, name in BY_METRIC.items():
        value = profile.metrics.get(metric)
        if value is not None:
            table.add(name, min(value, 100.0) if VOCABULARY[name].unit == "%" else value, "ncu")
    table.add("block_threads", math.prod(profile.block) or None if profile.block else None, "ncu")
    table.add("grid_blocks", math.prod(profile.grid) or None if profile.grid else None, "ncu")
    _add_occupancy(table, profile.metrics)
    _add_rules(table, profile)


def _add_occupancy(table: FactTable, metrics: Mapping[str, float]) -> None:
    limits = {name: metrics[metric] for name, metric in OCCUPANCY_LIMITS.items() if metric in metrics}
    if limits:
        limiter = min(limits, key=lambda name: limits[name])
        table.add("blocks_per_sm", limits[limiter], "ncu")
        table.add("occupancy_limiter", limiter, "ncu")


def _add_rules(table: FactTable, profile: KernelProfile) -> None:
    estimates: dict[str, float] = {}
    for rule in profile.rules:
        name = rule_fact(rule.rule)
        if rule.speedup_pct is not None and name in VOCABULARY:
            estimates[name] = max(rule.speedup_pct, estimates.get(name, 0.0))
    for name, value in estimates.items():
        table.add(name, min(value, 100.0), "ncu")
    table.add("nsight_bottleneck", profile.bottleneck or None, "ncu")


def _profile(row: Mapping[str, str], units: Mapping[str, str]) -> KernelProfile:
    metrics = {}
    for name, text in row.items():
        value = _number(text or "")
        if "__" in name and value is not None:
            metrics[name] = value * SCALES.get((units.get(name) or "").split("/")[0], 1.0)
    shapes = [ast.literal_eval(row.get(key) or "()") for key in ("Block Size", "Grid Size")]
    return KernelProfile(row["Kernel Name"], shapes[0], shapes[1], metrics)


def _table(text: str) -> list[dict[str, str]]:
    """Rows below the header that starts with "ID"."""
    return list(csv.DictReader(_from_header(text.splitlines())))


def _from_header(lines: Iterable[str]) -> Iterator[str]:
    seen = False
    for line in lines:
        seen = seen or line.startswith('"ID"')
        if seen and line.startswith('"'):
            yield line


def _number(text: str) -> float | None:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def unknown_rules(profiles: Iterable[KernelProfile]) -> set[str]:
    """Rules with an estimate for which the vocabulary has no fact."""
    return {rule.rule for profile in profiles for rule in profile.rules
            if rule.speedup_pct is not None and lookup(rule_fact(rule.rule)) is None}


