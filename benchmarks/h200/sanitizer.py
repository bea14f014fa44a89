"""compute-sanitizer on planted faults that give right outputs, and on honest solutions; what it costs.

`python -m benchmarks.h200 sanitizer [--budget SECONDS]` adds to `results/h200/sanitizer.json`. Every planted fault must pass
without the sanitizer (else it shows nothing) and be named with its kind and line with it; every honest solution must pass.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.examples import EXAMPLES, ROOT
from benchmarks.examples import RESULTS as SOLUTIONS
from benchmarks.h200.provenance import RESULTS, Record
from evaluator import pool
from evaluator.types import DeviceSpec, Evaluation, Request, SanitizerTool, Status, TaskSpec
from kernelskill.facts.device import detect_device
from kernelskill.gpu_trial import REFERENCE
from kernelskill.tasks import load_task

PART = "sanitizer"
TOOLS: tuple[SanitizerTool, ...] = ("memcheck", "racecheck", "initcheck", "synccheck")
SOLUTION = '''
import cupy as cp

KERNEL = cp.RawKernel(r"""
extern "C" __global__ void twice(const float* x, float* y, float* scratch, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
%s
}
""", "twice")


def run(x):
    y, scratch = cp.empty_like(x), cp.empty_like(x)
    KERNEL((-(-x.size // 64),), (64,), (x, y, scratch, cp.int32(x.size)))
    return y
'''
CHECK_SIZES = ({"n": 1000}, {"n": 33})


@dataclass(frozen=True)
class Planted:
    """A kernel body with a fault on the line that holds FAULT."""

    kind: str
    body: str


FAULT = "/*fault*/"
PLANTED = {
    "read_past_the_end": Planted("out_of_bounds", """
    if (i <= n) { float v = static_cast<const volatile float*>(x)[i]; /*fault*/
        if (i < n) y[i] = 2.0f * v; }"""),
    "write_past_the_end": Planted("out_of_bounds", """
    if (i < n) y[i] = 2.0f * x[i];
    if (i == n - 1) y[n] = 0.0f; /*fault*/"""),
    "read_of_what_nothing_wrote": Planted("uninitialised_global", """
    if (i < n) { float s = scratch[i]; /*fault*/
        y[i] = 2.0f * x[i] + (s == 1234.5f ? 1e-20f : 0.0f); }"""),
    "no_barrier_before_the_other_warp_reads": Planted("shared_race", """
    __shared__ float tile[64];
    int other = i ^ 32;
    tile[threadIdx.x] = other < n ? x[other] : 0.0f;
    __nanosleep(40000);
    float v = tile[threadIdx.x ^ 32]; /*fault*/
    if (i < n) y[i] = 2.0f * v;"""),
    "barrier_for_a_part_of_the_block": Planted("divergent_barrier", """
    if (threadIdx.x < 40) {
        __syncthreads(); /*fault*/
    }
    if (i < n) y[i] = 2.0f * x[i];"""),
}


def planted(name: str, device: DeviceSpec, folder: Path) -> dict[str, Any]:
    """The verdicts on one fault, without and with the sanitizer."""
    reference, solution = folder / "reference.py", folder / f"{name}.py"
    reference.write_text(REFERENCE, encoding="utf-8")
    solution.write_text(SOLUTION % PLANTED[name].body.strip("\n"), encoding="utf-8")
    task = TaskSpec(name="twice", kind="native", path=str(reference), sizes=CHECK_SIZES[0], check_sizes=CHECK_SIZES)
    plain, watched = (evaluate(task, solution, device, tools) for tools in ((), TOOLS))
    text = solution.read_text(encoding="utf-8").splitlines()
    wanted = next(number for number, line in enumerate(text, 1) if FAULT in line)
    errors = [finding for finding in watched.findings if finding.severity == "error"]
    right = [f for f in errors if f.kind == PLANTED[name].kind and f.origin == f"{solution}:{wanted}"]
    return {"kind": PLANTED[name].kind, "line": wanted, "without": plain.status.value, "with": watched.status.value,
            "message": watched.message.replace(str(folder), "."), "caught": bool(right),
            "seconds": watched.stage_seconds.get("sanitize"),
            "findings": [f"{f.kind} {f.kernel} line {f.line}: {f.message[:200]}" for f in errors],
            "unavailable": watched.unavailable}


def honest(name: str, label: str, device: DeviceSpec, tools: tuple[SanitizerTool, ...] = TOOLS) -> dict[str, Any]:
    """The verdict on an example's solution."""
    found = evaluate(load_task(ROOT / "examples" / name).spec, SOLUTIONS / "solutions" / name / f"{label}.py", device, tools)
    return {"status": found.status.value, "message": found.message[:300], "seconds": found.stage_seconds.get("sanitize"),
            "verify_seconds": found.stage_seconds.get("verify"), "unavailable": found.unavailable,
            "watched": {k: v for k, v in found.checks.items() if k.startswith("sanitizer")}}


def evaluate(task: TaskSpec, solution: Path, device: DeviceSpec, tools: tuple[SanitizerTool, ...]) -> Evaluation:
    """Verified, and then sanitized; not timed."""
    return pool.evaluate(Request(task=task, solution=str(solution), mode="cuda", device=device, stages=("verify",),
                                 timeout_s=90, sanitize=tools))


def main(argv: list[str]) -> int:
    """Exit code 0 where every fault was caught and every honest solution passed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.h200 sanitizer", description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS, help="write the record into this folder")
    parser.add_argument("--budget", type=float, default=1e9, help="start nothing more after so many seconds")
    options = parser.parse_args(argv)
    device = detect_device()
    if device is None:
        raise SystemExit("no NVIDIA GPU here: this measurement needs one")
    record = Record(PART, " ".join(["python -m benchmarks.h200 sanitizer", *argv]), options.out)
    until = time.monotonic() + options.budget
    with tempfile.TemporaryDirectory() as folder:
        steps: list[tuple[str, str, Callable[[], Any]]] = [
            *(("planted", name, partial(planted, name, device, Path(folder))) for name in PLANTED),
            *(("honest", name, partial(honest, name, "best", device)) for name in EXAMPLES),
            *(("one_tool_seconds", tool, partial(seconds_of, tool, device)) for tool in TOOLS)]
        for section, name, step in steps:
            if time.monotonic() < until:
                row = step()
                print(section, name, row, flush=True)
                record.add(section, {name: row})
    missed = [name for name, row in record.kept["planted"].items() if not row["caught"]]
    record.put("not_caught", {name: record.kept.get("not_caught", {}).get(name, "not explained yet") for name in missed})
    honest_passed = all(row["status"] == Status.PASSED.value for row in record.kept["honest"].values())
    return 0 if not missed and honest_passed else 1


def seconds_of(tool: SanitizerTool, device: DeviceSpec) -> float | None:
    """What one tool alone takes on an example."""
    found: float | None = honest(EXAMPLES[1], "best", device, (tool,))["seconds"]
    return found
