"""`kernelskill rules check`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from kernelskill.cli.rules import AS_JSON, FOLDERS


@click.command("check")
@FOLDERS
@AS_JSON
@click.pass_context
def command(ctx: click.Context, folders: tuple[Path, ...], as_json: bool) -> None:
    """Report every problem of the rule files with path:line:column and what to do. Exit code 1 when there is one."""
    from kernelskill.report.rulebook import checked, issue_json

    issues, summary = checked(folders)
    click.echo(json.dumps([issue_json(issue) for issue in issues]) if as_json else "\n".join([*map(str, issues), summary]))
    ctx.exit(1 if issues else 0)
