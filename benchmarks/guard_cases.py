"""The guard cases (tests/guards): what each solution tries, and what must come of it.

`python -m benchmarks.guard_cases` writes docs/guards.md from them and from the recorded run on a GPU.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from ruamel.yaml import YAML

from evaluator.library import CATEGORIES
from evaluator.types import DeviceSpec, Evaluation, Frozen, Mode, Request, Status, TaskSpec

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "guards"
NOWHERE = "-"
NO_GAIN = 0.8
"""A cheat that passes must take at least this share of the honest solution's time."""


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
                       timed_only=not self.launches)

    def disagreement(self, evaluation: Evaluation, mode: Mode) -> str:
        """Why the evaluation is not what the case demands; "" where it is."""
        accepted = self.accepted(mode)
        if evaluation.status not in accepted:
            return f"{evaluation.status.value} instead of {' or '.join(s.value for s in accepted)}: {evaluation.message}"
        if self.words and not (mode == "cuda" and self.cuda) and self.words not in evaluation.message:
            return f"the message lacks {self.words!r}: {evaluation.message}"
        return ""


class Kind(Frozen):
    """A way to look fast without being it."""

    name: str
    group: Literal["time", "output", "task"]
    how: str = ""
    """What makes it impossible, beside the cases."""
    open: str = ""
    """Why it is not detected."""


def load_kinds() -> dict[int, Kind]:
    """Every known kind by its number."""
    return {number: Kind.model_validate(row) for number, row in _read()["kinds"].items()}


def load_cases() -> list[Case]:
    """Every case, in the file's order."""
    data = _read()
    return [Case.model_validate({**row, "spec": data["tasks"][row["task"]]}) for row in data["cases"]]


def _read() -> dict[str, Any]:
    return dict(YAML(typ="safe").load((FOLDER / "cases.yaml").read_text(encoding="utf-8")))


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


GROUPS = {"time": "A better time without better work", "output": "An output without the computation", "task": "Not the task"}
ISOLATION = ROOT / "benchmarks" / "results" / "h200" / "isolation.json"
RECORD = ROOT / "benchmarks" / "results" / "h200" / "guards.json"
PAGE = ROOT / "docs" / "guards.md"
INTRODUCTION = """# Guards

Written by `python -m benchmarks.guard_cases` from `tests/guards/cases.yaml`{recorded}.

A time counts only when the work was done. The source guard (`evaluator/guards.py`) refuses at once what no honest solution
needs; it is a tripwire. What carries the weight is structure: the solution's process never holds the reference or an
expected output, the judge compares and computes every statistic in a process of its own, seeds are drawn after the solution
was imported, every call gets other data at another address, and of the timed calls at least three are compared with the
reference, and one more after up to a thousand calls that are not timed.

What computes must be a kernel of the solution's own. `--allow-library OPS` lets operators of torch or CuPy stay, by name
(`conv2d`) or category ({categories});
`all` lets everything stay. Every other operator is REJECTED: in the simulator where it is called, on a GPU where it is called
(torch) or where its kernel shows in the recorded launches of a timed call (CuPy).

Each solution below is a file under `tests/guards/`, judged end to end: cheats must get the verdict shown, look-alikes must
pass. `H200` is the verdict of the recorded run on the card; `no gain` means that it passes and is timed no faster than the
honest solution.
"""
LIMITS = """
## What holds where

The solution runs in a process of its own, forked before the task is loaded. In the simulator and on a GPU alike, from the
moment before the solution is imported: no new process, no signal to another one, no network, no file made, changed or
removed (a system-call filter, `evaluator/seccomp.py`); no look into any other process (a Landlock domain,
`evaluator/landlock.py`); none of root's powers; limits on processor time, memory and threads.
On a GPU the filter is installed once CUDA is initialised. `kernelskill doctor` says whether bubblewrap adds to it that the
user's files cannot be read; the devices of the GPU are then bound into it one by one. The judge's memory cannot be read.

What stays possible: the timing code runs in the solution's own process, where code can reach it and restore what it changed
before the next look (after the import and after every call of the verification). Against that stands the judge's own clock
(`evaluator/wall_clock.py`), which is coarse: a forged time of a call that takes less than about 0.3 ms goes unnoticed by it.
"""
HOSTILE = """
## Hostile solutions on the card

Each costs one evaluation; the honest one after it passes. Device memory is what NVML says more than before, once the driver
had its time (up to 11 s after a misaligned address); those without a number ran side by side and left nothing together.
`benchmarks/results/h200/isolation.json` ({date}, sandbox {sandbox}); `python -m benchmarks.h200 isolation` repeats it.
"""


