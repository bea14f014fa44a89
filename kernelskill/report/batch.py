"""A batch of runs for people: the turns as they come, and where every run stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from kernelskill.report.console import ratio_text
from kernelskill.report.speedup import HOW
from kernelskill.report.turn import turn_lines


def print_turns(turns: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each turn on stderr as it comes; all of them at the end."""
    found = []
    for turn in turns:
        found.append(turn)
        lines = [turn["error"]] if "error" in turn else list(turn_lines(turn))
        click.echo("\n  ".join([Path(turn["run"]).name, *lines]), err=True)
    return found


def index_lines(folder: Path, index: dict[str, Any]) -> Iterator[str]:
    """A line a run, then how many requests are open and what to do with them."""
    width = max((len(Path(row["run"]).name) for row in index["runs"]), default=0)
    for row in index["runs"]:
        yield f"{Path(row['run']).name:{width}}  {_standing(row)}"
    waiting = len(index["open"])
    yield (f"{waiting} open: put each answer at {folder}/open/<request>/solution.py, then: kernelskill submit {folder}"
           if waiting else "nothing is open")


def _standing(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['state']}: {row['error']}"
    speedup = (f", {ratio_text(row['speedup'])} over the start, {row['precision_class']}, {HOW[row['time_provenance']]} for "
               f"{row['device']}" if row["speedup"] else "")
    rounds = f"{row['rounds']} of {row['round_budget']} rounds{speedup}"
    if row["request"]:
        return f"waits for {row['request']['method'] or row['request']['role']} ({row['request']['folder']}), {rounds}"
    return f"{row['state']}{': ' + row['stop_reason'] if row['stop_reason'] else ''}, {rounds}"
