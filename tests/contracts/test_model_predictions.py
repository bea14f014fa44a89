"""Predictions of the time model that were written before their kernels were measured."""

from __future__ import annotations

import json

import pytest

from benchmarks.h200 import model
from benchmarks.model import generated
from benchmarks.model.new_table import NEW
from kernelskill.memory.store import solution_digest


def test_every_new_kernel_and_generated_solution_has_a_prediction():
    record = json.loads(model.PREDICTIONS.read_text())
    assert record["provenance"] == "modelled" and record["commit"]
    kernels = [model.key_of(variant.problem.name, variant.kernel) for variant in NEW]
    made = [model.key_of(example, path.stem) for example, path in model.solutions()]
    assert len(set(kernels + made)) == len(kernels) + len(made)
    assert set(record["predictions"]) == set(kernels + made)
    assert all(row["us"] > 1 for row in record["predictions"].values())


def test_measured_rows_are_compared_within_their_problem():
    rows = {"a/fast": {"cold_us": 10.0}, "a/slow": {"cold_us": 30.0}, "b/one": {"cold_us": 8.0},
            "b/wrong": {"cold_us": 5.0, "wrong": True}, "c/new": {"cold_us": 1.0}, "c/failed": {"failed": "RuntimeError: no"}}
    predicted = {key: {"us": us} for key, us in (("a/fast", 20.0), ("a/slow", 15.0), ("b/one", 8.0), ("b/wrong", 50.0),
                                                 ("c/failed", 1.0))}
    both = model.compared(rows, predicted)
    assert both["a/fast"]["ratio"] == 2.0 and both["c/new"]["ratio"] is None and both["c/failed"]["ratio"] is None
    found = model.agreement(both)
    assert found["rows"] == 3 and found["pairs"] == 1 and found["right"] == 0
    assert found["wrong"] == [["a/fast", "a/slow"]]
    assert found["error_factor"] == pytest.approx(4 ** (1 / 3), abs=1e-3)
    assert model.agreement({}) == {}


def test_the_held_out_record_holds_the_solutions_that_were_measured():
    rows = generated.load()
    sources = json.loads(generated.FILE.read_text())["sources"]
    for key, row in rows.items():
        assert solution_digest(generated.source_of(row.solution).read_text()) == row.solution, key
        assert row.low_us <= row.us <= row.high_us and sources[row.source]["device"] == "NVIDIA H200"
