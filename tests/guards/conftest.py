"""Guard cases judged in forked processes: what every evaluation imports is loaded once, and each starts fresh."""

from __future__ import annotations

import os
import sys

import pytest

from benchmarks.guard_cases import Case, load_cases
from evaluator.types import DeviceSpec, Evaluation, Request


@pytest.fixture(scope="session")
def cases() -> list[Case]:
    return load_cases()


@pytest.fixture(scope="session")
def judged(h200: DeviceSpec):
    """Evaluates one request in a fork, which the judge then forks for the solution as it does in a process of its own."""
    pytest.importorskip("torch", reason="the KernelBench cases need torch")
    from evaluator.worker import evaluate_here

    def run(request: Request) -> Evaluation:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # pytest's own are files that the solution's process closes
            try:
                with os.fdopen(writer, "w") as out:
                    out.write(evaluate_here(request).to_json())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as answer:
            text = answer.read()
        os.waitpid(child, 0)
        return Evaluation.from_json(text)

    return run


@pytest.fixture(scope="session")
def h200() -> DeviceSpec:
    from kernelskill.facts.device import load_device

    return load_device("h200")


