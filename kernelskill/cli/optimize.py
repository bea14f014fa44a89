"""`kernelskill optimize`: the main job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from kernelskill.cli.run_options import options_of, run_options


@click.command("optimize")
@click.argument("task", required=False, type=click.Path(exists=True, path_type=Path))
@run_options
@click.option("--wait", is_flag=True, help="With --writer handoff: wait for each answer instead of ending with exit code 3.")
@click.option("--out", type=click.Path(path_type=Path), help="Run folder  [default: runs/<task>-<time>]")
@click.option("--resume", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Go on with this run.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else.")
@click.pass_context
def command(ctx: click.Context, /, task: Path | None, wait: bool, out: Path | None, resume: Path | None, as_json: bool,
            **asked: Any) -> None:
    """Make TASK's kernel faster, round by round; the best solution is <run>/best.py.

    TASK is a folder with task.toml or one Python file (native or KernelBench form).
    """
    if (task is None) == (resume is None):
        raise click.UsageError("give either a TASK, or --resume RUN to go on with a run")
    from kernelskill import assembly
    from kernelskill.exchange import go_on
    from kernelskill.report.live import Progress, Silent
    from kernelskill.report.summary import print_summary, report_of

    observer = Silent() if as_json else Progress()
    folder = resume or out or assembly.default_folder(task or Path())
    try:
        if task is not None:
            assembly.create_run(task, options_of(**asked), folder)
        standing = go_on(folder, observer, observer.waiting if wait else None)
    except KeyboardInterrupt:
        if (folder / "run.json").exists():
            click.echo(f"\ninterrupted; go on with: kernelskill optimize --resume {folder}", err=True)
        ctx.exit(130)
    report = report_of(standing.run)
    if as_json:
        click.echo(json.dumps({**report, "request": str(standing.awaited.folder) if standing.awaited else None}))
    elif standing.awaited is None:
        print_summary(standing.run, report)
    if standing.awaited is not None:
        click.echo(f"waiting: {standing.awaited}\nthen: kernelskill optimize --resume {folder}", err=True)
        ctx.exit(standing.awaited.exit_code)
    ctx.exit(0 if report["status"] == "PASSED" else 1)
