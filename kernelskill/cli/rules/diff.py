"""`kernelskill rules diff`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from kernelskill.cli.rules import AS_JSON

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("diff")
@click.argument("before", type=FOLDER)
@click.argument("after", type=FOLDER)
@click.option("--runs", multiple=True, type=FOLDER,
              help="Run whose recorded facts are decided on; may be repeated  [default: every run in ./runs]")
@click.option("--alone", is_flag=True, help="The folders are whole rule sets: do not read the built-in rules before them.")
@AS_JSON
def command(before: Path, after: Path, runs: tuple[Path, ...], alone: bool, as_json: bool) -> None:
    """Say which rules differ between the folders BEFORE and AFTER, and which recorded decisions that changes."""
    from kernelskill.report.rulediff import compare

    found = compare(before, after, runs, alone=alone)
    click.echo(json.dumps(found.as_json()) if as_json else str(found))
