"""The options of writers and agents: what does not go together is refused before anything is made."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernelskill.cli.bench import command as bench
from kernelskill.cli.optimize import command as optimize
from kernelskill.cli.run_options import options_of
from kernelskill.errors import KernelSkillError
from kernelskill.memory.run import ablation

EXAMPLES = Path(__file__).parents[3] / "examples"
USUAL = {"model": None, "max_tokens": None, "max_cost": None, "no_long_term": False, "no_short_term": False,
         "timeout": 1.0, "allow_library": (), "experience": "", "no_experience": False}


@pytest.mark.parametrize("options, message", [
    (["--model", "openai/x", "--writer", "template"], "--model names the model of the litellm writer, and --writer is templa"),
    (["--no-long-term"], "--no-long-term leaves the choice to the writer"),
    (["--policy", "best"], "'best' is not one of 'rules', 'random'"),
    (["--repairs", "-1"], "-1 is not in the range"),
    (["--max-cost", "0"], "0.0 is not in the range"),
])
@pytest.mark.parametrize("command", [optimize, bench])
def test_what_does_not_go_together_is_wrong_use(command, options, message, tmp_path):
    result = CliRunner().invoke(command, ["examples", *options, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2 and message in " ".join(result.output.split())
    assert not (tmp_path / "out").exists()


def test_without_a_model_nothing_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KERNELSKILL_MODEL", raising=False)
    shutil.copy(EXAMPLES / "silu_gate.py", tmp_path / "task.py")
    result = CliRunner().invoke(optimize, ["task.py", "--writer", "litellm", "--device", "sim", "--out", "out"])
    assert isinstance(result.exception, KernelSkillError) and "no language model is named" in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_a_model_implies_its_writer_and_the_rest_passes_through():
    found = options_of("", **USUAL | {"model": "openai/x", "max_tokens": 5}, repairs=1)
    assert (found.writer, found.repairs, found.model["name"], found.model["max_tokens"]) == ("litellm", 1, "openai/x", 5)
    assert options_of("", **USUAL).writer == "template"
    assert options_of("handoff", **USUAL | {"no_long_term": True}).long_term is False


def test_an_ablation_is_named_in_full():
    assert ablation(True, True, "rules", 1) == ""
    assert ablation(False, False, "random", 7) == "no long-term memory; no short-term memory; random policy, seed 7"
