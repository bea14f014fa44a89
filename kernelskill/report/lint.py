"""The lint of tasks for people: a line a task with its findings, then the totals."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from evaluator.lint.report import LintReport
from kernelskill.report.console import progress_console, result_console, time_text

STYLE = {"judgeable": "green", "unjudgeable_as_shipped": "yellow", "unjudgeable": "red", "not_checked": "dim"}
SAYS = {
    "judgeable": "judgeable",
    "unjudgeable_as_shipped": "unjudgeable as shipped, judged by our inputs and tolerance",
    "unjudgeable": "unjudgeable",
    "not_checked": "not checked",
}


@contextlib.contextmanager
def watched(total: int, quiet: bool) -> Iterator[Callable[[str, LintReport], None]]:
    """Shows progress with the time that is left on stderr, a task at a time; nothing where `quiet` or for one task."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=progress_console(), transient=True, disable=quiet or total < 2) as progress:
        bar = progress.add_task("lint", total=total)
        yield lambda key, report: progress.update(bar, advance=1, description=f"lint {key}")


def print_reports(reports: Mapping[str, LintReport]) -> None:
    """Every task with its verdict, findings and notes; the totals of several."""
    console = result_console()
    for key, report in reports.items():
        style = STYLE[report.verdict]
        about = f"speed of light {time_text(report.sol_us)}" if report.sol_us is not None else ""
        console.print(f"[bold]{escape(key)}[/bold] {escape(report.task)}  [{style}]{SAYS[report.verdict]}[/{style}]  {about}")
        for finding in report.findings:
            console.print(f"    {finding.code}: {finding.message}", markup=False)
        for note in report.notes:
            console.print(f"    {note}", style="dim", markup=False)
    if len(reports) > 1:
        print_totals(reports)


def print_totals(reports: Mapping[str, LintReport]) -> None:
    """How many tasks got which verdict and finding."""
    console = result_console()
    verdicts = Counter(report.verdict for report in reports.values())
    codes = Counter(code for report in reports.values() for code in {finding.code for finding in report.findings})
    aside = sum(report.set_aside for report in reports.values())
    console.print(f"{len(reports)} tasks, {aside} set aside: " + ", ".join(f"{n} {SAYS[v]}" for v, n in verdicts.most_common()))
    for code, number in codes.most_common():
        console.print(f"    {number:4} {code}")
