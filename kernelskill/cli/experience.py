"""`kernelskill experience`: the store of what methods brought in earlier runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

STORE = click.option("--store", envvar="KERNELSKILL_EXPERIENCE", default="user", metavar="FILE",
                     help="The store; `user` is your own.  [default: user]")
SELECTION = (
    click.option("--method", default=None, help="Only this method."),
    click.option("--device", default=None, help="Only this device, by its full name."),
    click.option("--mode", default=None, type=click.Choice(["sim", "cuda"]), help="Only modelled or only measured gains."),
    click.option("--family", default=None, help="Only this task family."),
)


def selected(function: Any) -> Any:
    """Adds the options that say which outcomes are meant."""
    for option in reversed(SELECTION):
        function = option(function)
    return function


@click.group("experience")
def command() -> None:
    """Show, share or forget what methods brought in earlier runs.

    Runs use and extend a store only when started with `optimize --experience`; `import RUN` adds any finished run.
    """


@command.command("show")
@STORE
@selected
@click.option("--json", "as_json", is_flag=True, help="The counts as JSON.")
def show(store: str, as_json: bool, **selection: str | None) -> None:
    """Trials, successes and median gain, per method, bottleneck, device and family."""
    from kernelskill.memory.experience_store import store_named
    from kernelskill.report.experience import counts, print_counts

    opened = store_named(store)
    rows = counts(opened.outcomes(**_given(selection)))
    if as_json:
        click.echo(json.dumps({"store": str(opened.path), "rows": rows}))
    else:
        print_counts(opened.path, rows)


@command.command("export")
@STORE
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), default="-")
def export(store: str, file: Path) -> None:
    """Write every outcome as JSON to FILE (or stdout), to be imported elsewhere."""
    from kernelskill.memory.experience_store import Exported, store_named

    text = Exported(outcomes=tuple(store_named(store).outcomes())).model_dump_json(indent=1)
    if str(file) == "-":
        click.echo(text)
    else:
        file.write_text(text + "\n", encoding="utf-8")


@command.command("import")
@STORE
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="FILE_OR_RUN...")
def import_(store: str, sources: tuple[Path, ...]) -> None:
    """Add exported files or run folders; what the store knows already is not counted twice."""
    from kernelskill.memory.experience_store import outcomes_of, read_export, store_named
    from kernelskill.memory.run import Run

    opened = store_named(store)
    for source in sources:
        found = outcomes_of(Run.open(source)) if source.is_dir() else read_export(source)
        click.echo(f"{source}: {len(found)} outcomes, {opened.add(found)} of them new")


@command.command("forget")
@STORE
@selected
@click.option("--all", "everything", is_flag=True, help="Everything.")
def forget(store: str, everything: bool, **selection: str | None) -> None:
    """Remove outcomes. Runs made before keep the snapshot they used."""
    chosen = _given(selection)
    if everything == bool(chosen):
        raise click.UsageError("say what to forget: --method, --device, --mode, --family, or --all")
    from kernelskill.memory.experience_store import store_named

    click.echo(f"{store_named(store).forget(**chosen)} outcomes forgotten")


def _given(selection: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in selection.items() if value is not None}
