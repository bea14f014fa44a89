"""Checks in the simulator, small enough for a test."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_bench import H200

from benchmarks.check_quality.tasks import task
from evaluator.checking.checker import check_here
from evaluator.checking.types import CheckReport, CheckRequest
from evaluator.types import Request


class Checks:
    """Writes a task of the quality proof and a solution into a folder, and checks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def request(self, name: str, source: str, **more) -> CheckRequest:
        path = self.folder / "solution.py"
        path.write_text(source)
        spec, seed = task(name, self.folder), more.pop("seed", 0)
        request = Request(task=spec, solution=str(path), device=H200, timeout_s=600, seed=seed)
        return CheckRequest(request=request, **{"examples": 3, "work_limit": 1200, "cost": 1.5, **more})

    def check(self, name: str, source: str, **more) -> CheckReport:
        return check_here(self.request(name, source, **more))


@pytest.fixture
def checks(tmp_path: Path) -> Checks:
    return Checks(tmp_path)
