"""compute-sanitizer as a verification step: the solution's kernels on the check sizes, under each tool asked for.

memcheck sees accesses outside an allocation (every array is one here, none comes from a pool) and misaligned ones, racecheck
hazards on shared memory, initcheck reads of global memory that nothing wrote, synccheck barriers that not all threads reach.
The tools run at the same time. Findings in kernels of libraries are left out.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

from evaluator.attached import Attached, ToolFailed
from evaluator.conditions import Conditions
from evaluator.inputs import TASK, Case
from evaluator.launches import base_name
from evaluator.oracle import Oracle, Problem
from evaluator.origins import with_origin
from evaluator.types import Finding, FindingKind, Request, SanitizerTool

CONDITIONS = Conditions(watched=False)
LOG = "{folder}/sanitizer.log"
SETTINGS = ("--show-backtrace", "no", "--report-api-errors", "no", "--print-limit", "50", "--log-file", LOG)
ABOUT_SHARED = frozenset({"racecheck", "synccheck"})
"""Tools with nothing to see in kernels without shared memory or barriers."""
PLACES = ("/usr/local/cuda*/bin/compute-sanitizer", "/usr/local/cuda*/compute-sanitizer/compute-sanitizer",
          "/opt/nvidia/compute-sanitizer/compute-sanitizer")
MOST_CASES = 4
SECONDS = 90.0
"""What one tool may take."""
FINDINGS_LIMIT = 10
PREFIX = "========= "
HEADERS: tuple[tuple[re.Pattern[str], FindingKind], ...] = (
    (re.compile(r"Invalid __\w+__ (?:read|write|atomic)"), "out_of_bounds"),
    (re.compile(r"(?:Error|Warning): (?:Race reported|Potential \w+ hazard)"), "shared_race"),
    (re.compile(r"Uninitialized __shared__"), "uninitialised_shared"),
    (re.compile(r"Uninitialized __\w+__"), "uninitialised_global"),
    (re.compile(r"Barrier error detected"), "divergent_barrier"),
)
PLACE = re.compile(r"\bat (?P<kernel>[^\n]+?)\+0x[0-9a-f]+(?: in (?P<file>[^\n]*?):(?P<line>\d+))?(?::\S+)?(?=\s|$)")
FILE = re.compile(r"in \S+\.cu:(?=\d)")
THREAD = re.compile(r"by thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)\)")


@dataclass
class Checked:
    """What the tools said."""

    findings: list[Finding] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """`sanitizer_memcheck` -> calls that it watched."""
    unavailable: str = ""
    """Why a tool said nothing; "" where all of them answered."""


def find_sanitizer() -> str | None:
    """Path of compute-sanitizer: on PATH, or where CUDA puts it (the newest)."""
    found = shutil.which("compute-sanitizer")
    if found:
        return found
    installed = [str(path) for place in PLACES for path in sorted(Path("/").glob(place.lstrip("/")))]
    return installed[-1] if installed else None


def check(request: Request, oracle: Oracle, kernels: Iterable[str], deadline: float) -> Checked:
    """Runs the request's tools over the check sizes; never raises for what a tool or the solution does."""
    program = find_sanitizer()
    if program is None:
        return Checked(unavailable="compute-sanitizer is not installed here: install the CUDA toolkit")
    problems = [(case, oracle.problem(case)) for case in _cases(oracle)]
    if not problems:
        return Checked(unavailable="it watches calls at small sizes, and --shapes exact leaves the task's own large ones")
    own = {base_name(kernel) for kernel in kernels}
    tools = [tool for tool in request.sanitize if tool not in ABOUT_SHARED or _uses_shared(request)]

    def run(tool: SanitizerTool) -> Checked:
        return _watched(program, tool, request, problems, own, min(deadline, time.monotonic() + SECONDS))

    with ThreadPoolExecutor(len(tools) or 1) as threads:
        parts = list(threads.map(run, tools))
    reasons = sorted({part.unavailable for part in parts if part.unavailable})
    return Checked([f for part in parts for f in part.findings],
                   {name: count for part in parts for name, count in part.counts.items()}, "; ".join(reasons))


def _cases(oracle: Oracle) -> list[Case]:
    """The smallest sizes that the solution was verified at."""
    sizes = sorted(oracle.spec.check_sizes, key=lambda size: prod(size.values()))
    return [Case(dict(size), TASK, oracle.spec.seed) for size in sizes[:MOST_CASES]]


