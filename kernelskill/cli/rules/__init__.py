"""`kernelskill rules`: the expert's workbench."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import click

from kernelskill.cli import LazyGroup

FOLDERS = click.option("--rules", "folders", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
                       help="Folder with more rules, beside the built-in ones; may be repeated, a later rule wins by id.")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="The result as JSON.")


class RulesGroup(LazyGroup):
    """The commands on rules."""

    package = __name__
    summaries = MappingProxyType({
        "check": "Report every problem of the rule files.",
        "test": "Run the test files beside the rules.",
        "list": "List the rules.",
        "show": "Show one rule: its text, who can fire it, what it can cause.",
        "graph": "Draw facts, rules and methods.",
        "new": "Write a new rule with its test file, to be filled in.",
        "diff": "Compare two folders of rules over recorded decisions.",
    })


@click.group("rules", cls=RulesGroup)
def command() -> None:
    """Check, test, show, compare and draw the expert rules. How to write one: docs/authoring-rules.md."""
