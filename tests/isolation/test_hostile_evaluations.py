"""A hostile solution costs one evaluation: the right verdict, nothing left of it, and the next evaluation is right."""

from __future__ import annotations

import tempfile

import pytest

from benchmarks.h200.isolation import disagreement, examine, judged, lasting
from benchmarks.hostile import HONEST, HOSTILE
from evaluator.types import Status
from kernelskill.facts.device import detect_device, load_device

SLOW = {"endless_loop_on_the_host"}
"""As slow as its time limit; stdout_flood_without_end takes the same way."""
HERE = [hostile for hostile in HOSTILE if hostile.runs("sim") and hostile.name not in SLOW]


@pytest.mark.parametrize("hostile", HERE, ids=lambda hostile: hostile.name)
def test_verdict_and_nothing_left_in_the_simulator(hostile, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    evaluation, _ = judged(hostile.source(), hostile.timeout_s, tmp_path, load_device("h200"), "sim")
    assert disagreement(hostile, evaluation) == ""
    assert not lasting(tmp_path)


def test_the_honest_solution_that_follows_passes(tmp_path):
    assert judged(HONEST, 60.0, tmp_path, load_device("h200"), "sim")[0].status is Status.PASSED


@pytest.mark.gpu
@pytest.mark.skipif(detect_device() is None, reason="no NVIDIA GPU on this machine")
@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.name)
def test_on_a_gpu(hostile, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert examine(hostile, tmp_path, detect_device(), "cuda")["wrong"] == ""
