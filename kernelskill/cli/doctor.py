"""`kernelskill doctor`: is this machine ready?"""

from __future__ import annotations

import dataclasses
import json

import click


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="The checks as JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Say what this machine has, what is missing, what that disables, and what installs it.

    Exit code 1 when something the main job needs is missing.
    """
    from kernelskill.doctor import examine
    from kernelskill.report.checks import print_checks

    checks = list(examine())
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(check) for check in checks]))
    else:
        print_checks(checks)
    ctx.exit(1 if any(check.needed and check.state != "ok" for check in checks) else 0)
