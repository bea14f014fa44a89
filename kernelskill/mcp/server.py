"""The server. The only module that knows the SDK; what a tool prints goes to stderr, stdout is the protocol's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from kernelskill import __version__
from kernelskill.errors import KernelSkillError
from kernelskill.mcp.tools import TOOLS

INSTRUCTIONS = """\
KernelSkill makes GPU kernels faster, one method a round. Rules choose the method; you write the code for that method alone.
start_run (or resume_run), then repeat: next_request, write the whole module the prompt asks for, submit_solution with the
request's id, read the verdict. Stop when `state` is finished. The best solution is the file `solution`.
"""


def server() -> MCPServer[Any]:
    """The server with all tools."""
    made: MCPServer[Any] = MCPServer("kernelskill", version=__version__, instructions=INSTRUCTIONS,
                                     log_level="WARNING")
    for tool in TOOLS:
        made.add_tool(_told(tool), name=tool.__name__, structured_output=False)
    return made


def _told(tool: Callable[..., Any]) -> Callable[..., Any]:
    """What the caller can mend reaches it in full; anything else is a crash, which the SDK logs."""
    @functools.wraps(tool)
    def call(**arguments: Any) -> Any:
        try:
            return tool(**arguments)
        except KernelSkillError as error:
            raise ToolError(str(error)) from error

    return call
