"""Heavy packages are imported where they are used: `kernelskill --help` must answer in under 0.3 s."""

import subprocess
import sys

import pytest

HEAVY = ("litellm", "cupy", "torch", "scipy", "networkx", "hypothesis", "durable", "rich", "pydantic", "numpy", "ruamel", "mcp")


def loaded(statement):
    """Which of the heavy packages a fresh interpreter holds after a statement."""
    code = f"{statement}\nimport sys; print(' '.join(m for m in {HEAVY!r} if m in sys.modules))"
    return (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")[-2].split()
    )


@pytest.mark.parametrize(
    "statement",
    [
        "import kernelskill",
        "import evaluator",
        "import click.testing as t; from kernelskill.cli import group as g; "
        "assert t.CliRunner().invoke(g, ['-h'], catch_exceptions=False).exit_code == 0",
    ],
)
def test_nothing_heavy_is_loaded(statement):
    assert loaded(statement) == []


def test_the_probe_would_notice():
    assert loaded("import networkx") == ["networkx"]
