"""The guard cases (tests/guards): what each solution tries, and what must come of it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from ruamel.yaml import YAML

from evaluator.types import DeviceSpec, Evaluation, Frozen, Mode, Request, Status, TaskSpec

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "guards"
NOWHERE = "-"
NOT_PROFILED_US = 1e-3
"""No solution is faster: timed, but its launches are not recorded."""


class Case(Frozen):
    """One row of cases.yaml."""

    kinds: tuple[int, ...]
    file: str
    task: str
    expect: Status | Literal["-"]
    """Verdict in the simulator; `-` where the simulator cannot show it."""
    cuda: tuple[Status, ...] = ()
    """Verdicts on a GPU, where they are others."""
    words: str = ""
    detector: str = ""
    no_gain: str = ""
    """The honest solution that it must not be timed faster than, where it passes."""
    allow: tuple[str, ...] = ()
    stages: tuple[Literal["verify", "profile"], ...] = ("verify",)
    timed: bool = False
    """It aims at the timed calls: on a GPU it is judged with the profile stage."""
    launches: bool = False
    """It shows in the recorded launches of a timed call only, which take long to record."""
    spec: dict[str, Any] = Field(default_factory=dict)
    """The task's entry: kind and sizes."""

    @property
    def honest(self) -> bool:
        """Whether this is a look-alike, which must pass."""
        return self.expect is Status.PASSED

    @property
    def path(self) -> Path:
        """The solution."""
        return FOLDER / ("honest" if self.honest else "cheats") / f"{self.file}.py"

    @property
    def purpose(self) -> str:
        """What the solution does: its docstring."""
        return ast.get_docstring(ast.parse(self.path.read_text(encoding="utf-8"))) or ""

    def accepted(self, mode: Mode) -> tuple[Status, ...]:
        """The verdicts that are right; none where the case says nothing in this mode."""
        if mode == "cuda" and self.cuda:
            return self.cuda
        return (self.expect,) if isinstance(self.expect, Status) else ()

    def request(self, device: DeviceSpec, mode: Mode, timeout_s: float = 60.0) -> Request:
        """The evaluation to ask for: on a GPU with its timed part, which some cheats aim at."""
        task = TaskSpec(name=self.task, path=str(FOLDER / "tasks" / f"{self.task}.py"), allow_library=self.allow, **self.spec)
        stages = ("verify", "profile") if mode == "cuda" and self.timed else self.stages
        return Request(task=task, solution=str(self.path), mode=mode, device=device, stages=stages, timeout_s=timeout_s,
                       worth_us=None if self.launches else NOT_PROFILED_US)

    def disagreement(self, evaluation: Evaluation, mode: Mode) -> str:
        """Why the evaluation is not what the case demands; "" where it is."""
        accepted = self.accepted(mode)
        if evaluation.status not in accepted:
            return f"{evaluation.status.value} instead of {' or '.join(s.value for s in accepted)}: {evaluation.message}"
        if self.words and not (mode == "cuda" and self.cuda) and self.words not in evaluation.message:
            return f"the message lacks {self.words!r}: {evaluation.message}"
        return ""


def load_cases() -> list[Case]:
    """Every case, in the file's order."""
    data = YAML(typ="safe").load((FOLDER / "cases.yaml").read_text(encoding="utf-8"))
    return [Case.model_validate({**row, "spec": data["tasks"][row["task"]]}) for row in data["cases"]]


def detector_exists(detector: str) -> bool:
    """Whether FILE:NAME names a definition in the repository."""
    file, _, name = detector.partition(":")
    path = ROOT / file
    return path.is_file() and name in _defined(ast.parse(path.read_text(encoding="utf-8")))


def _defined(tree: ast.Module) -> set[str]:
    definitions = (ast.FunctionDef, ast.ClassDef)
    names = {node.name for node in ast.walk(tree) if isinstance(node, definitions)}
    for node in tree.body:
        targets: Sequence[ast.expr] = node.targets if isinstance(node, ast.Assign) else ()
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names
