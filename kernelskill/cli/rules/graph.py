"""`kernelskill rules graph`."""

from __future__ import annotations

from pathlib import Path

import click

from kernelskill.cli.rules import FOLDERS


@click.command("graph")
@FOLDERS
@click.option("--about", "names", multiple=True, metavar="NAME",
              help="Only what leads to, or follows from, this rule, fact or method; may be repeated.")
@click.option("--svg", is_flag=True, help="A picture (SVG) instead of DOT.")
@click.option("--out", type=click.Path(dir_okay=False, writable=True, path_type=Path), help="Write here instead of stdout.")
def command(folders: tuple[Path, ...], names: tuple[str, ...], svg: bool, out: Path | None) -> None:
    """Draw facts → rules → methods, as Graphviz DOT or as an SVG picture."""
    from kernelskill.report.rulegraph import drawn

    text = drawn(folders, names, svg=svg)
    if out:
        out.write_text(text, encoding="utf-8")
    else:
        click.echo(text, nl=False)
