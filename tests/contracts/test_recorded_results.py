"""Recorded measurements hang together: the pages say what the records say, the records are of the solutions beside them."""

import json
from pathlib import Path

import pytest

from benchmarks import measured
from benchmarks.examples import EXAMPLES, MARKERS, RESULTS, table
from benchmarks.h200.example_record import recorded, solution
from kernelskill.memory.store import solution_digest

ROOT = Path(__file__).resolve().parents[2]
GPU = recorded()
TIMED = [(name, label) for name, rows in GPU["simulated"].items() for label in rows]
SIM = json.loads((RESULTS / "examples_sim.json").read_text())


def test_every_example_is_recorded():
    assert set(GPU["simulated"]) == set(SIM["examples"]) == set(EXAMPLES) >= set(GPU["examples"])
    assert SIM["provenance"] == "modelled"
    assert all(row["time_provenance"] == "modelled" for row in SIM["examples"].values())


@pytest.mark.parametrize(("name", "label"), TIMED)
def test_a_measurement_is_of_the_solution_beside_it_and_has_a_spread(name, label):
    row = GPU["simulated"][name][label]
    assert row["solution"] == solution_digest(solution(name, label).read_text())
    assert row["status"] == ["PASSED"]
    assert 0 < row["low_us"] <= row["time_us"] <= row["high_us"]


def test_the_runs_in_the_page_of_the_gpu_are_the_record():
    assert measured.RUNS.search(measured.PAGE.read_text())[0].splitlines()[1:-1] == measured.runs(GPU).splitlines()


def test_the_table_of_the_readme_is_the_record():
    readme = (ROOT / "README.md").read_text()
    assert MARKERS.search(readme)[0].splitlines(keepends=True)[1:-1] == table(SIM["examples"]).splitlines(keepends=True)


def test_the_measured_section_of_the_readme_is_the_records():
    readme = (ROOT / "README.md").read_text()
    assert measured.MARKERS.search(readme)[0].splitlines()[1:-1] == measured.section(measured.records()).splitlines()
