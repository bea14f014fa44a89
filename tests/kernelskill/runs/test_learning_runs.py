"""Runs that learn from one another, through the commands."""

import json

import pytest
from click.testing import CliRunner
from conftest import TASK

from kernelskill.cli import group
from kernelskill.errors import KernelSkillError


def kernelskill(*arguments, expect=0, env=None):
    """stdout of a command that ends well, else everything it told."""
    done = CliRunner().invoke(group, list(map(str, arguments)), env=env)
    told = isinstance(done.exception, KernelSkillError)
    assert (done.exception.exit_code if told else done.exit_code) == expect, done.output
    return str(done.exception) if told else done.output if expect else done.stdout


def optimise(folder, *options, env=None):
    call = ("optimize", TASK, "--device", "sim", "--rounds", 2, "--json", "--out", folder, *options)
    return json.loads(kernelskill(*call, env=env))


def counts(store):
    return json.loads(kernelskill("experience", "show", "--store", store, "--json"))["rows"]


@pytest.fixture
def store(tmp_path):
    """What one run of two rounds brought."""
    optimise(tmp_path / "first", "--experience", tmp_path / "e.sqlite")
    return tmp_path / "e.sqlite"


def taken(folder):
    return json.loads((folder / "run.json").read_text())["experience"]


def test_outcomes_are_kept_and_the_next_run_uses_and_records_them(store, tmp_path):
    rows = counts(store)
    assert {row["method"] for row in rows} >= {"block_per_row_reduction"}
    assert all(row["trials"] == 1 and row["times"] == "modelled" and row["family"] == "row_reduction" for row in rows)

    optimise(tmp_path / "run", "--experience", store)
    assert [(row["method"], row["bottleneck"]) for row in taken(tmp_path / "run")["rows"]] == [
        (row["method"], row["bottleneck"]) for row in rows]
    why = kernelskill("why", tmp_path / "run", "--round", 1, "--depth", "all")
    assert "1 of 1 earlier trials under" in why and "experience_trials.block_per_row_reduction." in why
    assert {row["trials"] for row in counts(store) if row["method"] == "block_per_row_reduction"} == {2}

    kernelskill("experience", "forget", "--all", "--store", store)
    assert json.loads(kernelskill("replay", tmp_path / "run", "--json"))["identical"] is True


def test_nothing_is_used_or_kept_unless_it_is_asked_for(store, tmp_path):
    assert optimise(tmp_path / "plain") and taken(tmp_path / "plain") is None
    asked = {"KERNELSKILL_EXPERIENCE": str(store)}
    optimise(tmp_path / "asked", env=asked)
    assert taken(tmp_path / "asked")["rows"]
    before = counts(store)
    optimise(tmp_path / "not", "--no-experience", env=asked)
    assert taken(tmp_path / "not") is None and counts(store) == before


def test_a_run_folder_is_imported_once_and_forgotten(store, tmp_path):
    other = tmp_path / "other.sqlite"
    assert "2 outcomes, 2 of them new" in kernelskill("experience", "import", tmp_path / "first", "--store", other)
    assert "2 outcomes, 0 of them new" in kernelskill("experience", "import", tmp_path / "first", "--store", other)
    kernelskill("experience", "export", tmp_path / "out.json", "--store", other)
    assert "2 of them new" in kernelskill("experience", "import", tmp_path / "out.json", "--store", tmp_path / "third.sqlite")
    assert "say what to forget" in kernelskill("experience", "forget", "--store", other, expect=2)
    assert kernelskill("experience", "forget", "--all", "--store", other) == "2 outcomes forgotten\n"
    assert "no outcomes in" in kernelskill("experience", "show", "--store", other)


def test_a_broken_store_is_told_and_the_run_goes_on(tmp_path, caplog):
    (tmp_path / "e.sqlite").write_bytes(b"this is no database" * 100)
    report = optimise(tmp_path / "run", "--experience", tmp_path / "e.sqlite")
    assert report["status"] == "PASSED" and taken(tmp_path / "run") is None
    assert "not a database" in caplog.text and "the run goes on without experience" in caplog.text
    assert "not a database" in kernelskill("experience", "show", "--store", tmp_path / "e.sqlite", expect=2)
