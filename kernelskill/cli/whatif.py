"""`kernelskill whatif`: other facts or rules, and which decisions change."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("whatif")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--round", "round_", type=click.IntRange(1), help="One round  [default: every round]")
@click.option("--fact", "facts", multiple=True, metavar="NAME=VALUE",
              help="As if this had been measured; NAME=unknown: as if not.")
@click.option("--without-rule", "without", multiple=True, metavar="ID", help="As if this rule did not exist.")
@click.option("--rules", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="As if this folder of rules had been given too.")
@click.option("--json", "as_json", is_flag=True, help="All decisions, before and after, as JSON.")
def command(run: Path, round_: int | None, facts: tuple[str, ...], without: tuple[str, ...], rules: tuple[Path, ...],
            as_json: bool) -> None:
    """Take RUN's decisions again under other facts or rules and say which change, from what to what.

    Each decision is looked at for itself: what a changed round would have led to later is not played out.
    """
    if not (facts or without or rules):
        raise click.UsageError("give --fact NAME=VALUE, --without-rule ID or --rules DIR; each may be repeated")
    from kernelskill.report.audit import select_decisions
    from kernelskill.report.whatif import imagine, summary

    changes, note = imagine(select_decisions(run, round_), facts, without, rules)
    if as_json:
        click.echo(json.dumps({"note": note or None, "decisions": [change.as_json() for change in changes]}))
        return
    shown = [change for change in changes if change.changed or round_ is not None]
    click.echo("\n".join([*map(str, shown), *([note] if note else []), summary(changes)]))
