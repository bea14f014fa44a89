"""`kernelskill check`: property-based tests of one solution."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelskill.cli.one_solution import one_solution

if TYPE_CHECKING:
    from evaluator.types import Shapes


@click.command("check")
@one_solution
@click.option(
    "--examples", default=100, show_default=True, type=click.IntRange(1), help="Random examples, after the boundaries."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Another seed draws other examples.")
@click.option("--layouts", multiple=True, type=click.Choice(["offset", "strided", "transposed"]),
              help="Hold the solution to this layout of its inputs too, declared or not.")
@click.option("--timeout", default=60.0, show_default=True, type=click.FloatRange(5),
              help="Seconds it may take by the clock; what a search does is counted, so it seldom matters.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=None,
              help="Folder for the report, counterexamples and what failed before.  [default: checks/SOLUTION]")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@click.pass_context
def command(
    ctx: click.Context, solution: Path, task_path: Path, device: str, arch: str, card: str, shapes: Shapes, examples: int,
    seed: int, layouts: tuple[str, ...], timeout: float, out: Path | None, as_json: bool,
) -> None:
    """Look for the smallest input on which SOLUTION is wrong. Exit code 0 when every property holds, 1 when one does not."""
    from evaluator.checking.text import report_lines
    from kernelskill import assembly, checking

    mode, spec = assembly.choose_device(assembly.Options(device=device, arch=arch, card=card))  # type: ignore[arg-type]
    folder = out or Path("checks") / solution.stem
    report = checking.check(solution, task_path, spec, mode, examples, seed, layouts, timeout, folder, shapes)
    if as_json:
        click.echo(report.to_json())
    else:
        for line in report_lines(report):
            click.echo(line)
        for path in checking.reproductions(folder, report):
            click.echo(f"run it:  python {path}")
    ctx.exit({"passed": 0, "failed": 1}.get(report.outcome, 2))
