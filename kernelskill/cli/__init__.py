"""The command line. Commands are imported when called, so `kernelskill --help` answers at once.

Exit codes: 0 done, 1 the task could not be solved, 2 wrong use.
"""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Mapping

import click

from kernelskill import __version__

COMMANDS = {
    "optimize": "Make a task's kernel faster, round by round.",
    "bench": "Optimise many tasks and score the results.",
    "why": "Say why a method was chosen, or why another was not.",
    "show": "Show a run: its graph of attempts and their results.",
    "evaluate": "Compile, verify and profile one solution.",
    "check": "Look for the smallest input on which a solution is wrong.",
    "whatif": "Say which decisions other facts or rules would change.",
    "replay": "Take a run's decisions again and compare.",
    "requests": "List what many runs wait for, or start them.",
    "submit": "Hand in a solution, or all that a batch has; see the verdict and the next request.",
    "prompt": "Show what the writer was asked in a round.",
    "mcp": "Serve runs to a coding agent over the Model Context Protocol.",
    "experience": "Show, share or forget what earlier runs brought.",
    "task": "Check tasks: can they tell a right kernel from a wrong one?",
    "rules": "Check, test, show, compare and draw the expert rules.",
    "doctor": "Say what this machine has and what is missing.",
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one, module `<package>.<name>`, only when it is used."""

    package = __name__
    summaries: Mapping[str, str] = COMMANDS
    """Command -> its line in the help, in the order of the help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of the help."""
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and take its `command`."""
        if cmd_name not in self.summaries:
            return None
        command = importlib.import_module(f"{self.package}.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kernelskill")
def group() -> None:
    """KernelSkill makes GPU kernels faster, one rule-chosen method a round, and can say why.

    Try:  kernelskill optimize examples/row_softmax
    """


def _interrupted(number: int, frame: object) -> None:
    """SIGTERM ends a command as Ctrl-C does: what runs is stopped, what is done is kept. A second one ends it at once."""
    signal.signal(number, signal.SIG_DFL)
    raise KeyboardInterrupt


def main() -> None:
    """Entry point: a user's mistake is one clear message, never a traceback."""
    from kernelskill.errors import KernelSkillError

    signal.signal(signal.SIGTERM, _interrupted)
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
