"""Other shapes of all KernelBench problems: at which sizes beside their own can each be verified?

`python -m benchmarks.kernelbench_shapes DIR` looks at every problem of a checkout in sandboxed processes and writes
`results/kernelbench_shapes.json` as it goes, so that a second call does what the first left or lost; `render` writes the table
of docs/kernelbench.md. The record holds ids, names, sizes and shapes; no line of KernelBench is copied.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.examples import RESULTS, ROOT
from benchmarks.kernelbench_lint import VERSION
from evaluator.pool import judge
from evaluator.shape_survey import LOST, Survey, SurveyRequest, Surveys
from evaluator.types import Request
from kernelskill.facts.device import load_device
from kernelskill.suites.discover import SuiteTask, find_tasks
from kernelskill.tasks import load_task

RECORD = RESULTS / "kernelbench_shapes.json"
PAGE = ROOT / "docs" / "kernelbench.md"
BEGIN, END = "<!-- shapes: written by python -m benchmarks.kernelbench_shapes render -->", "<!-- end of shapes -->"
SECONDS, AT_A_TIME = 400.0, 5
WANTED = 3
"""Other shapes that a problem should have."""


def look(tasks: Sequence[SuiteTask]) -> Iterator[tuple[str, Survey]]:
    """(key, survey) of some problems, all in one sandboxed process. Raises RuntimeError where it gives no answer."""
    specs = tuple(load_task(task.path).spec for task in tasks)
    limit = SECONDS * len(specs)
    request = Request(task=specs[0], solution=specs[0].path, device=load_device("h200"), timeout_s=limit)
    payload = SurveyRequest(tasks=specs, seconds=SECONDS).model_dump_json().encode()
    with tempfile.TemporaryDirectory(prefix="shapes-") as home:
        ended = judge(request, payload, Path(home), "shapes")
    if ended is None or ended[0]:
        raise RuntimeError(f"no answer about {', '.join(t.key for t in tasks)}: {ended and ended[2].decode()[-2000:]}")
    yield from zip((task.key for task in tasks), Surveys.model_validate_json(ended[1]).surveys, strict=True)


def row(survey: Survey) -> dict[str, Any]:
    """What of a survey is kept."""
    own = survey.own.sizes if survey.own else {}
    found = [
        {"sizes": {name: v for name, v in other.sizes.items() if own.get(name) != v}, "inputs": other.inputs,
         "outputs": other.outputs} for other in survey.others()
    ]
    return {"name": survey.task, "others": len(found), "refused": survey.refused, "seconds": survey.seconds,
            "own": {"inputs": survey.own.inputs, "outputs": survey.own.outputs} if survey.own else None,
            "fault": survey.fault, "variants": found}


def table(problems: Mapping[str, Any]) -> str:
    """The totals by level."""
    lines = ["| level | problems | at least three other shapes | one or two | none |", "| --- | ---: | ---: | ---: | ---: |"]
    for level in ("1", "2", "3", "all"):
        counts = [p["others"] for key, p in problems.items() if level == "all" or key.startswith(f"{level}/")]
        if counts:
            many, none = sum(n >= WANTED for n in counts), sum(n == 0 for n in counts)
            share = f"{many} ({100 * many / len(counts):.1f} %)"
            lines.append(f"| {level} | {len(counts)} | {share} | {len(counts) - many - none} | {none} |")
    few = [f"{key} ({p['others']})" for key, p in problems.items() if p["others"] < WANTED]
    return "\n".join([*lines, "", f"Fewer than three: {', '.join(few) or 'none'}."])


def render(record: Mapping[str, Any], page: str) -> str:
    """The page with its table of shapes as the record has it."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table(record['problems'])}\n\n{END}{after}"


def write(problems: Mapping[str, Any]) -> None:
    """One problem a line."""
    ordered = sorted(problems, key=lambda key: tuple(map(int, key.split("/"))))
    rows = ",\n".join(f" {json.dumps(key)}: {json.dumps(problems[key])}" for key in ordered)
    RECORD.write_text(f'{{"kernelbench": {json.dumps(VERSION)},\n"problems": {{\n{rows}\n}}}}\n', encoding="utf-8")


def main(argv: list[str]) -> int:
    """`DIR` or `render`."""
    if len(argv) != 1:
        print(__doc__)
        return 2
    problems = json.loads(RECORD.read_text(encoding="utf-8"))["problems"] if RECORD.exists() else {}
    if argv != ["render"]:
        done = {key for key, problem in problems.items() if not problem["fault"].startswith(LOST)}
        missing = [task for task in find_tasks(Path(argv[0])) if task.key not in done]
        for first in range(0, len(missing), AT_A_TIME):
            for key, survey in look(missing[first : first + AT_A_TIME]):
                problems[key] = row(survey)
                print(f"{key:6} {problems[key]['others']} others, {survey.refused} refused, {survey.seconds} s  {survey.fault}",
                      flush=True)
            write(problems)
    PAGE.write_text(render({"problems": problems}, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
