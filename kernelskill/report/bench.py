"""The report of a bench: JSON for programs, Markdown for people, an SVG picture of the distribution."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from kernelskill.memory.run import Run, ablation
from kernelskill.model import Decision, MethodApplication
from kernelskill.report.benchsvg import distribution
from kernelskill.report.console import progress_console, ratio_text, result_console, time_text
from kernelskill.report.live import Silent
from kernelskill.suites.bench import Bench
from kernelskill.suites.rows import BEST_OF_ALL, BEST_TORCH, START, BenchRow
from kernelskill.suites.scores import FAST_P, Group, Scores, Speedups, scores_of

RESULTS, PAGE, PICTURE = "results.json", "results.md", "speedups.svg"
GROUPS = {"all": "all tasks", "clean": "clean", "set_aside": "set aside", "not_linted": "not linted"}
BASELINES = {
    START: "the start", BEST_TORCH: "the best torch of at least its precision", BEST_OF_ALL: "the fastest of all baselines",
}
SHORT = {START: "the start", BEST_TORCH: "best torch", BEST_OF_ALL: "best of all"}
"""The same for a terminal."""
SETTINGS = {"long_term": True, "short_term": True, "policy": "rules", "policy_seed": 0}
"""What an ablation changes, with what it is otherwise."""
MODELLED = "Times are the simulator's model, not measured: trust the order, not the numbers."


LEGEND = (
    "fast_p (the share with a speedup above p) counts every task of the group, failed ones as not fast; means are over solved "
    "tasks that have a time; time / light is the geometric mean of time over speed of light. Tasks set aside cannot tell a "
    "right kernel from a wrong one as they ship, or allow speedups that are no kernel's (`kernelskill task check`).")


class BenchProgress(Silent):
    """What is done now, a bar with the time that is left, and a line for every finished task, on stderr."""

    def __init__(self, total: int, done: int, quiet: bool = False) -> None:
        counted = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        columns = (*counted, TimeElapsedColumn(), TimeRemainingColumn())
        self.console, self._quiet = progress_console(), quiet
        self.progress = Progress(*columns, console=self.console, transient=True, disable=quiet)
        self._bar = self.progress.add_task("bench", total=total, completed=done)
        self._task = ""

    def __enter__(self) -> BenchProgress:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def opened(self, run: Run) -> None:
        """A task is begun, or gone on with."""
        self._task = run.folder.name
        self._show("start")

    def decided(self, round_: int, decision: Decision, method: MethodApplication | None) -> None:
        """A round begins."""
        if method is not None:
            self._show(f"round {round_}, {method.method}")

    def comparing(self, baselines: Sequence[str]) -> None:
        """The best solution is measured again."""
        self._show("best beside the baselines")

    def _show(self, doing: str) -> None:
        self.progress.update(self._bar, description=f"{escape(self._task)}: {doing}")

    def finished(self, row: BenchRow) -> None:
        """One task is done."""
        if not self._quiet:
            self.console.print(_line(row))
        self.progress.update(self._bar, advance=1)


def _line(row: BenchRow) -> str:
    if not row.solved:
        return f"{escape(row.key)}  [red]{row.outcome}[/red]  {escape(row.reason.splitlines()[0] if row.reason else '')}"
    over = next((name for name in (BEST_TORCH, BEST_OF_ALL, START) if name in row.speedups), None)
    speedup = f"{ratio_text(row.speedups[over])} over {BASELINES[over]}" if over else f"no time: {escape(row.reason)}"
    rounds = f"{row.rounds} round{'' if row.rounds == 1 else 's'}" + (f" ({row.stopped})" if row.stopped else "")
    return f"{escape(row.key)}  [green]solved[/green]  {time_text(row.time_us)}  {speedup}  {rounds}"


def write_reports(bench: Bench) -> Scores:
    """Writes the three files into the bench's folder."""
    rows = list(bench.rows().values())
    scores = scores_of(rows)
    record = {
        "suite": bench.config.suite, "selection": bench.config.selection, "options": bench.config.options,
        "versions": bench.config.versions, "tasks": len(bench.tasks), "finished": len(rows) - len(_waiting(rows)),
        "scores": scores.model_dump(mode="json"), "rows": [row.model_dump(mode="json") for row in rows],
    }
    _write(bench.folder / RESULTS, json.dumps(record, indent=1) + "\n")
    _write(bench.folder / PAGE, page(bench, rows, scores))
    _write(bench.folder / PICTURE, distribution(rows, headline_baseline(scores), scores.modelled))
    return scores


def _waiting(rows: Sequence[BenchRow]) -> list[BenchRow]:
    return [row for row in rows if row.outcome == "waiting"]


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def headline_baseline(scores: Scores) -> str:
    """What the headline and the picture compare with: the strictest that there is."""
    return next(iter(scores.groups["all"].speedups), START)


