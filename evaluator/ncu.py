"""Nsight Compute: runs it around one call of a solution, and reads its CSV pages.

The raw page holds the metrics, the details page what NVIDIA's own rules said. Clocks are left alone; every kernel is
replayed with flushed caches; of many launches of one kernel in one shape the first is measured.

Every replay of a kernel costs some 60 ms, whatever the kernel. The full set takes 40 of them, many for what no fact comes from:
samples over time (PmSampling), rooflines level by level, links to other devices. The set `facts` leaves these out.
"""

from __future__ import annotations

import ast
import csv
import math
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from evaluator.attached import Attached, ToolFailed
from evaluator.launches import base_name
from evaluator.oracle import Problem
from evaluator.types import CounterSet, KernelProfile, Request, RuleResult

REPORT = "{folder}/report"
SECTIONS = (
    "SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Chart",
    "MemoryWorkloadAnalysis_Tables", "SchedulerStats", "WarpStateStats", "InstructionStats", "LaunchStats", "Occupancy",
    "SourceCounters", "WorkloadDistribution",
)
"""Sections of Nsight Compute with a metric or a rule that becomes a fact."""
SETS: Mapping[CounterSet, tuple[str, ...]] = {
    "full": ("--set", "full"), "facts": tuple(word for name in SECTIONS for word in ("--section", name)),
}
SETTINGS = ("--profile-from-start", "off", "--clock-control", "none", "--filter-mode", "per-launch-config",
            "--launch-count", "1", "--kernel-name-base", "function", "--force-overwrite", "--export", REPORT)
PLACES = ("/opt/nvidia/nsight-compute/*/ncu", "/usr/local/cuda*/bin/ncu")
READ_SECONDS = 60.0
SCALES = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6, "nsecond": 1e-3, "usecond": 1.0, "msecond": 1e3, "second": 1e6,
          "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}
"""Unit -> factor to us and bytes."""
METRIC = re.compile(r"__|^memory_")
"""Column names of metrics; the others tell where and when."""
ERROR = re.compile(r"^==ERROR== (.+)$", re.MULTILINE)
SAID = "ncu: "
"""Before an error in the tool's own words."""
FORBIDDEN = "ERR_NVGPUCTRPERM"
PERMIT = ("counters are for administrators only here: run as root, or load the driver with "
          "NVreg_RestrictProfilingToAdminUsers=0 (https://developer.nvidia.com/ERR_NVGPUCTRPERM)")


class NotAnExport(ValueError):
    """The text is no raw page of Nsight Compute."""


def find_ncu() -> str | None:
    """Path of ncu: on PATH, or where its packages put it (the newest)."""
    found = shutil.which("ncu")
    if found:
        return found
    installed = [str(path) for place in PLACES for path in sorted(Path("/").glob(place.lstrip("/")))]
    return installed[-1] if installed else None


def start(request: Request, kernels: Iterable[str], deadline: float) -> Attached:
    """The solution's process under ncu, which will measure the solution's own `kernels`. Raises ToolFailed."""
    program = find_ncu()
    if program is None:
        raise ToolFailed("ncu is not installed here: install Nsight Compute")
    names = own_kernels(kernels)
    wanted = [*SETS[request.counter_set], *SETTINGS, "--kernel-name", names, "--metrics", ",".join(request.counters)]
    return Attached([program, *wanted], request, deadline)


def measure(target: Attached, problem: Problem) -> tuple[KernelProfile, ...]:
    """Counters of one call on `problem`. Raises ToolFailed, its message saying why."""
    try:
        target.prepare(problem)
        target.ask("bracketed", dict(problem.inputs))
        target.finish()
    except ToolFailed as failure:
        raise ToolFailed(reason(target.printed()) or str(failure)) from None
    return _read_report(target)


def own_kernels(kernels: Iterable[str]) -> str:
    """The filter that leaves out every kernel of a library."""
    names = sorted({re.escape(base_name(kernel)) for kernel in kernels})
    return f"regex:^({'|'.join(names)})$"


def reason(printed: str) -> str:
    """Why nothing was measured, in words; "" where ncu names no error."""
    if FORBIDDEN in printed:
        return f"forbidden here: {FORBIDDEN}; {PERMIT}"
    error = ERROR.search(printed)
    return f"{SAID}{error[1].strip()}" if error else ""


def _read_report(target: Attached) -> tuple[KernelProfile, ...]:
    report, program = target.folder / "report.ncu-rep", str(find_ncu())
    if not report.is_file():
        why = reason(target.printed()) or "ncu measured no kernel: " + target.printed()[-300:].strip()
        raise ToolFailed(why)
    pages = {}
    reading = {page: subprocess.Popen([program, "--import", str(report), "--csv", "--page", page, "--print-units", "base"],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
               for page in ("raw", "details")}
    for page, process in reading.items():
        try:
            pages[page] = process.communicate(timeout=READ_SECONDS)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            raise ToolFailed(f"ncu did not print its {page} page within {READ_SECONDS:g} s") from None
    try:
        return tuple(read_profiles(pages["raw"], pages["details"]))
    except NotAnExport as error:
        raise ToolFailed(reason(target.printed()) or str(error)) from None


def read_profiles(raw: str, details: str = "") -> list[KernelProfile]:
    """The launches of a raw page, with the rule results of a details page of the same run (matched by ID).

    Lines around the tables (==PROF==, the program's own output) are skipped. Raises NotAnExport without a table.
    """
    rows = _table(raw)
    if not rows:
        raise NotAnExport("this is no raw page of Nsight Compute")
    units, launches = (rows[0], rows[1:]) if not rows[0]["ID"] else ({}, rows)  # some versions write no row of units
    rules: dict[str, list[RuleResult]] = {}
    for row in _table(details):
        if row.get("Rule Name"):
            rules.setdefault(row["ID"], []).append(RuleResult(
                rule=row["Rule Name"], description=row["Rule Description"],
                speedup_pct=_number(row.get("Estimated Speedup") or "")))
    return [_profile(row, units, rules.get(row["ID"], ())) for row in launches]


def _profile(row: Mapping[str, str], units: Mapping[str, str], rules: Sequence[RuleResult]) -> KernelProfile:
    metrics = {}
    for name, text in row.items():
        value = _number(text or "")
        if METRIC.search(name) and value is not None:
            metrics[name] = value * SCALES.get((units.get(name) or "").split("/")[0], 1.0)
    block, grid = (ast.literal_eval(row.get(key) or "()") for key in ("Block Size", "Grid Size"))
    return KernelProfile(kernel=row["Kernel Name"], block=block, grid=grid, metrics=metrics, rules=tuple(rules))


def _table(text: str) -> list[dict[str, str]]:
    """Rows below the header that starts with "ID"."""
    return list(csv.DictReader(_from_header(text.splitlines())))


def _from_header(lines: Iterable[str]) -> Iterator[str]:
    seen = False
    for line in lines:
        seen = seen or line.startswith('"ID"')
        if seen and line.startswith('"'):
            yield line


def _number(text: str) -> float | None:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
