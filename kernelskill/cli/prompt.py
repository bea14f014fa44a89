"""`kernelskill prompt`: what the writer was asked."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("prompt")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--round", "round_", type=click.IntRange(1), help="The round.")
@click.option("--first-solution", "first", type=click.IntRange(1), metavar="N", help="Instead: the Nth first solution.")
@click.option("--repair", type=click.IntRange(1), metavar="N", help="What was asked to mend it, the Nth time.")
def command(run: Path, round_: int | None, first: int | None, repair: int | None) -> None:
    """Show the prompt of a round of RUN: the one method, the evidence, the constraints and the reply that is wanted.

    For a run whose writer keeps its requests this is the text that went out; otherwise it is rendered from the run's record, so
    that it can be read what a model would have been asked.
    """
    if (round_ is None) == (first is None):
        raise click.UsageError("give --round N, or --first-solution N")
    from kernelskill.report.asked import outdated, prompt_of

    if outdated(run):
        click.echo("the prompt templates have changed since: this is how they put it now", err=True)
    click.echo(prompt_of(run, round_ or 0, first or 0, repair or 0), nl=False)