def _uses_shared(request: Request) -> bool:
    text = Path(request.solution).read_text(encoding="utf-8")
    return "__shared__" in text or "sync" in text


def _watched(program: str, tool: SanitizerTool, request: Request, problems: Sequence[tuple[Case, Problem]], own: set[str],
             deadline: float) -> Checked:
    """One tool over all problems. A solution that fails under it is no verdict by itself: its findings are."""
    done, failure, sources = 0, "", list[str]()
    with Attached([program, "--tool", tool, *SETTINGS], request, deadline, unpooled=True) as target:
        try:
            for case, problem in problems:
                target.prepare(problem)
                target.ask("call", dict(problem.inputs), how="fresh", sizes=case.sizes, keep_inputs=False,
                           conditions=CONDITIONS.model_dump())
                done += 1
        except ToolFailed as error:
            failure = str(error)
        try:
            sources = [str(source) for source in target.ask("sources")["sources"]]
            target.finish()
        except ToolFailed as error:
            failure = failure or str(error)
        log = target.folder / "sanitizer.log"
        text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    if not failure and "SUMMARY" not in text:
        failure = "it ended without a summary, so it may have watched nothing"
    findings = [_placed(f, sources, request.solution) for f in findings_in(text, tool, own)]
    counts = {f"sanitizer_{tool}": done}
    return Checked(findings, counts, "" if findings or not failure else f"{tool}: {failure}")


def findings_in(log: str, tool: SanitizerTool, own: set[str] | None = None) -> list[Finding]:
    """One finding for each kind, kernel and line of a tool's log; `own`: kernels to report (None: all)."""
    found: dict[tuple[str, str | None, int | None], Finding] = {}
    seen: dict[tuple[str, str | None, int | None], int] = {}
    for record in _records(log):
        finding = _finding(record, tool)
        if finding is None or (own is not None and base_name(finding.kernel or "") not in own):
            continue
        key = (finding.kind, finding.kernel, finding.line)
        found.setdefault(key, finding)
        seen[key] = seen.get(key, 0) + 1
    return [_counted(finding, seen[key]) for key, finding in list(found.items())[:FINDINGS_LIMIT]]


def _records(log: str) -> Iterator[str]:
    """Each header line with the indented lines below it."""
    record: list[str] = []
    for line in log.splitlines():
        if not line.startswith(PREFIX.rstrip()):
            continue
        text = line[len(PREFIX):]
        if text[:1] not in ("", " ") and record:
            yield "\n".join(record)
            record = []
        if text.strip():
            record.append(text)
    if record:
        yield "\n".join(record)


def _finding(record: str, tool: SanitizerTool) -> Finding | None:
    header = record.split("\n", 1)[0]
    kind = next((kind for pattern, kind in HEADERS if pattern.search(header)), None)
    if kind is None:
        return None
    if "is misaligned" in record:
        kind = "misaligned"
    places, thread = list(PLACE.finditer(record)), THREAD.search(record)
    place = places[-1] if places else None  # of a race, the access that came second
    numbers = tuple(int(number) for number in thread.groups()) if thread else None
    return Finding(
        kind=kind, severity="warning" if header.startswith("Warning") else "error",
        message=f"{' '.join(FILE.sub(r'at CUDA line ', record).split())} (compute-sanitizer {tool})"[:600],
        kernel=base_name(place["kernel"]) if place else None, line=int(place["line"]) if place and place["line"] else None,
        thread=(numbers[0], numbers[1], numbers[2]) if numbers else None,
        block=(numbers[3], numbers[4], numbers[5]) if numbers else None)


def _counted(finding: Finding, times: int) -> Finding:
    return finding if times == 1 else finding.model_copy(update={"message": f"{finding.message}, {times} times"})


def _placed(finding: Finding, sources: Sequence[str], solution: str) -> Finding:
    """With the place in the solution's file; the module is the one that holds the kernel."""
    holding: Callable[[str], bool] = re.compile(rf"\b{re.escape(finding.kernel or '')}\s*\(").search  # type: ignore[assignment]
    source = next((text for text in sources if finding.kernel and holding(text)), None)
    return finding if source is None else with_origin(finding, source, solution)
