"""`kernelskill optimize`: the main job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from kernelskill.cli.agents import agent_options, agent_settings
from kernelskill.cli.allow import ALLOW_LIBRARY_HELP, split_names


@click.command("optimize")
@click.argument("task", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(1, 1000), help="Rounds at most.")
@click.option("--device", default="auto", show_default=True, type=click.Choice(["auto", "sim", "cuda"]),
              help="Where solutions run; auto: a GPU when cupy can use one.")
@click.option("--arch", default="sm_90", show_default=True, help="Architecture to simulate.")
@click.option("--card", default="", help="Device card to simulate, by name or file; wins over --arch.")
@agent_options
@click.option("--rules", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Folder with more rules; may be repeated, a later rule wins by id.")
@click.option("--timeout", default=300.0, show_default=True, type=click.FloatRange(1), help="Seconds an evaluation may take.")
@click.option("--allow-library", multiple=True, metavar="OPS", help=ALLOW_LIBRARY_HELP)
@click.option("--allow", multiple=True, metavar="CLASS", help="Permit a lower precision: tf32, fp16 or bf16. May be repeated.")
@click.option("--baselines", default="", metavar="NAMES",
              help="On a GPU: what the best solution is compared with at the end, e.g. eager,compile_tf32.  [default: all]")
@click.option("--experience", envvar="KERNELSKILL_EXPERIENCE", metavar="FILE", default="",
              help="Use what earlier runs brought, and add to it: a store's file, or `user` for your own. Off by default.")
@click.option("--no-experience", is_flag=True, help="Not even where KERNELSKILL_EXPERIENCE is set.")
@click.option("--wait", is_flag=True, help="With --writer handoff: wait for each answer instead of ending with exit code 3.")
@click.option("--out", type=click.Path(path_type=Path), help="Run folder  [default: runs/<task>-<time>]")
@click.option("--resume", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Go on with this run.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else.")
@click.pass_context
def command(ctx: click.Context, /, task: Path | None, timeout: float, allow_library: tuple[str, ...], experience: str,
            no_experience: bool, wait: bool, out: Path | None, resume: Path | None, as_json: bool, **asked: Any) -> None:
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
            options = assembly.Options(
                timeout_s=timeout, experience="" if no_experience else experience, allow_library=split_names(allow_library),
                **agent_settings(**asked))
            assembly.create_run(task, options, folder)
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
