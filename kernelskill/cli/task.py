"""`kernelskill task`: about tasks themselves."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.group("task")
def command() -> None:
    """Check tasks: can they tell a right kernel from a wrong one?"""


@command.command("check")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--level", "levels", multiple=True, type=int, help="KernelBench level; may be repeated.")
@click.option("--ids", default="", help="Only these: keys, level/id, ids or ranges, comma-separated.")
@click.option("--device", default="auto", show_default=True, type=click.Choice(["auto", "sim", "cuda"]),
              help="cuda: references run on the GPU at full size; sim: on the CPU, at reduced sizes where needed.")
@click.option("--card", default="", help="Device card for the speed of light  [default: the GPU's own, else the H200's]")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1), help="Tasks at a time.")
@click.option("--budget", default=120.0, show_default=True, type=click.FloatRange(1), help="Seconds a task may take.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path),
              help="Append every report to this file as it comes, a line of JSON each; tasks in it are not checked again.")
@click.option("--finish", is_flag=True, help="Of the tasks in --out, do what had failed or found no time.")
@click.option("--json", "as_json", is_flag=True, help="The reports as JSON.")
@click.pass_context
def check(ctx: click.Context, path: Path, levels: tuple[int, ...], ids: str, device: str, card: str, workers: int,
          budget: float, out: Path | None, finish: bool, as_json: bool) -> None:
    """Lint PATH: one task, a folder of tasks, or a KernelBench checkout.

    Null candidates (zeros, ones, a constant, an input, the reference's outputs for other inputs) are judged like any solution.
    A task whose own check accepts one is unjudgeable as shipped. Exit code 1 when there is such a task.
    """
    from kernelskill import assembly
    from kernelskill.report.lint import print_reports, watched
    from kernelskill.suites.discover import find_tasks, select
    from kernelskill.suites.lint import LintJob, reports_of

    if finish and out is None:
        raise click.UsageError("--finish goes on with the reports of a file: name it with --out")
    mode, spec = assembly.choose_device(assembly.Options(device=device, card=card))  # type: ignore[arg-type]
    job = LintJob(select(find_tasks(path), levels, ids), spec, mode == "cuda", budget, workers, out, finish)
    try:
        with watched(len(job.tasks), quiet=as_json) as told:
            reports = reports_of(job, told)
    except KeyboardInterrupt:
        kept = f"; what is done is in {out}, the same command goes on" if out else ""
        click.echo(f"interrupted{kept}", err=True)
        ctx.exit(130)
    if as_json:
        rows = [{"key": key, "set_aside": r.set_aside, **r.model_dump(mode="json")} for key, r in reports.items()]
        click.echo(json.dumps(rows))
    else:
        print_reports(reports)
    ctx.exit(0 if all(report.verdict == "judgeable" for report in reports.values()) else 1)
