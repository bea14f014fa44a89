"""What an optimisation can be told on the command line, for `optimize`, `bench` and `requests` alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kernelskill.cli.allow import ALLOW_LIBRARY_HELP, split_names
from kernelskill.cli.one_solution import shapes_option

if TYPE_CHECKING:
    from kernelskill.assembly import Options

F = TypeVar("F", bound=Callable[..., Any])
OPTIONS = (
    click.option("--rounds", default=15, show_default=True, type=click.IntRange(1, 1000), help="Rounds at most."),
    click.option("--device", default="auto", show_default=True, type=click.Choice(["auto", "sim", "cuda"]),
        help="Where solutions run; auto: a GPU when cupy can use one."),
    click.option("--arch", default="sm_90", show_default=True, help="Architecture to simulate."),
    click.option("--card", default="", help="Device card to simulate, by name or file; wins over --arch."),
    click.option("--writer", default="",
        help="Who writes: template (built in); litellm (a language model, see --model); handoff (you, or a coding agent); "
             "replay:RUN (what the writer of that run wrote).  [default: template]"),
    click.option("--rules", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Folder with more rules; may be repeated, a later rule wins by id."),
    click.option("--timeout", default=300.0, show_default=True, type=click.FloatRange(1),
        help="Seconds an evaluation may take."),
    click.option("--allow-library", multiple=True, metavar="OPS", help=ALLOW_LIBRARY_HELP),
    click.option("--allow", multiple=True, metavar="CLASS",
        help="Permit a lower precision: tf32, fp16 or bf16. May be repeated."),
    shapes_option,
    click.option("--baselines", default="", metavar="NAMES",
        help="On a GPU: what the best solution is compared with at the end, e.g. eager,compile_tf32.  [default: all]"),
    click.option("--experience", envvar="KERNELSKILL_EXPERIENCE", metavar="FILE", default="",
        help="Use what earlier runs brought, and add to it: a store's file, or `user` for your own. Off by default."),
    click.option("--no-experience", is_flag=True, help="Not even where KERNELSKILL_EXPERIENCE is set."),
    click.option("--model", help="Model of the litellm writer, e.g. openai/gpt-5; implies --writer litellm (docs/writers.md)."),
    click.option("--max-tokens", type=click.IntRange(1), help="Tokens that the models of the run may use in all."),
    click.option("--max-cost", type=click.FloatRange(0, min_open=True), help="US dollars that they may cost in all."),
    click.option("--seeds", default=2, show_default=True, type=click.IntRange(1, 20),
        help="First solutions that a writer makes of a task without one; the best is kept."),
    click.option("--repairs", default=2, show_default=True, type=click.IntRange(0, 20),
        help="Repairs of a failed attempt at most."),
    click.option("--off-method", default="reject", show_default=True, type=click.Choice(["reject", "relabel"]),
        help="Right and faster code that is another method's: refuse it, or keep it as that method's attempt."),
    click.option("--policy", default="rules", show_default=True, type=click.Choice(["rules", "random"]),
        help="Ablation: random draws any applicable method."),
    click.option("--policy-seed", default=2026, show_default=True, help="Seed of --policy random."),
    click.option("--no-long-term", is_flag=True,
        help="Ablation: no rules and no cards, the writer chooses from the catalogue."),
    click.option("--no-short-term", is_flag=True, help="Ablation: neither rules nor writer know what was tried."),
)


def run_options(command: F) -> F:
    """Gives a command all OPTIONS; `options_of` takes what they were given."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def options_of(
    writer: str, timeout: float, allow_library: tuple[str, ...], experience: str, no_experience: bool, model: str | None,
    max_tokens: int | None, max_cost: float | None, no_long_term: bool, no_short_term: bool, **more: Any,
) -> Options:
    """The run's options. Raises click.UsageError for what does not go together."""
    from kernelskill import assembly

    chosen = writer or ("litellm" if model else "template")
    if model and chosen != "litellm":
        raise click.UsageError(f"--model names the model of the litellm writer, and --writer is {chosen}")
    if no_long_term and chosen == "template":
        raise click.UsageError("--no-long-term leaves the choice to the writer: give --model, or --writer handoff")
    return assembly.Options(
        writer=chosen, timeout_s=timeout, allow_library=split_names(allow_library),
        experience="" if no_experience else experience, model={"name": model, "max_tokens": max_tokens, "max_cost": max_cost},
        long_term=not no_long_term, short_term=not no_short_term, **more)
