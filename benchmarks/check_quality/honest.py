"""Right kernels in the styles that people write: none may be blamed."""

from __future__ import annotations

from pathlib import Path

from benchmarks.check_quality.kernels import (
    FINITE,
    GEMM,
    NORMALISE,
    SCAN,
    SOFTMAX,
    TRANSPOSE,
    TREE,
    WARPS,
    Kernel,
    elementwise,
    rowwise,
)

SOLUTIONS = Path(__file__).resolve().parents[1] / "results" / "solutions"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
VECTOR4_WITH_TAIL = """int j = 4 * i;
  if (j + 3 < n && (reinterpret_cast<unsigned long long>(x) & 15) == 0) {
    float4 v = reinterpret_cast<const float4*>(x)[i];
    v.x = 2.f * v.x + 1.f; v.y = 2.f * v.y + 1.f; v.z = 2.f * v.z + 1.f; v.w = 2.f * v.w + 1.f;
    reinterpret_cast<float4*>(y)[i] = v;
  } else {
    for (int k = j; k < min(j + 4, n); ++k) y[k] = 2.f * x[k] + 1.f;
  }"""
ONLINE = """
  float best = -3.402823466e38f, sum = 0.f;
  for (int c = t; c < cols; c += 32) {
    float v = row[c], next = fmaxf(best, v);
    sum = sum * __expf(best - next) + __expf(v - next);
    best = next;
  }
  for (int o = 16; o > 0; o >>= 1) {
    float other = __shfl_xor_sync(0xffffffffu, best, o), other_sum = __shfl_xor_sync(0xffffffffu, sum, o);
    float next = fmaxf(best, other);
    sum = sum * __expf(best - next) + other_sum * __expf(other - next);
    best = next;
  }
  for (int c = t; c < cols; c += 32) y[(long long)blockIdx.x * cols + c] = __expf(row[c] - best) / sum;
"""
HONEST = (
    Kernel("grid stride", "scale", elementwise(
        "for (; i < n; i += gridDim.x * blockDim.x) y[i] = 2.f * x[i] + 1.f;", grid="2")),
    Kernel("vectorised with tail and alignment", "scale", elementwise(VECTOR4_WITH_TAIL)),
    Kernel("relu with NaN", "relu", elementwise("if (i < n) y[i] = x[i] < 0.f ? 0.f : x[i];")),
    Kernel("stable sigmoid", "sigmoid", elementwise("if (i < n) y[i] = 1.f / (1.f + expf(-x[i]));")),
    Kernel("squares in 64 bits", "squares", elementwise(
        "if (i < n) y[i] = (long long)x[i] * x[i];", types="const int* x, long long* y", output="cp.empty(n, dtype=cp.int64)")),
    Kernel("atomic total", "total", elementwise("if (i < n) atomicAdd(y, x[i]);", output="cp.zeros(1, dtype=x.dtype)")),
    Kernel("scan in one block", "running_sum", elementwise(SCAN, grid="1")),
    Kernel("tree of a row", "row_sum", rowwise(TREE)),
    Kernel("maximum by warps", "row_max", rowwise(WARPS)),
    Kernel("maximum by fmaxf, finite values declared", "row_max", FINITE + rowwise(
        "  float best = -__int_as_float(0x7f800000);\n  for (int c = t; c < cols; c += 32) best = fmaxf(best, row[c]);\n"
        "  for (int o = 16; o > 0; o >>= 1) best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, o));\n"
        "  if (t == 0) y[blockIdx.x] = best;", threads=32)),
    Kernel("softmax in two passes", "softmax", rowwise(SOFTMAX, output="cp.empty_like(x)")),
    Kernel("online softmax with fast exponentials", "softmax", rowwise(ONLINE, output="cp.empty_like(x)", threads=32)),
    Kernel("normalisation in two passes", "normalise", rowwise(NORMALISE, output="cp.empty_like(x)")),
    Kernel("tiled transpose", "transpose", TRANSPOSE),
    Kernel("tiled matrix product", "matmul", GEMM),
    Kernel("bias", "bias", rowwise(
        "for (int c = t; c < cols; c += 128) y[(long long)blockIdx.x * cols + c] = row[c] + bias[c];",
        types="const float* x, const float* bias, float* y", output="cp.empty_like(x)", entry="def run(x, bias):",
        call="x, bias, y")),
)


def shipped() -> list[tuple[str, Path, Path]]:
    """(name, solution, task folder): the start and the best solution of every example."""
    folders = [folder for folder in sorted(SOLUTIONS.iterdir()) if (EXAMPLES / folder.name).is_dir()]
    return [(f"{folder.name}/{file.stem}", file, EXAMPLES / folder.name)
            for folder in folders for file in sorted(folder.glob("*.py"))]
