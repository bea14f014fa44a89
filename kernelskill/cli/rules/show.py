"""`kernelskill rules show`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from kernelskill.cli.rules import AS_JSON, FOLDERS


@click.command("show")
@click.argument("rule")
@FOLDERS
@AS_JSON
def command(rule: str, folders: tuple[Path, ...], as_json: bool) -> None:
    """Show one RULE as a page: its text, who can make it fire, what it can cause, which cases test it."""
    from kernelskill.report.rulepage import page_of, page_text

    page = page_of(folders, rule)
    click.echo(json.dumps(page) if as_json else page_text(page))
