"""`kernelskill prompt`: what the writer was asked."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("prompt")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--round", "round_", required=True, type=click.IntRange(1), help="The round.")
def command(run: Path, round_: int) -> None:
    """Show the prompt of a round of RUN: the one method, the evidence, the constraints and the reply that is wanted.

    For a run whose writer keeps its requests this is the text that went out; otherwise it is rendered from the run's record, so
    that it can be read what a model would have been asked.
    """
    from kernelskill.report.asked import prompt_of

    click.echo(prompt_of(run, round_), nl=False)
