"""`kernelskill why`: the audit of a decision."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("why")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--round", "round_", type=click.IntRange(1), help="One round  [default: every round]")
@click.option("--depth", type=click.Choice(["line", "rules", "all"]),
              help="One line, the rules that mattered, or every fact and rule  [default: line for a run, rules for a round]")
@click.option("--not", "method", metavar="METHOD", help="Why this method was not chosen.")
@click.option("--nearest", is_flag=True, help="With --not: the smallest change of facts that would have chosen it.")
@click.option("--json", "as_json", is_flag=True, help="The decisions (with --not: the verdicts) as JSON.")
def command(run: Path, round_: int | None, depth: str | None, method: str | None, nearest: bool, as_json: bool) -> None:
    """Say why RUN's methods were chosen: facts, rules that fired, and why every other method lost."""
    if nearest and method is None:
        raise click.UsageError("--nearest needs --not METHOD")
    from kernelskill.report.audit import explain, explain_nearest, explain_not, select_decisions

    chosen = select_decisions(run, round_)
    if method is not None:
        found = explain_nearest(chosen, method) if nearest else explain_not(chosen, method)
        lines = (f"round {entry['round']}: {entry['verdict']}" for entry in found)
        click.echo(json.dumps(found) if as_json else "\n".join(lines))
    elif as_json:
        rows = [{"round": r, "solution": s, "decision": d.model_dump(mode="json")} for r, s, d in chosen.decisions]
        click.echo(json.dumps(rows))
    else:
        click.echo(explain(chosen, depth))  # type: ignore[arg-type]
