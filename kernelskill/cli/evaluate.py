"""`kernelskill evaluate`: the reviewer alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelskill.cli.allow import ALLOW_LIBRARY_HELP, split_names
from kernelskill.cli.one_solution import one_solution

if TYPE_CHECKING:
    from evaluator.types import Shapes


@click.command("evaluate")
@one_solution
@click.option("--timeout", default=300.0, show_default=True, type=click.FloatRange(1), help="Seconds it may take.")
@click.option("--seed", type=int, default=None, help="Repeat the evaluation with the seed that its verdict names.")
@click.option("--allow-library", multiple=True, metavar="OPS", help=ALLOW_LIBRARY_HELP)
@click.option("--baselines", default="", metavar="NAMES",
              help="On a GPU: what to time beside it, e.g. eager,compile_tf32, or all.")
@click.option("--start", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="The solution that the baseline naive_start times  [default: the task's own start]")
@click.option("--json", "as_json", is_flag=True, help="The evaluation as JSON.")
@click.pass_context
def command(
    ctx: click.Context, solution: Path, task_path: Path, device: str, arch: str, card: str, shapes: Shapes, timeout: float,
    seed: int | None, allow_library: tuple[str, ...], baselines: str, start: Path | None, as_json: bool,
) -> None:
    """Compile, verify and profile SOLUTION against a task. Exit code 0 when it passes, 1 when it does not."""
    from kernelskill import assembly
    from kernelskill.agents.reviewer import Reviewer
    from kernelskill.report.evaluation import print_evaluation
    from kernelskill.tasks import load_task

    mode, spec = assembly.choose_device(assembly.Options(device=device, arch=arch, card=card))  # type: ignore[arg-type]
    task = load_task(task_path).allowing(split_names(allow_library)).judged_on(shapes)
    chosen = assembly.chosen_baselines(baselines, task, mode)
    with assembly.start_file(task, start) as path:
        evaluation = Reviewer(task, spec, mode, timeout).review(solution.resolve(), seed, baselines=chosen, start=path)
    if as_json:
        click.echo(evaluation.to_json())
    else:
        print_evaluation(evaluation)
    ctx.exit(0 if evaluation.status.value == "PASSED" else 1)
