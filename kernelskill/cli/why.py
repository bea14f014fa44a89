"""`kernelskill why`: the audit of a decision."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("why")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--round", "round_", type=click.IntRange(1), help="One round  [default: every round, a line each]")
@click.option("--not", "method", metavar="METHOD", help="Why this method was not chosen.")
@click.option("--full", is_flag=True, help="Everything: all facts, all rules that fired.")
@click.option("--json", "as_json", is_flag=True, help="The decisions as JSON.")
def command(run: Path, round_: int | None, method: str | None, full: bool, as_json: bool) -> None:
    """Say why RUN's methods were chosen: facts, rules that fired, and why every other method lost."""
    from kernelskill.report.audit import explain, explain_not, select_decisions

    chosen = select_decisions(run, round_)
    if as_json:
        click.echo(json.dumps([{"round": r, "solution": s, "decision": d.model_dump(mode="json")} for r, s, d in chosen.decisions]))
    elif method:
        click.echo(explain_not(chosen, method))
    else:
        click.echo(explain(chosen, full=full))
