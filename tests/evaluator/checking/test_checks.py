"""Whole checks: planted faults come back as the smallest example of the right property, right kernels are left alone."""

from __future__ import annotations

import math

import pytest
from check_bench import verdict

from benchmarks.check_quality.honest import HONEST
from benchmarks.check_quality.kernels import elementwise
from benchmarks.check_quality.planted import PLANTED
from evaluator.checking.text import report_lines
from evaluator.checking.types import Example

FEW = ("vector tail dropped beyond 1024", "first block clears for all")
"""A cheap part of the proof in benchmarks/check_quality; tests/quality/test_check_record.py holds the whole of it."""


@pytest.mark.parametrize("name", FEW)
def test_a_planted_fault_comes_back_small(checks, name):
    kernel = next(kernel for kernel in PLANTED if kernel.name == name)
    report = checks.check(kernel.task, kernel.source, cost=4.0)
    found = [v for v in report.violated() if v.property in kernel.properties]
    assert report.outcome == "failed" and found, list(report_lines(report))
    sizes = found[0].counterexample.example.sizes
    assert math.prod(sizes.values()) <= 3 * math.prod(kernel.minimal.values()), sizes
    assert found[0].counterexample.reproduction


@pytest.mark.parametrize("name", ["vectorised with tail and alignment"])
def test_a_right_kernel_is_left_alone(checks, name):
    kernel = next(kernel for kernel in HONEST if kernel.name == name)
    report = checks.check(kernel.task, kernel.source, layouts=("offset",))
    assert report.outcome == "passed", list(report_lines(report))
    assert {v.property for v in report.verdicts if v.outcome == "held"} >= {
        "agreement", "written", "memory", "bounds", "block_order", "calls", "layouts", "relation", "special_values"}
    assert report.calls > report.examples > 50


def test_the_same_seed_gives_the_same_counterexample_and_what_failed_before_is_tried_first(checks):
    source = elementwise("if (i < n && n != 997) y[i] = 2.f * x[i] + 1.f;")
    known = Example(sizes={"n": 997}, values="uniform", seed=9)
    found = [verdict(checks.check("scale", source, seed=3, examples=1, known=(known,)), "written") for _ in range(2)]
    assert found[0].model_dump_json() == found[1].model_dump_json() and found[0].outcome == "violated"
    assert found[0].counterexample.example == Example(sizes={"n": 997}), "shrunk from the known one"


def test_what_is_declared_is_reported_and_bounds_what_is_drawn(checks):
    source = 'SUPPORTS = {"sizes": {"n": {"multiple_of": 4}}, "values": "finite"}\n' + elementwise(
        "if (4 * i < n) for (int k = 4 * i; k < 4 * i + 4; ++k) y[k] = 2.f * x[k] + 1.f;")
    report = checks.check("scale", source)
    assert report.outcome == "passed", list(report_lines(report))
    assert verdict(report, "special_values").note == "the solution declares finite values only"
    assert any("n multiple_of 4" in line for line in report_lines(report))


def test_layouts_that_nobody_promised_are_reported_and_not_held_against_it(checks):
    source = 'SUPPORTS = {"sizes": {"n": {"multiple_of": 4}}}\n' + elementwise(
        "if (i < n / 4) { float4 v = reinterpret_cast<const float4*>(x)[i]; y[4 * i] = 2.f * v.x + 1.f;"
        " y[4 * i + 1] = 2.f * v.y + 1.f; y[4 * i + 2] = 2.f * v.z + 1.f; y[4 * i + 3] = 2.f * v.w + 1.f; }")
    told = checks.check("scale", source)
    offset = next(v for v in told.verdicts if "offset" in v.title)
    assert told.outcome == "passed" and offset.outcome == "not_promised" and "misaligned" in offset.note
    assert checks.check("scale", source, layouts=("offset",)).outcome == "failed"


@pytest.mark.parametrize(("source", "words"), [
    ("def run(x:\n", "solution.py:1: "), ("import nowhere\n", "No module named 'nowhere'"),
    (elementwise("nonsense;"), "COMPILE_ERROR"), ("SUPPORTS = 3\ndef run(x): return x\n", "SUPPORTS cannot be read"),
])
def test_what_cannot_be_checked_is_refused_with_the_reason(checks, source, words):
    report = checks.check("scale", source)
    assert report.outcome == "refused" and words in report.message and not report.verdicts
