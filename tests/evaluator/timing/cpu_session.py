"""A timing session without a GPU: the solution is a PyTorch model on the CPU in a process of its own, its clock is the host's.

Everything else is what runs on a GPU: the judge's session, the messages, the process, the reference in double precision.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evaluator.baselines import expected_at
from evaluator.channel import Channel, Closed
from evaluator.failures import failure_of
from evaluator.inputs import TASK, Case
from evaluator.judge_timing import Session
from evaluator.oracle_torch import KernelBenchOracle
from evaluator.runner import Runner
from evaluator.solutions import KernelBenchSolution, load_solution
from evaluator.timing import TimedCalls
from evaluator.types import Request

PROBLEM = """
class Model(nn.Module):
    def forward(self, x):
        return torch.nn.functional.layer_norm(x, x.shape[1:]) + 0.01 * x
rows = 96
columns = 64
def get_inputs():
    return [torch.randn(rows, columns)]
def get_init_inputs():
    return []
"""
HONEST = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.layer_norm(x, x.shape[1:]) + 0.01 * x
"""


class HostClock:
    """Wall time of a call."""

    def time(self, invoke: Any) -> tuple[Any, float]:
        began = time.perf_counter()
        result = invoke()
        return result, 1e6 * (time.perf_counter() - began)


def serve_on_cpu(request: Request, channel: Channel) -> None:
    """`launch.serve` for a solution that needs no GPU."""
    import torch

    torch.set_num_threads(1)
    KernelBenchSolution.device = "cpu"
    solution: Any = None
    timed: Any = None
    while True:
        try:
            message = channel.receive()
        except Closed:
            return
        try:
            if message["op"] == "load":
                solution = load_solution(request.solution, request.task)
                reply: dict[str, Any] = {}
            elif message["op"] == "construct":
                reply = {"notes": solution.construct(**message["data"])}
            else:
                timed = timed or TimedCalls(solution, HostClock())
                reply = timed.handle(message)
            channel.send({"data": None, **reply})
        except Exception as error:
            channel.send({"data": None, "failure": failure_of(error, request.solution).to_dict()})


class Stage:
    """Sessions and processes on one task."""

    def __init__(self, bench: Any, problem: str) -> None:
        self.bench = bench
        self.task = bench.kernelbench(problem, [{}])
        self.oracle = KernelBenchOracle(self.task)
        self.runners: list[Runner] = []

    def process(self, solution: str) -> Runner:
        path = Path(self.bench.folder) / f"solution{len(self.runners)}.py"
        path.write_text(solution)
        request = self.bench.request(self.task, solution).model_copy(update={"solution": str(path)})
        runner = Runner(request, "verify", time.monotonic() + 60, partial(serve_on_cpu, request))
        self.runners.append(runner)
        return runner

    def session(self, seed: int = 7) -> Session:
        sizes = self.task.sizes
        problem = self.oracle.problem(Case(sizes, TASK, seed))
        reference = partial(expected_at, self.oracle)
        return Session(problem, sizes, 50 << 20, np.random.default_rng(seed), reference, kernelbench=True)

    def ready(self, session: Session, solution: str) -> Runner:
        runner = self.process(solution)
        runner.load()
        runner.construct(session.problem)
        session.prepare(runner)
        return runner
