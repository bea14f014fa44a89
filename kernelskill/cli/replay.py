"""`kernelskill replay`: the same facts must give the same decisions."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("replay")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--builtin", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="A rules folder that stands in for the built-in one, e.g. that of the version which made the run.")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON.")
@click.pass_context
def command(ctx: click.Context, run: Path, builtin: Path | None, as_json: bool) -> None:
    """Take all decisions of RUN again, from the facts it recorded and the rules as they are now.

    Exit code 0 when every decision comes out identical, 1 with the first difference named.
    """
    from kernelskill.report.audit import replay_run

    count, difference = replay_run(run, builtin)
    if as_json:
        click.echo(json.dumps({"decisions": count, "identical": not difference, "difference": difference or None}))
    else:
        click.echo(difference or f"{count} decisions, all identical")
    ctx.exit(1 if difference else 0)