def page(record: Mapping[str, Any] | None) -> str:
    """docs/guards.md; `record` is the run on a GPU."""
    rows = {row["file"]: row for row in (record or {}).get("cases", ())}
    where = f" and `benchmarks/results/h200/guards.json` ({record['provenance']['date'][:10]})" if record else ""
    kinds, cases = load_kinds(), load_cases()
    parts = [INTRODUCTION.format(recorded=where, categories=", ".join(f"`{name}`" for name in CATEGORIES))]
    for group, title in GROUPS.items():
        parts.append(f"\n## {title}\n\n| kind | solution | what it does | found by | simulator | H200 |\n"
                     "| --- | --- | --- | --- | --- | --- |")
        for number, kind in kinds.items():
            if kind.group == group:
                own = [case for case in cases if number in case.kinds[:1] and not case.honest]
                parts += _kind_rows(number, kind, own, cases, rows)
    parts.append("\n## Honest look-alikes\n\n| solution | what it does | looks like | simulator | H200 |\n"
                 "| --- | --- | --- | --- | --- |")
    parts += [f"| `{case.file}` | {case.purpose} | {', '.join(kinds[n].name for n in case.kinds) or 'nothing'} | passes | "
              f"{_on_card(case, rows)} |" for case in cases if case.honest]
    return "\n".join([*parts, *_kernelbench(record), LIMITS.rstrip(), *_isolation(), ""])


def _kind_rows(number: int, kind: Kind, own: Sequence[Case], cases: Sequence[Case], rows: Mapping[str, Any]) -> list[str]:
    lines = [f"| {number}. {kind.name} | `{case.file}` | {case.purpose} | `{case.detector}` | {_in_simulator(case)} | "
             f"{_on_card(case, rows)} |" for case in own]
    elsewhere = [case.file for case in cases if number in case.kinds[1:] and not case.honest]
    note = kind.how or (f"not detected: {kind.open}" if kind.open else "")
    also = "also " + ", ".join(f"`{name}`" for name in elsewhere) if elsewhere else ""
    if not lines or note:
        lines.append(f"| {number}. {kind.name} | | {also if not lines else ''} | {note} | | |")
    return lines


def _in_simulator(case: Case) -> str:
    return "not shown" if case.expect == NOWHERE else str(Status(case.expect).value)


def _on_card(case: Case, rows: Mapping[str, Any]) -> str:
    row = rows.get(case.file)
    if row is None:
        return "not run"
    if contradicts(case, rows):
        return f"WRONG: {row['status']}"
    if case.honest:
        return "passes"
    return f"{row['status']}, no gain" if case.no_gain and row["status"] == "PASSED" else str(row["status"])


def contradicts(case: Case, rows: Mapping[str, Any]) -> bool:
    """Whether the recorded verdict is none that the case accepts, or a cheat passed and was timed faster than honest work."""
    row = rows[case.file]
    honest = rows.get(case.no_gain, {}).get("time_us")
    faster = bool(honest and row["time_us"] and row["time_us"] < NO_GAIN * honest)
    return Status(row["status"]) not in case.accepted("cuda") or (row["status"] == "PASSED" and faster)


def _kernelbench(record: Mapping[str, Any] | None) -> list[str]:
    rows = (record or {}).get("kernelbench") or []
    head = ["\n## KernelBench's own adversaries\n", (
        "Its adversarial kernels and the cases of its static checker, read from a local checkout (`KERNELBENCH=DIR pytest "
        "tests/guards`, `python -m benchmarks.h200 guards --kernelbench DIR`). Its kernels are C++ extensions, which are "
        "refused for their form; translated to ours (`tests/guards/kernelbench`) they are judged. Where the product may stay "
        "torch's, the one on another stream must be timed no faster than the same product on the current stream.\n")]
    if not rows:
        return [*head, "Not run on a GPU yet."]
    shown = [f"| `{row['file']}` | {row['status']} | {_microseconds(row)} | {row['wrong'] or 'as it must be'} |"
             for row in rows]
    return [*head, "| case | verdict on the H200 | time in us | |\n| --- | --- | --- | --- |", *shown]


def _isolation() -> list[str]:
    """The hostile solutions of benchmarks/hostile.py as they were on the card."""
    record = json.loads(ISOLATION.read_text(encoding="utf-8"))
    head = HOSTILE.format(date=record["provenance"]["date"][:10], sandbox=record["sandbox"])
    judged = [row for row in record["cases"] if "status" in row]
    rows = [f"| {row['name'].replace('_', ' ')} | {row['status']} | {row['seconds']:.1f} | {row['next_status']} | "
            f"{row.get('device_bytes_left', '')} | {row.get('processes_left', '')} |" for row in judged]
    table = ("| attack | verdict | seconds | next | device bytes left | processes left |\n"
             "| --- | --- | --- | --- | --- | --- |")
    return [head, table, *rows]


def _microseconds(row: Mapping[str, Any]) -> str:
    return "" if row["time_us"] is None else f"{row['time_us']:.0f}"


def recorded() -> dict[str, Any] | None:
    """The committed run on a GPU; None where there is none."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else None


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page(recorded()), encoding="utf-8")


if __name__ == "__main__":
    main()
