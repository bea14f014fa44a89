"""`kernelskill rules new`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("new")
@click.argument("rule")
@click.option("--rules", "folder", required=True, type=click.Path(file_okay=False, path_type=Path),
              help="Your folder of rules; it is made when it does not exist.")
@click.option("--method", default="", help="The method that the rule proposes.")
def command(rule: str, folder: Path, method: str) -> None:
    """Write RULE.yaml and RULE.test.yaml, with blanks (`<...>`) to fill in; then `rules check` says what is left to do."""
    from kernelskill.report.scaffold import scaffold

    click.echo("\n".join(scaffold(folder, rule, method)))
