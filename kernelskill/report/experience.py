"""Experience as rows for programs and a table for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from kernelskill.memory.experience import Outcome, rows_of
from kernelskill.report.console import ratio_text, result_console

TIMES = {"sim": "modelled", "cuda": "measured"}


def counts(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """One row per device, mode, family, method and bottleneck; `gain` is the median of the successes."""
    groups: dict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.device, outcome.mode, outcome.family].append(outcome)
    return [{"device": device, "times": TIMES[mode], "family": family, **row.model_dump()}
            for (device, mode, family), group in sorted(groups.items()) for row in rows_of(group)]


def print_counts(path: Path, rows: list[dict[str, Any]]) -> None:
    """`experience show`."""
    console = result_console()
    if not rows:
        console.print(f"no outcomes in {escape(str(path))}; add some: kernelskill experience import RUN, or "
                      "kernelskill optimize TASK --experience user")
        return
    for title, group in groupby(rows, lambda row: (row["device"], row["family"] or "unknown family", row["times"])):
        console.print(", ".join(title), style="bold", markup=False)
        console.print(_table(group))


def _table(rows: Iterable[dict[str, Any]]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("method", "bottleneck", "trials", "successes", "gain"):
        table.add_column(name, justify="left" if name in ("method", "bottleneck") else "right")
    for row in rows:
        table.add_row(*(escape(str(row[name])) for name in ("method", "bottleneck", "trials", "successes")),
                      ratio_text(row["gain"]))
    return table
