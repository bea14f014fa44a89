"""A bench end to end in the simulator: an unusable task is a row, a bench that was stopped goes on, reports are written."""

import json
import shutil
from pathlib import Path

import pytest

from kernelskill.cli import main
from kernelskill.errors import RunError
from kernelskill.memory.run import Run
from kernelskill.suites.bench import ROWS, Bench, run_name

ROOT = Path(__file__).parents[3]
UNSUPPORTED = """
import numpy as np
NAME = "sorted"
SIZES = {"n": 1000}
CHECK_SIZES = [{"n": 7}]
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32)}
def reference(x):
    return np.sort(x)
def run(x):
    return x
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    shutil.copytree(ROOT / "examples" / "row_sum", folder / "row_sum")
    (folder / "sorted.py").write_text(UNSUPPORTED)
    return folder


def call(*words, monkeypatch):
    monkeypatch.setattr("sys.argv", ["kernelskill", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def test_a_bench_is_scored_and_goes_on(suite, tmp_path, monkeypatch, capsys):
    out = tmp_path / "bench"
    options = ("--device", "sim", "--rounds", 1, "--no-lint", "--out", out, "--json")
    assert call("bench", suite, *options, monkeypatch=monkeypatch) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["modelled"] and printed["groups"]["all"]["tasks"] == 2 and printed["groups"]["all"]["solved"] == 1
    rows = Bench.open(out).rows()
    assert rows["row_sum"].solved and rows["row_sum"].speedups["start"] > 1.5 and rows["row_sum"].rounds == 1
    assert rows["row_sum"].stopped == Run.open(out / rows["row_sum"].run).stop_reason != ""
    assert rows["sorted.py"].outcome != "solved" and rows["sorted.py"].reason
    assert (out / rows["row_sum"].run / "run.json").exists()
    assert json.loads((out / "results.json").read_text())["options"]["shapes"] == "general"
    page = (out / "results.md").read_text()
    assert "model, not measured" in page and "| row_sum | solved |" in page
    assert json.loads((out / "results.json").read_text())["finished"] == 2

    # Killed while a row was written: the row is lost, its run is not.
    path = out / ROWS
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if '"sorted' in line) + '{"key": "row_')
    before = (out / "runs" / "row_sum" / "journal.jsonl").read_text()
    assert [task.key for task in Bench.open(out).pending() if task.key == "row_sum"] == ["row_sum"]
    call("bench", "--resume", out, "--no-lint", "--json", monkeypatch=monkeypatch)
    assert Bench.open(out).rows()["row_sum"].speedups == rows["row_sum"].speedups
    assert (out / "runs" / "row_sum" / "journal.jsonl").read_text() == before


def test_what_cannot_be_benched_is_told(tmp_path, monkeypatch, capsys):
    assert call("bench", monkeypatch=monkeypatch) == 2
    assert "give a SUITE" in capsys.readouterr().err
    assert call("bench", "kernelbench", monkeypatch=monkeypatch) == 2
    assert "--kernelbench DIR" in capsys.readouterr().err
    (tmp_path / "there").write_text("")
    with pytest.raises(RunError, match="not empty"):
        Bench.create(tmp_path, "x", [], None, {})
    with pytest.raises(RunError, match="this is no bench"):
        Bench.open(tmp_path)


def test_keys_become_folder_names():
    assert [run_name(key) for key in ("1/19", "deep/task.py", "row_sum")] == ["1-19", "deep-task", "row_sum"]
