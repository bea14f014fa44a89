"""Evaluations an hour on one GPU, split into stages, and source to verdict beside a build with torch's load_inline.

`python -m benchmarks.h200 throughput`. Both sides start from the same CUDA source, build it, call it once and compare with
torch. Ours is a whole evaluation (a process, its guards, every verification case, timing); load_inline is nvcc, the host
compiler and ninja, in an extensions folder that is empty before each build.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.examples import EXAMPLES, RESULTS, ROOT
from benchmarks.h200.provenance import provenance, write
from evaluator import pool
from evaluator.types import DeviceSpec, Evaluation, Request, TaskSpec
from kernelskill.facts.device import detect_device, load_device
from kernelskill.tasks import load_task

PART = "throughput"
IMPORTS = ("numpy", "cupy", "torch", "evaluator.worker", "evaluator.timing", "scipy.stats")
GOAL = 20.0
"""Source to verdict should be this many times faster than a load_inline build."""
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


def load_inline_seconds(repeats: int) -> dict[str, Any]:
    """Seconds of importing torch, building, and calling once with a check, for an empty extensions folder each time."""
    builds: list[list[float]] = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            source, script = Path(folder) / "kernel.cu", Path(folder) / "build.py"
            source.write_text(KERNEL, encoding="utf-8")
            script.write_text(LOAD_INLINE, encoding="utf-8")
            variables = {"TORCH_EXTENSIONS_DIR": folder, "TORCH_CUDA_ARCH_LIST": "9.0"}
            call = ["env", *(f"{name}={value}" for name, value in variables.items()), sys.executable, str(script), str(source)]
            done = subprocess.run(call, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return {"error": (done.stderr or done.stdout)[-1500:]}
        builds.append([float(word) for word in done.stdout.split()[-3:]])
        print("load_inline: import, build, call", builds[-1], flush=True)
    names = ("import_s", "build_s", "call_s")
    return {name: round(statistics.median(column), 3) for name, column in zip(names, zip(*builds, strict=True), strict=True)}


def evaluation(task: TaskSpec, solution: Path, device: DeviceSpec, stages: tuple[str, ...]) -> tuple[float, Evaluation]:
    """(wall seconds, result) of one evaluation."""
    request = Request(task=task, solution=str(solution), mode="cuda", device=device, timeout_s=60, stages=stages)  # type: ignore[arg-type]
    began = time.perf_counter()
    result = pool.evaluate(request)
    return time.perf_counter() - began, result


def evaluations(task: TaskSpec, solution: Path, device: DeviceSpec, repeats: int, stages: tuple[str, ...]) -> dict[str, Any]:
    """Median wall time (without the first) and stages of several evaluations of one solution."""
    walls, stage_seconds, statuses = [], [], []
    for _ in range(repeats):
        wall, result = evaluation(task, solution, device, stages)
        print(task.name, stages, f"{wall:.2f} s", result.status.value, result.message[:200], result.stage_seconds, flush=True)
        walls.append(wall)
        stage_seconds.append(result.stage_seconds)
        statuses.append(result.status.value)
    if "PASSED" not in statuses:
        print(result.status.value, result.message[:600], result.compile_log[:300])
    names = {name for seconds in stage_seconds for name in seconds}
    stages_found = {name: round(statistics.median(s.get(name, 0.0) for s in stage_seconds), 3) for name in sorted(names)}
    wall = statistics.median(walls[1:] or walls)  # the first starts the warm process
    row = {
        "status": sorted(set(statuses)), "wall_s": round(wall, 3), "first_wall_s": round(walls[0], 3),
        "stage_seconds": stages_found, "other_s": round(wall - sum(stages_found.values()), 3),
        "evaluations_per_hour": round(3600 / wall),
    }
    print(task.name, stages, json.dumps(row), flush=True)
    return row


def main(argv: list[str]) -> int:
    """Exit code 0 when the goal is met."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.h200 {PART}", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--builds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(argv)
    record = provenance(f"python -m benchmarks.h200 {PART}")
    device = detect_device() or load_device("h200")
    result: dict[str, Any] = {"import_seconds": {name: import_seconds(name) for name in IMPORTS}}
    print(result, flush=True)
    both = ("verify", "profile")
    result["load_inline"] = load_inline_seconds(options.builds)
    with tempfile.TemporaryDirectory() as folder:
        solution = Path(folder) / "solution.py"
        solution.write_text(SOLUTION % KERNEL, encoding="utf-8")
        spec = load_task(ROOT / "examples" / "kernelbench" / "softmax.py").spec
        result["kernelbench_softmax_verdict_only"] = evaluations(spec, solution, device, 2 * options.repeats, ("verify",))
        result |= _compared(result)
        write(PART, record, result, *([options.out] if options.out else []))  # what follows may be cut off
        result["kernelbench_softmax"] = evaluations(spec, solution, device, options.repeats, both)
    for stages, name in ((("verify",), "examples_verdict_only"), (both, "examples")):
        result[name] = {example: evaluations(*_example(example), device, options.repeats, stages) for example in EXAMPLES}
        write(PART, record, result, *([options.out] if options.out else []))
    print(write(PART, record, result, *([options.out] if options.out else [])))
    return 0 if result.get("times_faster", 0.0) >= GOAL else 1


def _example(name: str) -> tuple[TaskSpec, Path]:
    return load_task(ROOT / "examples" / name).spec, RESULTS / "solutions" / name / "best.py"


def _compared(result: dict[str, Any]) -> dict[str, Any]:
    built = result["load_inline"]
    if "error" in built:
        print(built["error"])
        return {}
    theirs = built["import_s"] + built["build_s"] + built["call_s"]
    row = result["kernelbench_softmax_verdict_only"]
    ours = row["wall_s"]
    found = {
        "load_inline_source_to_verdict_s": round(theirs, 2), "ours_source_to_verdict_s": ours, "goal": GOAL,
        "times_faster": round(theirs / ours, 1), "ours_first_s": row["first_wall_s"],
        "times_faster_first": round(theirs / row["first_wall_s"], 1),
    }
    print(found, flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
