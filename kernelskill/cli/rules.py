"""`kernelskill rules`: the expert's workbench."""

from __future__ import annotations

from pathlib import Path

import click

FOLDERS = click.option("--rules", "folders", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
                       help="Folder with more rules, beside the built-in ones; may be repeated.")


@click.group("rules")
def command() -> None:
    """Check, test and list the expert rules."""


@command.command("check")
@FOLDERS
@click.pass_context
def check(ctx: click.Context, folders: tuple[Path, ...]) -> None:
    """Report every problem of the rule files with path:line:column. Exit code 1 when there is one."""
    from kernelskill.report.rulebook import checked

    lines, clean = checked(folders)
    click.echo("\n".join(lines))
    ctx.exit(0 if clean else 1)


@command.command("test")
@FOLDERS
@click.option("--filter", "text", default="", help="Only cases whose file, name or rules contain this.")
@click.option("--coverage", type=click.FloatRange(0, 100), default=None, metavar="PERCENT",
              help="Also fail when fewer of the conditions were seen both true and not true.")
@click.pass_context
def test(ctx: click.Context, folders: tuple[Path, ...], text: str, coverage: float | None) -> None:
    """Run the *.test.yaml files beside the rules. Exit code 1 when a case fails."""
    from kernelskill.report.rulebook import tested

    lines, good = tested(folders, text, coverage)
    click.echo("\n".join(lines))
    ctx.exit(0 if good else 1)


@command.command("list")
@FOLDERS
def list_(folders: tuple[Path, ...]) -> None:
    """List the rules: id, title, what they do."""
    from kernelskill.report.rulebook import listed

    click.echo("\n".join(listed(folders)))


@command.command("show")
@click.argument("rule")
@FOLDERS
def show(rule: str, folders: tuple[Path, ...]) -> None:
    """Show one RULE: its text, its source, where it stands."""
    from kernelskill.report.rulebook import shown

    click.echo(shown(folders, rule))
