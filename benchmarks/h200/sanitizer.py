"""compute-sanitizer on planted faults that give right outputs, and on honest solutions; what it costs.

`python -m benchmarks.h200 sanitizer` writes `results/h200/sanitizer.json`. Every planted fault must pass without the sanitizer
(else it shows nothing) and be named with its kind and line with it; every honest solution must pass.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.examples import EXAMPLES, RESULTS, ROOT
from benchmarks.h200.provenance import provenance, write
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
    found = evaluate(load_task(ROOT / "examples" / name).spec, RESULTS / "solutions" / name / f"{label}.py", device, tools)
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
    parser.add_argument("--results", type=Path, help="write the record into this folder")
    parser.add_argument("--examples", nargs="*", default=list(EXAMPLES))
    options = parser.parse_args(argv)
    device = detect_device()
    if device is None:
        raise SystemExit("no NVIDIA GPU here: this measurement needs one")
    record = provenance(" ".join(["python -m benchmarks.h200 sanitizer", *argv]))
    result: dict[str, Any] = {"planted": {}, "honest": {}, "one_tool_seconds": {}}
    where = {"folder": options.results} if options.results else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in PLANTED:
            result["planted"][name] = row = planted(name, device, Path(folder))
            print(name, row, flush=True)
    for name in options.examples:
        result["honest"][name] = row = honest(name, "best", device)
        print(name, row, flush=True)
        write(PART, record, result, **where)
    for tool in TOOLS:
        result["one_tool_seconds"][tool] = honest(EXAMPLES[1], "best", device, (tool,))["seconds"]
    write(PART, record, result, **where)
    good = all(row["caught"] for row in result["planted"].values())
    return 0 if good and all(row["status"] == Status.PASSED.value for row in result["honest"].values()) else 1
