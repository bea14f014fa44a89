"""Recorded measurements hang together: the pages say what the records say, the records are of the solutions beside them."""

import json
from pathlib import Path

import pytest

from benchmarks import gpu_examples, measured
from benchmarks.examples import EXAMPLES, MARKERS, RESULTS, table
from kernelskill.memory.store import solution_digest

ROOT = Path(__file__).resolve().parents[2]
GPU = json.loads(gpu_examples.RECORD.read_text())
SIM = json.loads((RESULTS / "examples_sim.json").read_text())


def test_every_example_is_recorded():
    assert tuple(GPU["examples"]) == tuple(SIM["examples"]) == EXAMPLES
    assert GPU["provenance"] == "cuda_event" and SIM["provenance"] == "modelled"
    assert all(row["time_provenance"] == "modelled" for row in SIM["examples"].values())


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("label", ["start", "best"])
def test_a_measurement_is_of_the_solution_beside_it_and_has_a_spread(name, label):
    row = GPU["examples"][name]["measured"][label]
    assert row["solution"] == solution_digest(gpu_examples.solution(name, label).read_text())
    assert row["status"] == ["PASSED"]
    assert 0 < row["low_us"] <= row["time_us"] <= row["high_us"]


def test_the_page_of_the_gpu_is_the_record():
    assert gpu_examples.PAGE.read_text() == gpu_examples.page(GPU)


def test_the_table_of_the_readme_is_the_record():
    readme = (ROOT / "README.md").read_text()
    assert MARKERS.search(readme)[0].splitlines(keepends=True)[1:-1] == table(SIM["examples"]).splitlines(keepends=True)


def test_the_measured_section_of_the_readme_is_the_records():
    readme = (ROOT / "README.md").read_text()
    assert measured.MARKERS.search(readme)[0].splitlines()[1:-1] == measured.section(measured.records()).splitlines()
