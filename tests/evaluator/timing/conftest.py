"""Fixtures of the timing tests."""

from __future__ import annotations

import pytest
from cpu_session import PROBLEM, Stage


@pytest.fixture
def stage(bench, monkeypatch):
    """`stage(problem)`; short budgets, so that a test takes no longer than its minimum of samples."""
    monkeypatch.setattr("evaluator.judge_timing.BUDGET_SECONDS", 0.01)
    made: list[Stage] = []

    def make(problem: str = PROBLEM) -> Stage:
        made.append(Stage(bench, problem))
        return made[-1]

    yield make
    for each in made:
        for runner in each.runners:
            runner.close()