def page(bench: Bench, rows: Sequence[BenchRow], scores: Scores) -> str:
    """The Markdown page."""
    parts = [f"# Bench of {bench.config.suite}", "", _asked(bench, rows)]
    if scores.modelled:
        parts += ["", f"**{MODELLED}**"]
    parts += ["", f"![Speedups]({PICTURE})", "", "## Scores", "", *_score_table(scores.groups, GROUPS)]
    if scores.by_precision:
        parts += ["", "## By precision class of the solution", "",
                  *_score_table(scores.by_precision, {name: name for name in scores.by_precision})]
    parts += ["", LEGEND, "", "## Tasks", "", *_task_table(rows)]
    return "\n".join(parts) + "\n"


def _asked(bench: Bench, rows: Sequence[BenchRow]) -> str:
    options, missing = bench.config.options, len(bench.tasks) - len(rows)
    text = (f"{len(bench.tasks)} tasks, at most {options['rounds']} rounds each, writer {options['writer']}, "
            f"device {options['device']}, shapes {options.get('shapes', 'general')}.")
    without = ablation(*(options.get(name, usual) for name, usual in SETTINGS.items()))
    text += f" Ablation: {without}." if without else ""
    chosen = ", ".join(f"{name} {value}" for name, value in bench.config.selection.items() if value not in (None, "", [], ()))
    text += f" Selected: {chosen}." if chosen else ""
    if missing:
        text += f" {missing} not run yet: `kernelskill bench --resume {bench.folder}`."
    return text


def _score_table(groups: dict[str, Group], names: dict[str, str]) -> list[str]:
    fast = [f"fast_{p:g}" for p in FAST_P]
    head = ["tasks", "n", "solved", "against", "with times", "geometric", "95 %", "arithmetic", "median", *fast, "time / light"]
    lines = ["| " + " | ".join(head) + " |", "| --- | ---: | ---: | --- |" + " ---: |" * (len(head) - 4)]
    for name, group in groups.items():
        first = [names[name], str(group.tasks), f"{group.solved} ({100 * group.success_rate:.0f} %)"]
        light = f"{group.distance:.2f}" if group.distance else "–"
        rows: list[Speedups | None] = [*group.speedups.values()] or [None]
        for position, found in enumerate(rows):
            shown = first if position == 0 else ["", "", ""]
            lines.append("| " + " | ".join([*shown, *_speedup_cells(found), light if position == 0 else ""]) + " |")
    return lines


def _speedup_cells(found: Speedups | None, names: Mapping[str, str] = BASELINES) -> list[str]:
    """Baseline, tasks with times, geometric mean, its interval, arithmetic mean, median, and fast_p for every p."""
    if found is None:
        return ["–"] * (6 + len(FAST_P))
    interval = f"{found.low:.2f} to {found.high:.2f}" if found.low is not None and found.high is not None else "–"
    shares = [f"{100 * share:.0f} %" for share in found.fast.values()]
    return [names.get(found.baseline, found.baseline), str(found.counted), ratio_text(found.geometric), interval,
            ratio_text(found.arithmetic), ratio_text(found.median), *shares]


def _task_table(rows: Sequence[BenchRow]) -> list[str]:
    head = ["task", "outcome", "start", "time", "over start", "over best torch", "precision", "time / light", "rounds",
            "methods", "set aside for", "reason"]
    lines = ["| " + " | ".join(head) + " |", "| --- |" * 1 + " --- |" * (len(head) - 1)]
    for row in rows:
        light = f"{row.distance:.2f}" if row.distance else "–"
        over = [ratio_text(row.speedups.get(name)) for name in (START, BEST_TORCH)]
        cells = [
            f"{row.key} {Path(row.task).stem}" if row.key[0].isdigit() else row.key, row.outcome,
            time_text(row.start_time_us), time_text(row.time_us), *over, row.precision_class or "–", light,
            str(row.rounds), " → ".join(row.methods) or "–", ", ".join(row.set_aside_for) or "–",
            (row.reason or row.stopped).replace("|", "/").replace("\n", " ")[:160],
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def print_scores(bench: Bench, scores: Scores) -> None:
    """The groups against each baseline: means, then shares of tasks by speedup; and where the reports are."""
    console = result_console()
    means = _table("", "solved", "over", "geometric", "95 %", "arithmetic", "time / light")
    shares = _table("tasks faster than", "over", *(f"{p:g}×" for p in FAST_P))
    for name, group in scores.groups.items():
        light, solved = f"{group.distance:.2f}" if group.distance else "–", f"{group.solved} of {group.tasks}"
        rows: list[Speedups | None] = [*group.speedups.values()] or [None]
        for position, found in enumerate(rows):
            over, _, geometric, interval, arithmetic, _, *fast = _speedup_cells(found, SHORT)
            first, own, last = (GROUPS[name], solved, light) if position == 0 else ("", "", "")
            means.add_row(first, own, over, geometric, interval, arithmetic, last)
            shares.add_row(first, over, *fast)
    console.print(means, "", shares)
    if scores.modelled:
        console.print(MODELLED, style="dim")
    console.print(f"reports  {bench.folder / PAGE}, {RESULTS}, {PICTURE}", markup=False)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number == 0 or name == "over" else "right", no_wrap=True)
    return table
