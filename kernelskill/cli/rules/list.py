"""`kernelskill rules list`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from kernelskill.cli.rules import AS_JSON, FOLDERS


@click.command("list")
@FOLDERS
@AS_JSON
def command(folders: tuple[Path, ...], as_json: bool) -> None:
    """List the rules: id, status, title, what they do."""
    from kernelskill.report.rulebook import list_lines, listed

    rows = listed(folders)
    click.echo(json.dumps(rows) if as_json else "\n".join(list_lines(rows)))
