"""KernelBench's own adversarial kernels and static-checker cases, read from a checkout and judged by our evaluator.

Its kernels are C++ extensions, which our form of a solution does not have: each is judged as it is (refused for its form)
and as a translation to our form (tests/guards/kernelbench). Its checker's cases are fragments of Python; each is put into a
solution, unchanged. Nothing of the checkout is copied into this repository.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent

from evaluator.types import DeviceSpec, Evaluation, Frozen, Mode, Request, Status
from kernelskill.tasks import load_task

TRANSLATIONS = Path(__file__).resolve().parents[1] / "tests" / "guards" / "kernelbench"
TESTS = Path("src", "kernelbench", "unit_tests")
CHECKER_TESTS = ("test_static_checker.py", "test_validate_kernel_static.py")
MATMUL, ONE_INPUT = "1_Square_matrix_multiplication_.py", "19_ReLU.py"
REASONS = {
    "result_reuse": (Status.INCORRECT_NUMERICAL,), "zero_out": (Status.INCORRECT_NUMERICAL,),
    "non_default_stream": (Status.REJECTED,),
}
"""Verdicts on the translations of the adversarial kernels."""
CATCHING = (Status.REJECTED, Status.INCORRECT_DTYPE)
"""Verdicts on a checker case: any other would be luck."""


class Adversary(Frozen):
    """One solution that must not pass."""

    name: str
    source: str
    task: str
    accepted: tuple[Status, ...]
    allow: tuple[str, ...] = ()

    def request(self, checkout: Path, folder: Path, device: DeviceSpec, mode: Mode) -> Request:
        """Its evaluation; the source is written into `folder`."""
        path = folder / f"{self.name}.py"
        path.write_text(self.source, encoding="utf-8")
        task = load_task(checkout / "KernelBench" / "level1" / self.task).allowing(self.allow)
        return Request(task=task.spec, solution=str(path), mode=mode, device=device, stages=("verify",), timeout_s=120)

    def disagreement(self, evaluation: Evaluation) -> str:
        """What is wrong with the verdict; "" for nothing."""
        if evaluation.status in self.accepted:
            return ""
        return f"{evaluation.status.value} instead of {' or '.join(s.value for s in self.accepted)}: {evaluation.message}"


def checkout_folder() -> Path | None:
    """The checkout that the environment variable KERNELBENCH names; None where it names none."""
    named = os.environ.get("KERNELBENCH", "")
    return Path(named).resolve() if named and (Path(named) / TESTS).is_dir() else None


def adversaries(checkout: Path) -> Iterator[Adversary]:
    """Every case of the checkout."""
    for path in sorted((checkout / TESTS / "test_kernels").glob("*.py")):
        name = path.stem.removesuffix("_kernel")
        yield Adversary(name=f"{name}_as_it_is", source=path.read_text(encoding="utf-8"), task=MATMUL,
                        accepted=(Status.REJECTED,))
        yield Adversary(name=name, source=(TRANSLATIONS / f"{name}.py").read_text(encoding="utf-8"), task=MATMUL,
                        accepted=REASONS[name])
    for file in CHECKER_TESTS:
        for name, code in checker_cases(checkout / TESTS / file):
            source, task = as_solution(code)
            yield Adversary(name=name, source=source, task=task, accepted=CATCHING)


def checker_cases(path: Path) -> Iterator[tuple[str, str]]:
    """(test, code) of every test in the file that wants its `code` to be found invalid."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and _wants_refusal(node):
            for statement in node.body:
                if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
                    yield node.name, dedent(str(statement.value.value))


def _wants_refusal(test: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Assert) and ast.unparse(node.test) == "not valid" for node in test.body)


def as_solution(code: str) -> tuple[str, str]:
    """A fragment as a whole solution, and the problem that it fits: a method, a whole module, or statements of forward."""
    defined = {node.name for node in ast.parse(code).body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    if "ModelNew" in defined:
        return f"import torch\n{code}", MATMUL
    if "forward" in defined:
        return f"import torch\n\n\nclass ModelNew(torch.nn.Module):\n{indent(code, '    ')}", ONE_INPUT
    body = indent(f"x, w = A, B\n{code}\nreturn result", " " * 8)
    return f"import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, A, B):\n{body}\n", MATMUL
