"""`kernelskill requests`: what many runs wait for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from kernelskill.cli.allow import ALLOW_LIBRARY_HELP, split_names


@click.command("requests")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.argument("tasks", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[TASK]...")
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(1, 1000), help="Rounds at most, for new runs.")
@click.option("--device", default="auto", show_default=True, type=click.Choice(["auto", "sim", "cuda"]),
              help="Where the solutions of new runs run.")
@click.option("--arch", default="sm_90", show_default=True, help="Architecture to simulate.")
@click.option("--card", default="", help="Device card to simulate, by name or file.")
@click.option("--rules", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Folder with more rules, for new runs.")
@click.option("--timeout", default=300.0, show_default=True, type=click.FloatRange(1), help="Seconds an evaluation may take.")
@click.option("--allow-library", multiple=True, metavar="OPS", help=ALLOW_LIBRARY_HELP)
@click.option("--allow", multiple=True, metavar="CLASS", help="Permit a lower precision: tf32, fp16 or bf16. May be repeated.")
@click.option("--baselines", default="", metavar="NAMES", help="On a GPU: what the best is compared with.  [default: all]")
@click.option("--seeds", default=1, show_default=True, type=click.IntRange(1, 20), help="First solutions of a task.")
@click.option("--repairs", default=2, show_default=True, type=click.IntRange(0, 20), help="Repairs of a failed attempt.")
@click.option("--off-method", default="reject", show_default=True, type=click.Choice(["reject", "relabel"]),
              help="Right and faster code that is another method's: refuse it, or keep it as that method's attempt.")
@click.option("--no-long-term", is_flag=True, help="Ablation: no rules and no cards.")
@click.option("--no-short-term", is_flag=True, help="Ablation: neither rules nor writer know what was tried.")
@click.option("--experience", envvar="KERNELSKILL_EXPERIENCE", metavar="FILE", default="",
              help="Use what earlier runs brought, and add to it: a store's file, or `user` for your own. Off by default.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="Runs that go on at once.")
@click.option("--json", "as_json", is_flag=True, help="The index as JSON.")
@click.pass_context
def command(ctx: click.Context, /, folder: Path, tasks: tuple[Path, ...], jobs: int, as_json: bool, timeout: float,
            allow_library: tuple[str, ...], no_long_term: bool, no_short_term: bool, **options: Any) -> None:
    """List the open requests of all runs in DIR, one folder each in DIR/open/; index: DIR/index.json.

    With TASKs: start a run for each that has none in DIR yet, with the handoff writer, up to its first request. Answers go to
    DIR/open/<request>/solution.py, then: kernelskill submit DIR. Exit code 1 when a task could not be used.
    """
    from kernelskill import assembly
    from kernelskill.batch import RUNS, Batch, batch_at
    from kernelskill.report.batch import index_lines, print_turns

    unusable: dict[str, str] = {}
    if tasks:
        (folder / RUNS).mkdir(parents=True, exist_ok=True)
        batch = Batch(folder)
        unusable = batch.create(tasks, assembly.Options(
            writer="handoff", timeout_s=timeout, allow_library=split_names(allow_library), long_term=not no_long_term,
            short_term=not no_short_term, **options))
        for task, why in unusable.items():
            click.echo(f"not started: {task}: {why}", err=True)
        print_turns(batch.advance(batch.ready(), jobs))
    index = batch_at(folder).publish()
    click.echo(json.dumps(index) if as_json else "\n".join(index_lines(folder, index)))
    ctx.exit(1 if unusable else 0)
