"""The options that say who writes and how the agents work, which several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
WRITER_HELP = ("Who writes: template (built in); litellm (a language model, see --model); handoff (you, or a coding agent); "
               "replay:RUN (what the writer of that run wrote).  [default: template]")
OPTIONS = (
    click.option("--writer", default="", help=WRITER_HELP),
    click.option("--model", help="Model of the litellm writer, e.g. openai/gpt-5; implies --writer litellm (docs/writers.md)."),
    click.option("--max-tokens", type=click.IntRange(1), help="Tokens that the models of a run may use in all."),
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


def agent_options(command: Command) -> Command:
    """Adds them all to a command; `agent_settings` turns their values into settings."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def agent_settings(writer: str, model: str | None, max_tokens: int | None, max_cost: float | None, no_long_term: bool,
                   no_short_term: bool, **more: Any) -> dict[str, Any]:
    """The fields of `assembly.Options` for these values, `more` as it is. Raises UsageError for what does not go together."""
    chosen = writer or ("litellm" if model else "template")
    if model and chosen != "litellm":
        raise click.UsageError(f"--model names the model of the litellm writer, and --writer is {chosen}")
    if no_long_term and chosen == "template":
        raise click.UsageError("--no-long-term leaves the choice to the writer: give --model, or --writer handoff")
    return {"writer": chosen, "model": {"name": model, "max_tokens": max_tokens, "max_cost": max_cost},
            "long_term": not no_long_term, "short_term": not no_short_term, **more}
