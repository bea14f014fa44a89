"""Evaluations an hour on one GPU, split into stages, and source to verdict beside a build with torch's load_inline.

`python -m benchmarks.h200 throughput [--builds N] [--budget SECONDS]`. Both sides start from the same CUDA source, build it,
call it and compare with torch. Ours is a whole evaluation (a process, its guards, every verification case), load_inline is
nvcc, the host compiler and ninja, in an extensions folder that is empty before each build. Builds and evaluations take turns,
and both are recorded one by one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from benchmarks.examples import EXAMPLES, RESULTS, ROOT
from benchmarks.h200.provenance import RESULTS as RECORDS
from benchmarks.h200.provenance import Record
from evaluator import pool
from evaluator.types import DeviceSpec, Evaluation, Request, TaskSpec
from kernelskill.facts.device import detect_device
from kernelskill.tasks import load_task

PART = "throughput"
IMPORTS = ("numpy", "cupy", "torch", "evaluator.worker", "evaluator.timing", "scipy.stats")
GOAL = 20.0
"""Source to verdict should be this many times faster than a load_inline build."""
EVALUATIONS_A_BUILD = 4
Stages = tuple[Literal["verify", "profile"], ...]
KERNEL = """
extern "C" __global__ void row_softmax(const float* __restrict__ x, float* __restrict__ y, int cols) {
  __shared__ float part[32];
  const float* row = x + (size_t)blockIdx.x * cols;
  float* out = y + (size_t)blockIdx.x * cols;
  float most = -3.4e38f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) most = fmaxf(most, row[i]);
  for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = most;
  __syncthreads();
  for (int i = 0; i < blockDim.x / 32; ++i) most = fmaxf(most, part[i]);
  __syncthreads();
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += expf(row[i] - most);
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int i = 0; i < blockDim.x / 32; ++i) sum += part[i];
  for (int i = threadIdx.x; i < cols; i += blockDim.x) out[i] = expf(row[i] - most) / sum;
}
"""
SOLUTION = '''"""Softmax over the last axis, a block a row."""
import cupy
import torch

SOURCE = r"""%s"""
kernel = cupy.RawModule(code=SOURCE, backend="nvrtc").get_function("row_softmax")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        rows, cols = x.shape
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            kernel((rows,), (256,), (cupy.from_dlpack(x), cupy.from_dlpack(out), cupy.int32(cols)))
        return out
'''
LOAD_INLINE = '''
import sys, time
began = time.perf_counter()
import torch
from torch.utils.cpp_extension import load_inline
imported = time.perf_counter()
cuda = open(sys.argv[1]).read() + """
torch::Tensor row_softmax_call(torch::Tensor x) {
  auto out = torch::empty_like(x);
  row_softmax<<<x.size(0), 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), (int)x.size(1));
  return out;
}
"""
module = load_inline("row_softmax_inline", cpp_sources="torch::Tensor row_softmax_call(torch::Tensor x);", cuda_sources=cuda,
                     functions=["row_softmax_call"], verbose=False)
built = time.perf_counter()
x = torch.randn(1021, 1021, device="cuda")
assert torch.allclose(module.row_softmax_call(x), torch.softmax(x, 1), atol=1e-5, rtol=1e-4)
done = time.perf_counter()
print(f"{imported - began} {built - imported} {done - built}")
'''


def import_seconds(module: str, repeats: int = 3) -> float:
    """Median wall time of a Python process that imports one module."""
    samples = []
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True, cwd=ROOT)
        samples.append(time.perf_counter() - began)
    return round(statistics.median(samples), 3)


def load_inline_build() -> list[float]:
    """Seconds of importing torch, building, and calling once with a check, in an empty folder. Raises RuntimeError."""
    with tempfile.TemporaryDirectory() as folder:
        source, script = Path(folder) / "kernel.cu", Path(folder) / "build.py"
        source.write_text(KERNEL, encoding="utf-8")
        script.write_text(LOAD_INLINE, encoding="utf-8")
        variables = {**os.environ, "TORCH_EXTENSIONS_DIR": folder, "TORCH_CUDA_ARCH_LIST": "9.0"}
        done = subprocess.run([sys.executable, str(script), str(source)], env=variables, capture_output=True, text=True,
                              check=False)
    if done.returncode != 0:
        raise RuntimeError((done.stderr or done.stdout)[-1500:])
    return [round(float(word), 3) for word in done.stdout.split()[-3:]]


def compared(builds: Sequence[Sequence[float]], walls: Sequence[float]) -> dict[str, Any]:
    """Source to verdict of both, in seconds. `builds`: (import, build, call) of each; `walls`: ours, the first not warm.

    `times_faster` is the ratio of the medians, `times_faster_range` the least and the most that single runs make of it;
    `times_faster_without_import` leaves theirs the time that torch takes to import.
    """
    theirs, ours = [sum(parts) for parts in builds], list(walls[1:] or walls)
    middle = statistics.median(ours)
    return {
        "load_inline": {name: round(statistics.median(column), 3) for name, column in
                        zip(("import_s", "build_s", "call_s"), zip(*builds, strict=True), strict=True)},
        "load_inline_runs_s": [list(parts) for parts in builds],
        "load_inline_source_to_verdict_s": round(statistics.median(theirs), 2),
        "ours_runs_s": [round(wall, 3) for wall in ours], "ours_source_to_verdict_s": round(middle, 3), "goal": GOAL,
        "ours_first_s": round(walls[0], 3), "times_faster_first": round(statistics.median(theirs) / walls[0], 1),
        "times_faster": round(statistics.median(theirs) / middle, 1),
        "times_faster_range": [round(min(theirs) / max(ours), 1), round(max(theirs) / min(ours), 1)],
        "times_faster_without_import": round(statistics.median(parts[1] + parts[2] for parts in builds) / middle, 1),
    }


def evaluation(task: TaskSpec, solution: Path, device: DeviceSpec, stages: Stages) -> tuple[float, Evaluation]:
    """(wall seconds, result) of one evaluation, without the tools."""
    request = Request(task=task, solution=str(solution), mode="cuda", device=device, timeout_s=60, stages=stages,
                      timed_only=True)
    began = time.perf_counter()
    result = pool.evaluate(request)
    return time.perf_counter() - began, result


def row_of(walls: Sequence[float], results: Sequence[Evaluation]) -> dict[str, Any]:
    """Median wall time (without the first) and parts of several evaluations of one solution."""
    names = {name for result in results for name in result.stage_seconds}
    stages = {name: round(statistics.median(r.stage_seconds.get(name, 0.0) for r in results), 3) for name in sorted(names)}
    wall = statistics.median(walls[1:] or walls)  # the first starts the warm process
    return {
        "status": sorted({result.status.value for result in results}), "wall_s": round(wall, 3),
        "first_wall_s": round(walls[0], 3), "runs": len(walls), "stage_seconds": stages,
        "evaluations_per_hour": round(3600 / wall),
    }


def evaluations(task: TaskSpec, solution: Path, device: DeviceSpec, repeats: int, stages: Stages) -> dict[str, Any]:
    """`row_of` so many evaluations."""
    walls, results = zip(*(evaluation(task, solution, device, stages) for _ in range(repeats)), strict=True)
    return row_of(walls, results)


def side_by_side(record: Record, device: DeviceSpec, builds: int, until: float) -> None:
    """The comparison: after every build some evaluations; recorded after each."""
    made: list[list[float]] = []
    walls: list[float] = []
    results: list[Evaluation] = []
    with tempfile.TemporaryDirectory() as folder:
        solution = Path(folder) / "solution.py"
        solution.write_text(SOLUTION % KERNEL, encoding="utf-8")
        spec = load_task(ROOT / "examples" / "kernelbench" / "softmax.py").spec
        while len(made) < builds and time.monotonic() < until:
            made.append(load_inline_build())
            for _ in range(EVALUATIONS_A_BUILD):
                wall, result = evaluation(spec, solution, device, ("verify",))
                walls.append(wall)
                results.append(result)
            found = compared(made, walls)
            record.put("kernelbench_softmax_verdict_only", row_of(walls, results))
            for name, value in found.items():
                record.put(name, value)
            print(found, results[-1].status.value, results[-1].message[:200], results[-1].stage_seconds, flush=True)


def main(argv: list[str]) -> int:
    """Exit code 0 when the goal is met."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.h200 {PART}", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--builds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=1e9, help="start nothing more after so many seconds")
    parser.add_argument("--out", type=Path, default=RECORDS)
    options = parser.parse_args(argv)
    until = time.monotonic() + options.budget
    record = Record(PART, " ".join(["python -m benchmarks.h200", PART, *argv]), options.out)
    record.kept.pop("earlier_run", None)  # what a run that was cut off had left
    record.sections.pop("earlier_run", None)
    device = detect_device()
    if device is None:
        print("no NVIDIA GPU here: this measurement needs one", file=sys.stderr)
        return 1
    try:
        side_by_side(record, device, options.builds, until)
    except RuntimeError as error:
        record.put("load_inline", {"error": str(error)})
        print(error, flush=True)
    sections: dict[str, Stages] = {"examples_verdict_only": ("verify",), "examples_timed": ("verify", "profile")}
    for section, stages in sections.items():
        for name in EXAMPLES:
            if time.monotonic() < until:
                record.add(section, {name: evaluations(*_example(name), device, options.repeats, stages)})
    if time.monotonic() < until:
        record.put("import_seconds", {name: import_seconds(name) for name in IMPORTS})
    return 0 if record.kept.get("times_faster", 0.0) >= GOAL else 1


def _example(name: str) -> tuple[TaskSpec, Path]:
    return load_task(ROOT / "examples" / name).spec, RESULTS / "solutions" / name / "best.py"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
