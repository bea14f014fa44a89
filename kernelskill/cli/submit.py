"""`kernelskill submit`: a solution in, its verdict and the next request out."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("submit")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="RUN|DIR")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--request", default="", metavar="ID", help="Refuse unless the run waits for this request.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="Runs of a batch that go on at once.")
@click.option("--json", "as_json", is_flag=True, help="The turn, or the batch's turns and index, as JSON.")
@click.pass_context
def command(ctx: click.Context, folder: Path, file: Path | None, request: str, jobs: int, as_json: bool) -> None:
    """Hand FILE in as the answer to RUN's open request and go on until the next one.

    With a batch DIR (`kernelskill requests`) instead: take every DIR/open/<request>/solution.py and go on with all runs.
    Exit code 3 while something is awaited, 0 when all is finished, 1 when RUN is finished and nothing was solved, 2 when an
    answer could not be taken.
    """
    if file is None:
        _submit_batch(ctx, folder, jobs, as_json)
    from kernelskill.errors import RunHeldError
    from kernelskill.exchange import go_on, hand_in
    from kernelskill.report.live import Silent
    from kernelskill.report.turn import turn_lines, turn_of

    assert file is not None
    hand_in(folder, file.read_bytes(), file, request)
    try:
        turn = turn_of(go_on(folder, Silent()))
    except RunHeldError:
        click.echo("handed in; the process that is working on this run takes it", err=True)
        ctx.exit(3)
    click.echo(json.dumps(turn) if as_json else "\n".join(turn_lines(turn)))
    ctx.exit(3 if turn["state"] == "waiting" else 0 if turn["solution"] else 1)


def _submit_batch(ctx: click.Context, folder: Path, jobs: int, as_json: bool) -> None:
    from kernelskill.batch import batch_at
    from kernelskill.report.batch import index_lines, print_turns

    batch = batch_at(folder)
    refused = batch.take_answers()
    turns = print_turns(batch.advance(batch.ready(), jobs))
    index = batch.publish()
    for name, why in refused.items():
        click.echo(f"not taken: {name}: {why}", err=True)
    click.echo(json.dumps({"turns": turns, "refused": refused, "index": index}) if as_json else
               "\n".join(index_lines(folder, index)))
    stuck = [turn for turn in turns if turn["state"] == "stuck"]
    ctx.exit(2 if refused or stuck else 3 if index["open"] else 0)
