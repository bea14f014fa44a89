"""pytest plugin: `check_kernel(solution, task=...)` in a test holds a kernel to everything `kernelskill check` looks for.

Installed as a fixture of that name; the function can be imported too. Nothing heavy is imported until it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from evaluator.checking.types import CheckReport


def check_kernel(
    solution: str | Path, *, task: str | Path, device: str = "auto", examples: int = 100, seed: int = 0,
    layouts: Sequence[str] = (), timeout_s: float = 60.0, folder: str | Path | None = None,
) -> CheckReport:
    """Fails the test with the report when a property is violated, or when nothing can be checked.

    `solution` and `task` are files as `kernelskill check` takes them, relative to the current folder. `folder` keeps the
    counterexamples and tries what failed before first.
    """
    __tracebackhide__ = True
    from evaluator.checking.text import report_lines
    from kernelskill import assembly, checking
    from kernelskill.errors import KernelSkillError

    for path in (Path(solution), Path(task)):
        if not path.exists():
            pytest.fail(f"check_kernel: no such file: {path}", pytrace=False)
    kept = Path(folder) if folder is not None else None
    try:
        mode, card = assembly.choose_device(assembly.Options(device=device))  # type: ignore[arg-type]
        report = checking.check(Path(solution), Path(task), card, mode, examples, seed, layouts, timeout_s, kept)
    except KernelSkillError as error:
        pytest.fail(f"check_kernel: {error}", pytrace=False)
    if report.outcome != "passed":
        programs = [f"run it:  python {path}" for path in checking.reproductions(kept, report)] if kept is not None else []
        pytest.fail("\n".join([*report_lines(report), *programs]), pytrace=False)
    return report


@pytest.fixture(name="check_kernel")
def check_kernel_fixture() -> Callable[..., Any]:
    """The function `check_kernel`; one line a kernel: `check_kernel("softmax.py", task="tasks/softmax")`."""
    return check_kernel
