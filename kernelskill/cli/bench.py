"""`kernelskill bench`: many tasks, one score."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from kernelskill.cli.run_options import options_of, run_options


@click.command("bench")
@click.argument("suite", required=False)
@click.option("--kernelbench", type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Checkout of KernelBench; the suite is then called kernelbench.")
@click.option("--level", "levels", multiple=True, type=int, help="KernelBench level; may be repeated.")
@click.option("--ids", default="", help="Only these: keys, level/id, ids or ranges, comma-separated.")
@click.option("--sample", type=click.IntRange(1), help="Only so many of them, drawn at random.")
@click.option("--seed", default=0, show_default=True, help="Of the sample.")
@click.option("--lint", "lint_file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Take the lint from this file: of `task check --out`, or benchmarks/results/kernelbench_lint.json.  "
                   "[default: lint every task first]")
@click.option("--no-lint", is_flag=True, help="Do not tell clean tasks from those set aside.")
@run_options
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the bench  [default: runs/bench-<suite>-<time>]")
@click.option("--resume", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Go on with this bench.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores as one JSON object and nothing else.")
@click.pass_context
def command(ctx: click.Context, /, suite: str | None, kernelbench: Path | None, resume: Path | None, as_json: bool,
            lint_file: Path | None, no_lint: bool, **asked: Any) -> None:
    """Optimise every task of SUITE and score the results.

    SUITE is a folder of tasks, such as examples, or `kernelbench` with --kernelbench DIR. A bench that was interrupted goes on
    with --resume. Exit code 1 when a task was not solved.
    """
    from kernelskill.report.bench import BenchProgress, print_scores, write_reports
    from kernelskill.report.lint import watched
    from kernelskill.suites.bench import LINT, Bench
    from kernelskill.suites.lint import known, reports_for

    if (suite is None and kernelbench is None) == (resume is None):
        raise click.UsageError("give a SUITE (a folder of tasks, or --kernelbench DIR), or --resume FOLDER")
    bench = Bench.open(resume) if resume else _new(suite, kernelbench, **asked)
    try:
        lint = known(lint_file) if lint_file else {}
        if not (lint_file or no_lint):
            with watched(len(bench.tasks), quiet=as_json) as told:
                lint = reports_for(bench.tasks, bench.options, bench.folder / LINT, told)
        with BenchProgress(len(bench.tasks), len(bench.tasks) - len(bench.pending()), quiet=as_json) as progress:
            for row in bench.play(progress, lint):
                progress.finished(row)
                write_reports(bench)
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted; go on with: kernelskill bench --resume {bench.folder}", err=True)
        ctx.exit(130)
    scores = write_reports(bench)
    if as_json:
        click.echo(json.dumps({"bench": str(bench.folder), **scores.model_dump(mode="json")}))
    else:
        print_scores(bench, scores)
    group = scores.groups["all"]
    ctx.exit(0 if group.solved == len(bench.tasks) else 1)


def _new(suite: str | None, kernelbench: Path | None, levels: tuple[int, ...], ids: str, sample: int | None, seed: int,
         out: Path | None, **asked: Any) -> Any:
    """A bench that does not exist yet."""
    from kernelskill.suites.bench import Bench
    from kernelskill.suites.discover import find_tasks, select

    where = kernelbench or Path(suite or "")
    if not where.exists():
        hint = "a SUITE is a folder of tasks" if suite != "kernelbench" else "give a checkout of it with --kernelbench DIR"
        raise click.UsageError(f"{where}: no such folder; {hint}")
    tasks = select(find_tasks(where), levels, ids, sample, seed)
    selection = {"level": list(levels), "ids": ids, "sample": sample, "seed": seed if sample else None}
    name = "kernelbench" if kernelbench else where.resolve().name
    folder = out or Path("runs") / f"bench-{name}-{datetime.now():%Y%m%d-%H%M%S}"
    return Bench.create(folder, suite or name, tasks, options_of(**asked), selection)
