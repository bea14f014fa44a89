"""A coding agent's whole run over stdio, with the SDK's own client; the answers are the template writer's."""

import asyncio
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernelskill import assembly
from kernelskill.mcp import tools
from kernelskill.memory.run import Run
from kernelskill.model import MethodApplication
from kernelskill.writers.requestbox import RequestBox
from kernelskill.writers.template import TemplateWriter

ROOT = Path(__file__).resolve().parents[3]
TOOLS = {tool.__name__ for tool in tools.TOOLS}


class Agent:
    """Calls tools; a tool's error is the text it told."""

    def __init__(self, client):
        self.client = client

    async def ask(self, tool, **arguments):
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content[0].text
        text = result.content[0].text
        return json.loads(text) if text.startswith("{") else text

    async def refused(self, tool, **arguments):
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error
        return result.content[0].text


def converse(talk):
    """Run a conversation with a server of its own."""
    mcp = pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

    async def go():
        server = mcp.StdioServerParameters(command=sys.executable, args=["-m", "kernelskill", "mcp"], cwd=ROOT)
        async with mcp.Client(server) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            await talk(Agent(client))

    asyncio.run(go())


def template_answer(folder):
    run = Run.open(folder)
    request = RequestBox(folder / "requests").open_entry().posted.request
    return TemplateWriter().write(assembly.run_task(run, TemplateWriter()), request), request


async def mistakes(agent, folder):
    """What the caller can mend is told, and the server goes on."""
    assert "no run.json" in await agent.refused("next_request", run=str(folder))
    assert "no such file or folder" in await agent.refused("start_run", task=str(folder / "gone"))
    assert "no method 'tilling'" in await agent.refused("list_methods", method="tilling")
    assert "vectorized_access" in (await agent.ask("list_methods"))["methods"]
    card = await agent.ask("list_methods", method="vectorized_access")
    assert card["id"] == "vectorized_access" and "cuda after" in card["text"]


def test_a_whole_run(tmp_path):
    folder = tmp_path / "run"

    async def talk(agent):
        await mistakes(agent, tmp_path)
        turn = await agent.ask("start_run", task=str(ROOT / "examples" / "row_sum"), out=str(folder), rounds=2, device="sim")
        assert turn["state"] == "waiting" and turn["verdicts"][0]["status"] == "PASSED"
        asked = await agent.ask("next_request", run=str(folder))
        answer, request = template_answer(folder)
        assert asked["request"]["id"] == "001" and request.source in asked["prompt"]
        assert asked["request"]["method"] == str(MethodApplication(method="block_per_row_reduction"))

        wrong = request.source.replace("sum +=", "sum -=")
        turn = await agent.ask("submit_solution", run=str(folder), request="001", source=wrong)
        verdict = turn["verdicts"][0]
        assert (verdict["outcome"], verdict["status"]) == ("failed", "INCORRECT_NUMERICAL")
        assert {"expected", "got", "index", "sizes", "case"} <= verdict["counterexample"].keys()
        late = await agent.refused("submit_solution", run=str(folder), request="001", source=answer)
        assert "request 001 is not open; the run waits for an answer to 002" in late
        assert "the file is empty" in await agent.refused("submit_solution", run=str(folder), request="002", source=" ")

        turn = await agent.ask("submit_solution", run=str(folder), request=turn["request"]["id"], source=answer)
        assert turn["verdicts"][0]["outcome"] in ("improved", "off_method")
        shown = await agent.ask("show_run", run=str(folder))
        assert shown["attempts"][0]["outcome"] == "failed"
        assert "block_per_row_reduction: expected" in await agent.ask("why", run=str(folder), round=1)
        assert "fast_math_intrinsics was not proposed" in await agent.ask(
            "why_not", run=str(folder), method="fast_math_intrinsics", round=1)

    converse(talk)
    assert Run.open(folder).graph.attempts[0].outcome == "failed"


def test_without_the_sdk_the_command_says_how_to_install_it():
    code = "import sys; sys.modules['mcp'] = None; sys.argv = ['kernelskill', 'mcp']\nfrom kernelskill.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "pip install 'kernelskill[mcp]'" in done.stderr and "Traceback" not in done.stderr


def test_the_documentation_lists_the_tools_with_their_parameters():
    text = (ROOT / "docs" / "coding-agents.md").read_text()
    listed = dict(re.findall(r"`(\w+)\(([^)]*)\)`", "\n".join(line for line in text.splitlines() if line.startswith("| `"))))
    assert listed == {tool.__name__: ", ".join(inspect.signature(tool).parameters) for tool in tools.TOOLS}
    assert json.loads(re.search(r"```json\n(.*?)```", text, re.S)[1])["mcpServers"]["kernelskill"]["args"] == ["mcp"]
