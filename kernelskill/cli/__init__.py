"""The command line. Commands are imported when called, so `kernelskill --help` answers at once.

Exit codes: 0 done, 1 the task could not be solved, 2 wrong use.
"""

from __future__ import annotations

import importlib
import sys

import click

from kernelskill import __version__

COMMANDS = {
    "optimize": "Make a task's kernel faster, round by round.",
    "why": "Say why a method was chosen, or why another was not.",
    "show": "Show a run: its graph of attempts and their results.",
    "evaluate": "Compile, verify and profile one solution.",
    "replay": "Take a run's decisions again and compare.",
    "rules": "Check, test and list the expert rules.",
    "doctor": "Say what this machine has and what is missing.",
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import `kernelskill.cli.<name>` and take its `command`."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"kernelskill.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kernelskill")
def group() -> None:
    """KernelSkill makes GPU kernels faster, one rule-chosen method a round, and can say why.

    Try:  kernelskill optimize examples/row_softmax
    """


def main() -> None:
    """Entry point: a user's mistake is one clear message, never a traceback."""
    from kernelskill.errors import KernelSkillError

    try:
        sys.exit(group(standalone_mode=False) or 0)  # click returns what a command gave to ctx.exit
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except KernelSkillError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
