"""A check of one kernel as a row of the record, and the record made of the rows."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.check_quality.corpus import Entry
from evaluator.checking.types import CheckReport, Verdict

Row = dict[str, Any]
SECONDS = 10.0
"""Processor time that one check may take by default: what one core has in ten seconds."""
RATIO = 3.0
"""Elements of the smallest example found over those of the smallest there is."""


def row_of(entry: Entry, report: CheckReport, seed: int, examples: int) -> Row:
    """What the check said of the kernel."""
    row: Row = {"kind": entry.kind, "kernel": entry.name, "task": entry.task.name, "digest": entry.digest, "seed": seed,
                "examples": examples, "calls": report.calls, "processor_s": round(report.processor_s, 2)}
    if report.outcome == "refused":
        row["refused"] = report.message[:300]
    if entry.kind == "honest":
        return row | {"false_alarms": sorted({_alarm(verdict) for verdict in report.violated()})}
    return row | _found(entry, report)


def _found(entry: Entry, report: CheckReport) -> Row:
    """Whether and how the fault was found: as one of the properties that it breaks, and how small."""
    assert entry.kernel is not None
    hits = [v for v in report.violated() if v.property in entry.kernel.properties and v.counterexample]
    others = sorted({v.property for v in report.violated()} - {v.property for v in hits})
    row: Row = {"found": bool(hits), "minimal": entry.kernel.minimal, "also_violated": others}
    if not hits:
        return row
    smallest = min((v.counterexample for v in hits if v.counterexample), key=lambda c: _elements(c.example.sizes))
    return row | {
        "property": [v.property for v in hits], "after": smallest.after, "shrunk": smallest.example.sizes,
        "values": smallest.example.values, "layout": smallest.example.layout,
        "ratio": round(_elements(smallest.example.sizes) / _elements(entry.kernel.minimal), 3)}


def _elements(sizes: dict[str, int]) -> int:
    return math.prod(sizes.values())


def _alarm(verdict: Verdict) -> str:
    found = verdict.counterexample
    return f"{verdict.title}: {found.example}: {found.message}"[:400] if found else verdict.title


def read_rows(path: Path) -> list[Row]:
    """The rows of a log, one JSON object a line; none where there is no file. A line that was cut off is left out."""
    rows: list[Row] = []
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
    return rows


def record(rows: Sequence[Row], command: str, mode: str) -> dict[str, Any]:
    """The committed form: a summary, the planted kernels, the right ones with their seeds taken together."""
    planted = sorted((row for row in rows if row["kind"] == "planted"), key=lambda row: str(row["kernel"]))
    honest = [_together(group) for group in _grouped(row for row in rows if row["kind"] == "honest")]
    return {"summary": summary(planted, honest, command, mode),
            "planted": [{k: v for k, v in row.items() if k not in ("kind", "seed")} for row in planted], "honest": honest}


def _grouped(rows: Iterable[Row]) -> list[list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["kernel"], []).append(row)
    return [sorted(groups[name], key=lambda row: int(row["seed"])) for name in sorted(groups)]


def _together(rows: Sequence[Row]) -> Row:
    first = rows[0]
    most = max(row["examples"] for row in rows)
    full = [row for row in rows if row["examples"] == most]
    return {
        "kernel": first["kernel"], "task": first["task"], "digest": first["digest"], "seeds": [row["seed"] for row in rows],
        "seeds_with_all_examples": [row["seed"] for row in full], "calls": sum(row["calls"] for row in rows),
        "processor_s": statistics.median(row["processor_s"] for row in full),
        "false_alarms": sorted({alarm for row in rows for alarm in row["false_alarms"]}),
        "refused": sorted({row["refused"] for row in rows if "refused" in row})}


def summary(planted: Sequence[Row], honest: Sequence[Row], command: str, mode: str) -> Row:
    """The figures that the documentation quotes."""
    found = [row for row in planted if row["found"]]
    seconds = [row["processor_s"] for row in (*planted, *honest)]
    return {
        "command": command, "mode": mode, "machine": machine(), "python": platform.python_version(),
        "planted": len(planted), "found": len(found), "missed": [row["kernel"] for row in planted if not row["found"]],
        "median_ratio": statistics.median([row["ratio"] for row in found] or [math.nan]),
        "worst_ratio": max([row["ratio"] for row in found], default=math.nan),
        "median_examples_to_find": statistics.median([row["after"] for row in found] or [math.nan]),
        "honest": len(honest), "honest_checks": sum(len(row["seeds"]) for row in honest),
        "honest_calls": sum(row["calls"] for row in honest),
        "false_alarms": [row["kernel"] for row in honest if row["false_alarms"]],
        "refused": [row["kernel"] for row in (*planted, *honest) if row.get("refused")],
        "processor_s_median": statistics.median(seconds or [math.nan]), "processor_s_most": max(seconds, default=math.nan),
        "over_ten_processor_s": [row["kernel"] for row in (*planted, *honest) if row["processor_s"] > SECONDS],
        "time": "processor time of a check's processes, without starting Python; the machine did other work meanwhile",
    }


def machine() -> str:
    """Cores and processor."""
    names = [line.split(":", 1)[1].strip() for line in _lines(Path("/proc/cpuinfo")) if line.startswith("model name")]
    return f"{os.cpu_count()} cores, {names[0] if names else platform.machine()}"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def table(result: dict[str, Any]) -> list[str]:
    """The record as the lines that `make quality` prints."""
    s = result["summary"]
    return [*_lines_of(result["planted"], result["honest"]), "",
            f"found {s['found']} of {s['planted']} planted faults; smallest example over the least there is: "
            f"median {s['median_ratio']:g}, worst {s['worst_ratio']:g}",
            f"blamed {len(s['false_alarms'])} of {s['honest']} right kernels in {s['honest_checks']} checks, "
            f"{s['honest_calls']} calls",
            f"processor time of a check: median {s['processor_s_median']:.1f} s, most {s['processor_s_most']:.1f} s"]


def table_of(rows: Sequence[Row]) -> list[str]:
    """Rows of single checks as lines."""
    honest = [_together([row]) for row in rows if row["kind"] == "honest"]
    return _lines_of([row for row in rows if row["kind"] == "planted"], honest)


def _lines_of(planted: Sequence[Row], honest: Sequence[Row]) -> list[str]:
    lines = [f"{'planted fault':<48} {'found as':<28} {'smallest':<24} {'× least':>7} {'cpu s':>6}"]
    for row in planted:
        sizes = ", ".join(f"{k}={v}" for k, v in row.get("shrunk", {}).items())
        said = ", ".join(row.get("property", ())) or row.get("refused", "NOT FOUND")[:28]
        lines.append(f"{row['kernel']:<48} {said:<28} {sizes:<24} {row.get('ratio', ''):>7} {row['processor_s']:>6.1f}")
    lines.append(f"{'right kernel':<48} {'blamed':<28} {'seeds':<24} {'':>7} {'cpu s':>6}")
    for row in honest:
        said = "; ".join(row["false_alarms"] or row["refused"] or ["no"])[:60]
        lines.append(f"{row['kernel']:<48} {said:<28} {len(row['seeds']):<24} {'':>7} {row['processor_s']:>6.1f}")
    return lines
