"""The record of runs with real writers: what is kept, what is left out, and that it replays."""

import json
import shutil
import tarfile

import pytest

from benchmarks import writers


@pytest.fixture
def batch(recorded_run, tmp_path):
    shutil.copytree(recorded_run, tmp_path / "batch" / "runs" / "a_task")
    return tmp_path / "batch"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(writers, "FOLDER", tmp_path / "records")
    monkeypatch.setattr(writers, "_key", lambda task: "1/16")
    return tmp_path / "records"


def test_a_batch_becomes_rows_and_an_archive_that_replays(kernelskill, batch, folder, tmp_path):
    writers.add("first", [batch])
    row, = json.loads((folder / "first.json").read_text())["rows"]
    assert (row["key"], row["outcome"], row["decisions"], row["replayed"]) == ("1/16", "solved", 3, True)
    assert row["attempts"]["written"] == row["attempts"]["failed"] == 3 and row["attempts"]["improved"] == 0
    with tarfile.open(folder / "first.tar.xz") as archive:
        names = archive.getnames()
        archive.extractall(tmp_path / "out", filter="data")
    assert "runs/a_task/journal.jsonl" in names and not [name for name in names if "/task" in name or "/requests" in name]
    again = kernelskill("replay", tmp_path / "out/runs/a_task", "--builtin", tmp_path / "out/rules", "--json").json
    assert again["identical"] is True


def test_the_table_says_what_the_record_says(batch, folder):
    writers.add("first", [batch])
    lines = writers.table(json.loads((folder / "first.json").read_text()))
    assert lines[0].startswith("1 of 1 solved on ") and "modelled times" in lines[0]
    assert "3 decisions, all the same when taken again" in lines[0]
    assert lines[4].startswith("| 1/16 a_task |") and "built in" in lines[4]


def test_decisions_that_come_out_otherwise_are_said(batch, folder):
    journal = batch / "runs" / "a_task" / "journal.jsonl"
    journal.write_text(journal.read_text().replace('"expected_gain": 1.05', '"expected_gain": 1.06', 1))
    writers.add("first", [batch])
    record = json.loads((folder / "first.json").read_text())
    assert record["rows"][0]["replayed"] is False and "launch_tuning" in record["rows"][0]["difference"]
    assert "not all the same" in writers.table(record)[0]
