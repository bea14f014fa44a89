"""Whole optimisations through the command line, in the simulator."""

import ast
import shutil

import pytest
from command import ROOT, Command

EXAMPLES = ("bias_gelu", "row_softmax", "row_sum", "transpose", "matmul", "layer_norm")
KEYS = {
    "run",
    "status",
    "rounds",
    "methods",
    "start_time_us",
    "best_time_us",
    "speedup",
    "time_provenance",
    "stop_reason",
    "solution",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_ends_passed_and_at_least_twice_as_fast(kernelskill, tmp_path, name):
    # All the rounds are played by `make examples`; what matters comes in the first ones.
    report = kernelskill("optimize", f"examples/{name}", "--device", "sim", "--rounds", 3,
                         "--out", tmp_path / "run", "--json").json
    assert report.keys() >= KEYS
    assert report["status"] == "PASSED"
    assert report["time_provenance"] == "modelled"
    assert report["rounds"] <= 3
    assert report["speedup"] >= 2
    assert report["speedup"] == pytest.approx(report["start_time_us"] / report["best_time_us"])
    if name == "matmul":
        assert len(set(report["methods"])) >= 3
    best = (tmp_path / "run" / "best.py").read_text()
    assert imported(best) <= {"functools", "cupy", "numpy"}

    assert kernelskill("replay", tmp_path / "run", "--json").json["identical"] is True
    again = kernelskill(
        "evaluate", tmp_path / "run" / "best.py", "--task", f"examples/{name}", "--device", "sim", "--json"
    ).json
    assert again["status"] == "PASSED"
    assert again["time"]["time_us"] == pytest.approx(report["best_time_us"])


def imported(source):
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    Command("optimize", "examples/row_softmax", "--device", "sim", "--rounds", "3", "--out", folder)
    return folder


def test_progress_names_method_verdict_and_modelled_time(kernelskill, tmp_path):
    done = kernelskill("optimize", "examples/row_sum", "--device", "sim", "--rounds", "1", "--out", tmp_path / "run")
    assert "modelled" in done.err and "dominates" in done.err
    assert "round 1" in done.err and "best so far" in done.err
    assert "Times are modelled, not measured" in done.out


def test_why_explains_a_choice_and_a_refusal(kernelskill, finished):
    every = kernelskill("why", finished).out
    assert every.count("round ") >= 3
    first = kernelskill("why", finished, "--round", "1").out
    assert "source:" in first and "candidates:" in first
    assert "double_buffering" in kernelskill("why", finished, "--round", "1", "--not", "double_buffering").out
    assert "no method 'nonsense'" in kernelskill("why", finished, "--not", "nonsense", expect=2).err
    assert "no decision of round 99" in kernelskill("why", finished, "--round", "99", expect=2).err


def test_show_prints_graph_and_table(kernelskill, finished):
    shown = kernelskill("show", finished).out
    assert "start" in shown and "← best" in shown and "outcome" in shown
    assert len(kernelskill("show", finished, "--json").json["attempts"]) == 3


def test_a_finished_run_is_not_run_again(kernelskill, finished):
    before = (finished / "journal.jsonl").read_bytes()
    kernelskill("optimize", "--resume", finished)
    assert (finished / "journal.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["optimize"], "give either a TASK, or --resume RUN"),
        (["optimize", "examples/row_sum", "--arch", "sm_10"], "no device card for architecture 'sm_10'"),
        (["optimize", "examples/row_sum", "--writer", "nobody"], "no writer is called 'nobody'"),
        (["optimize", "examples/row_sum", "--device", "cuda"], "no NVIDIA GPU"),
        (["optimize", "examples"], "task.toml"),
        (["why", "examples"], "no run"),
        (["show", "examples"], "no run"),
        (["optimize", "--resume", "examples"], "no run"),
        (["nonsense"], "No such command"),
    ],
)
def test_wrong_use_is_one_clear_message_and_exit_code_2(kernelskill, arguments, message):
    error = kernelskill(*arguments, expect=2).err
    assert message in error
    assert "Traceback" not in error


def test_a_start_that_is_wrong_ends_with_exit_code_1_and_says_where(kernelskill, tmp_path):
    shutil.copytree(ROOT / "examples" / "row_sum", tmp_path / "task")
    start = tmp_path / "task" / "start.cu"
    start.write_text(start.read_text().replace("+=", "-="))
    done = kernelskill("optimize", tmp_path / "task", "--device", "sim", "--out", tmp_path / "run", "--json", expect=1)
    assert done.json["status"] == "INCORRECT_NUMERICAL"
    assert done.json["stop_reason"] == "start_failed"
    assert done.json["solution"] is None
