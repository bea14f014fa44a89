"""`kernelskill requests`: what many runs wait for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from kernelskill.cli.run_options import options_of, run_options


@click.command("requests")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.argument("tasks", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[TASK]...")
@run_options
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="Runs that go on at once.")
@click.option("--json", "as_json", is_flag=True, help="The index as JSON.")
@click.pass_context
def command(ctx: click.Context, /, folder: Path, tasks: tuple[Path, ...], jobs: int, as_json: bool, **asked: Any) -> None:
    """List the open requests of all runs in DIR, one folder each in DIR/open/; index: DIR/index.json.

    With TASKs: start a run for each that has none in DIR yet, up to its first request, with the handoff writer unless another
    is named. Answers go to DIR/open/<request>/solution.py, then: kernelskill submit DIR. Exit code 1: a task was not usable.
    """
    from kernelskill.batch import RUNS, Batch, batch_at
    from kernelskill.report.batch import index_lines, print_turns

    unusable: dict[str, str] = {}
    if tasks:
        options = options_of(**{**asked, "writer": asked["writer"] or ("" if asked["model"] else "handoff")})
        (folder / RUNS).mkdir(parents=True, exist_ok=True)
        batch = Batch(folder)
        unusable = batch.create(tasks, options)
        for task, why in unusable.items():
            click.echo(f"not started: {task}: {why}", err=True)
        print_turns(batch.advance(batch.ready(), jobs))
    index = batch_at(folder).publish()
    click.echo(json.dumps(index) if as_json else "\n".join(index_lines(folder, index)))
    ctx.exit(1 if unusable else 0)
