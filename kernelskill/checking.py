"""Checks of a solution against a task file: the request from the task, and the folder that keeps what failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from evaluator.checking.process import check as run_check
from evaluator.checking.types import CheckReport, CheckRequest, Example, Verdict
from evaluator.types import DeviceSpec, Mode, Request, Shapes
from kernelskill.errors import KernelSkillError
from kernelskill.tasks import load_task

KNOWN = "failed_before.json"
MOST_KNOWN = 50
_EXAMPLES = TypeAdapter(list[Example])


def check(
    solution: Path, task_path: Path, device: DeviceSpec, mode: Mode, examples: int = 100, seed: int = 0,
    layouts: Sequence[str] = (), timeout_s: float = 60.0, folder: Path | None = None, shapes: Shapes = "general",
) -> CheckReport:
    """Checks a solution; with `folder`, first what failed before, and what fails is kept there. Raises KernelSkillError."""
    task = load_task(task_path).judged_on(shapes)
    known = _known(folder) if folder else []
    request = Request(
        task=task.spec, solution=str(solution.resolve()), mode=mode, device=device, timeout_s=timeout_s, seed=seed)
    report = run_check(CheckRequest.model_validate({
        "request": request, "examples": examples, "layouts": layouts, "known": known}))
    if folder and (report.violated() or known):
        _keep(folder, report, known)
    return report


def reproductions(folder: Path, report: CheckReport) -> Iterator[Path]:
    """The programs that show the report's faults."""
    for verdict in report.violated():
        if verdict.counterexample is not None and verdict.counterexample.reproduction:
            yield folder / _name(verdict)


def _name(verdict: Verdict) -> str:
    words = verdict.title.split(": ", 1)[-1] if verdict.property in ("relation", "layouts") else ""
    suffix = "_" + "_".join("".join(c if c.isalnum() else " " for c in words).split())[:60] if words else ""
    return f"{verdict.property}{suffix}.py"


def _known(folder: Path) -> list[Example]:
    try:
        return _EXAMPLES.validate_json((folder / KNOWN).read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValidationError) as error:
        raise KernelSkillError(f"{folder / KNOWN} cannot be read: {str(error).splitlines()[0]}",
                               hint="remove the file, or give another folder with --out") from error


def _keep(folder: Path, report: CheckReport, known: Sequence[Example]) -> None:
    """The report, the programs, and the examples to try first next time."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(report.model_dump_json(indent=1) + "\n", encoding="utf-8")
    fresh = [verdict.counterexample for verdict in report.violated() if verdict.counterexample]
    failing = list(dict.fromkeys([*(found.example for found in fresh), *known]))[:MOST_KNOWN]
    (folder / KNOWN).write_bytes(_EXAMPLES.dump_json(failing, indent=1) + b"\n")
    for verdict, found in ((v, v.counterexample) for v in report.violated()):
        if found is not None and found.reproduction:
            (folder / _name(verdict)).write_text(found.reproduction, encoding="utf-8")
