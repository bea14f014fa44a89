"""`kernelskill show`: a run at a glance."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("show")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Attempts and summary as JSON.")
def command(run: Path, as_json: bool) -> None:
    """Show RUN's graph of attempts and the table of results."""
    from kernelskill.memory.run import Run
    from kernelskill.report.summary import attempt_rows, print_run, report_of

    opened = Run.open(run)
    if as_json:
        click.echo(json.dumps({**report_of(opened), "attempts": attempt_rows(opened)}))
    else:
        print_run(opened)
