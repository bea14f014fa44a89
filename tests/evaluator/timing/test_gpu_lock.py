"""One evaluation that times has a GPU for itself, across processes; verifications share it."""

from __future__ import annotations

import fcntl
import tempfile

import pytest

from evaluator.pool import exclusive
from evaluator.types import Request


@pytest.fixture
def request_of(bench, tmp_path, monkeypatch):
    """A request for a GPU; its lock file lies in a folder of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("evaluator.pool.gpu_uuid", lambda: "GPU-5f1c")
    task = bench.native("def make_inputs(rng, n):\n    return {}\ndef reference():\n    return 1\n", [{"n": 1}])

    def make(*stages: str, mode: str = "cuda") -> Request:
        return bench.request(task, "", stages=stages).model_copy(update={"mode": mode})

    return make


def taken(folder, how: int) -> bool:
    """Whether another process would have to wait for the lock."""
    with (folder / "kernelskill-gpu-GPU-5f1c.lock").open("a") as file:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_timing_excludes_every_other_evaluation(request_of, tmp_path):
    with exclusive(request_of("verify", "profile")):
        assert taken(tmp_path, fcntl.LOCK_SH) and taken(tmp_path, fcntl.LOCK_EX)
    assert not taken(tmp_path, fcntl.LOCK_EX)


def test_verifications_share_the_gpu_and_keep_timing_out(request_of, tmp_path):
    with exclusive(request_of("verify")), exclusive(request_of("verify")):
        assert not taken(tmp_path, fcntl.LOCK_SH) and taken(tmp_path, fcntl.LOCK_EX)


def test_an_evaluation_that_fails_leaves_the_gpu(request_of, tmp_path):
    with pytest.raises(ValueError), exclusive(request_of("verify", "profile")):
        raise ValueError
    assert not taken(tmp_path, fcntl.LOCK_EX)


def test_the_simulator_needs_no_gpu(request_of, tmp_path):
    with exclusive(request_of("verify", "profile", mode="sim")):
        assert not list(tmp_path.glob("*.lock"))
