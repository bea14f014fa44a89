"""What every command on one solution asks for: the file, its task, and where it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., object])


shapes_option = click.option(
    "--shapes", default="general", show_default=True, type=click.Choice(["general", "exact"]),
    help="general: a solution must be right at other sizes too; exact: at the task's own alone.")
"""For every command that evaluates."""


def one_solution(function: Function) -> Function:
    """Adds SOLUTION, --task, --device, --arch, --card and --shapes, in this order of the help text."""
    for decorate in reversed((
        click.argument("solution", type=click.Path(exists=True, dir_okay=False, path_type=Path)),
        click.option("--task", "task_path", required=True, type=click.Path(exists=True, path_type=Path),
                     help="The task it should solve."),
        click.option("--device", default="auto", show_default=True, type=click.Choice(["auto", "sim", "cuda"]),
                     help="Where it runs."),
        click.option("--arch", default="sm_90", show_default=True, help="Architecture to simulate."),
        click.option("--card", default="", help="Device card to simulate, by name or file."),
        shapes_option,
    )):
        function = decorate(function)
    return function
