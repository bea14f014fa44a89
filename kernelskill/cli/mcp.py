"""`kernelskill mcp`: the server for coding agents."""

from __future__ import annotations

import click


@click.command("mcp")
def command() -> None:
    """Serve runs to a coding agent over the Model Context Protocol, on stdin and stdout, until stdin closes.

    Needs the extra: pip install 'kernelskill[mcp]'. How to configure an agent: docs/coding-agents.md.
    """
    from kernelskill.errors import KernelSkillError

    try:
        from kernelskill.mcp.server import server
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "mcp":
            raise
        raise KernelSkillError("the Model Context Protocol's SDK is not installed",
                               hint="pip install 'kernelskill[mcp]'") from None
    server().run("stdio")
