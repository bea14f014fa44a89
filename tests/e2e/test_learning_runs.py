"""Runs that learn from one another, through the command line."""

import json

import pytest

TASK = ("optimize", "examples/row_sum", "--device", "sim", "--rounds", "2", "--json")


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    from command import Command

    folder = tmp_path_factory.mktemp("learning")
    Command(*TASK, "--out", folder / "run", "--experience", folder / "e.sqlite")
    return folder


def test_outcomes_are_kept_and_the_next_run_uses_and_records_them(kernelskill, first, tmp_path):
    rows = kernelskill("experience", "show", "--store", first / "e.sqlite", "--json").json["rows"]
    assert {row["method"] for row in rows} >= {"block_per_row_reduction"}
    assert all(row["trials"] == 1 and row["times"] == "modelled" and row["family"] == "row_reduction" for row in rows)

    kernelskill(*TASK, "--out", tmp_path / "run", "--experience", first / "e.sqlite")
    taken = json.loads((tmp_path / "run" / "run.json").read_text())["experience"]
    assert [(r["method"], r["bottleneck"]) for r in taken["rows"]] == [(r["method"], r["bottleneck"]) for r in rows]
    why = kernelskill("why", tmp_path / "run", "--round", "1", "--depth", "all").out
    assert "1 of 1 earlier trials under" in why and "experience_trials.block_per_row_reduction." in why
    assert kernelskill("replay", tmp_path / "run", "--json").json["identical"] is True
    again = kernelskill("experience", "show", "--store", first / "e.sqlite", "--json").json["rows"]
    assert {row["trials"] for row in again if row["method"] == "block_per_row_reduction"} == {2}


def test_a_run_folder_is_imported_once_and_forgotten(kernelskill, first, tmp_path):
    store = tmp_path / "e.sqlite"
    assert "2 outcomes, 2 of them new" in kernelskill("experience", "import", first / "run", "--store", store).out
    assert "2 outcomes, 0 of them new" in kernelskill("experience", "import", first / "run", "--store", store).out
    kernelskill("experience", "export", tmp_path / "out.json", "--store", store)
    assert "2 of them new" in kernelskill("experience", "import", tmp_path / "out.json", "--store", tmp_path / "b.sqlite").out
    assert "say what to forget" in kernelskill("experience", "forget", "--store", store, expect=2).err
    assert kernelskill("experience", "forget", "--all", "--store", store).out == "2 outcomes forgotten\n"
    assert "no outcomes in" in kernelskill("experience", "show", "--store", store).out


def test_a_broken_store_is_told_and_the_run_goes_on(kernelskill, tmp_path):
    (tmp_path / "e.sqlite").write_bytes(b"this is no database" * 100)
    done = kernelskill("optimize", "examples/row_sum", "--device", "sim", "--rounds", "1", "--json", "--out", tmp_path / "run",
                       "--experience", tmp_path / "e.sqlite")
    assert done.json["status"] == "PASSED"
    assert "not a database" in done.err and "goes on without experience" in done.err and "Traceback" not in done.err
    assert "not a database" in kernelskill("experience", "show", "--store", tmp_path / "e.sqlite", expect=2).err
