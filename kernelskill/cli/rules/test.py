"""`kernelskill rules test`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from kernelskill.cli.rules import AS_JSON, FOLDERS


@click.command("test")
@FOLDERS
@click.option("--filter", "text", default="", help="Only cases whose file, name or rules contain this.")
@click.option("--coverage", type=click.FloatRange(0, 100), default=None, metavar="PERCENT",
              help="Also fail when fewer of the conditions were seen both true and not true; with --rules those of your rules "
                   "by your cases, with --filter those of the rules that its cases name.")
@AS_JSON
@click.pass_context
def command(ctx: click.Context, folders: tuple[Path, ...], text: str, coverage: float | None, as_json: bool) -> None:
    """Run the *.test.yaml files beside the rules. Exit code 1 when a case fails."""
    from kernelskill.report.rulebook import tested

    outcome = tested(folders, text, coverage)
    click.echo(json.dumps(outcome.as_json()) if as_json else str(outcome))
    ctx.exit(0 if outcome.good else 1)
