"""Kernels with one planted fault each, otherwise right, and the smallest sizes that show it."""

from __future__ import annotations

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

GOOD = "if (i < n) y[i] = 2.f * x[i] + 1.f;"
LOWEST = "-__int_as_float(0x7f800000)"
EMPTY_LIKE = "cp.empty_like(x)"
VECTOR4 = """if (i < n / 4) {
    float4 v = reinterpret_cast<const float4*>(x)[i];
    v.x = 2.f * v.x + 1.f; v.y = 2.f * v.y + 1.f; v.z = 2.f * v.z + 1.f; v.w = 2.f * v.w + 1.f;
    reinterpret_cast<float4*>(y)[i] = v;
  }"""
LONG_VECTOR4 = f"if (n <= 1024) {{ {GOOD} }} else {VECTOR4}"
STATEFUL = """
TOTALS = {}


def fresh(n):
    if n not in TOTALS:
        TOTALS[n] = cp.zeros(1, dtype=np.float32)
    return TOTALS[n]

"""
CACHED = """
OUTPUTS = {}


def run(x):
    if x.shape not in OUTPUTS:
        OUTPUTS[x.shape] = computed(x)
    return OUTPUTS[x.shape]
"""
ATOMIC_TOTAL = "if (i < n) atomicAdd(y, x[i]);"
FIRST_BLOCK_CLEARS = "if (i == 0) y[0] = 0.f; if (i < n) atomicAdd(y, x[i]);"
ROWS_SPLIT = rowwise(
    """
  for (long long r = blockIdx.x; r < blockIdx.x + 1; ++r) {
    float sum = 0.f;
    for (int c = t; c < cols; c += 32) sum += row[c];
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (t == 0) y[r] = sum;
  }
""", threads=32, grid="share(rows)[0] * min(share(rows)[1], 64)").replace("def run(x):", '''def share(rows):
    """Blocks a part and parts: as many parts as the largest divisor up to 64 gives."""
    for parts in range(min(rows, 64), 1, -1):
        if rows % parts == 0:
            return rows // parts, parts
    return 1, rows


def run(x):''')
ARGMAX = """
  if (t == 0) {
    int best = 0;
    for (int c = 1; c < cols; ++c) if (row[c] >= row[best]) best = c;
    y[blockIdx.x] = best;
  }
"""
PLANTED = (
    Kernel("vector tail dropped", "scale", elementwise(VECTOR4), ("written", "agreement"), {"n": 1}),
    Kernel("vector tail dropped beyond 1024", "scale", elementwise(LONG_VECTOR4), ("written", "agreement"), {"n": 1025}),
    Kernel("grid rounds down", "scale", elementwise(GOOD, grid="max(n // 256, 1)"), ("written",), {"n": 257}),
    Kernel("grid without stride", "scale", elementwise(GOOD, grid="min((n + 255) // 256, 2)"), ("written",), {"n": 513}),
    Kernel("last element left out", "scale", elementwise("if (i < n - 1) y[i] = 2.f * x[i] + 1.f;"), ("written",), {"n": 1}),
    Kernel("no bounds check", "scale", elementwise("y[i] = 2.f * x[i] + 1.f;"), ("bounds",), {"n": 1}),
    Kernel("reads one too far", "scale", elementwise("if (i < n) y[i] = 2.f * x[i] + 1.f + 0.f * x[i + 1];"),
           ("bounds", "agreement"), {"n": 1}),
    Kernel("input changed", "scale", elementwise("if (i < n) { y[i] = 2.f * x[i] + 1.f; ((float*)x)[i] = 0.f; }"), ("inputs",),
           {"n": 1}),
    Kernel("thread index in a byte", "scale", elementwise(
        "unsigned char t = threadIdx.x; i = blockIdx.x * 512 + t; " + GOOD, grid="(n + 511) // 512", threads=512),
        ("written", "synchronisation"), {"n": 257}),
    Kernel("output cached by shape", "scale", elementwise(GOOD).replace("def run(x)", "def computed(x)") + CACHED, ("calls",),
           {"n": 1}),
    Kernel("product in 32 bits", "squares", elementwise(
        "if (i < n) y[i] = x[i] * x[i];", types="const int* x, long long* y", output="cp.empty(n, dtype=cp.int64)"),
        ("agreement",), {"n": 1}),
    Kernel("relu drops NaN", "relu", elementwise("if (i < n) y[i] = fmaxf(x[i], 0.f);"), ("special_values",), {"n": 1}),
    Kernel("infinity clamped", "scale", elementwise("if (i < n) y[i] = 2.f * fminf(fmaxf(x[i], -1e38f), 1e38f) + 1.f;"),
           ("special_values",), {"n": 1}),
    Kernel("sigmoid overflows", "sigmoid", elementwise("if (i < n) { float e = expf(x[i]); y[i] = e / (1.f + e); }"),
           ("agreement", "special_values"), {"n": 1}),
    Kernel("sum kept between calls", "total", elementwise(ATOMIC_TOTAL, output="fresh(n)", more=STATEFUL, result="y.copy()"),
           ("calls", "repeatable", "agreement"), {"n": 1}),
    Kernel("first block clears for all", "total", elementwise(FIRST_BLOCK_CLEARS, output="cp.empty(1, dtype=x.dtype)"),
           ("block_order",), {"n": 257}),
    Kernel("maximum into fresh memory", "row_max", rowwise(
        WARPS.replace("y[blockIdx.x] = best", "y[blockIdx.x] = fmaxf(y[blockIdx.x], best)")), ("memory", "special_values"),
        {"rows": 1, "cols": 1}),
    Kernel("scan without carry", "running_sum", elementwise(SCAN.replace("carry += part[255]", "carry = part[255]"), grid="1"),
           ("agreement",), {"n": 513}),
    Kernel("missing barrier", "row_sum", rowwise(TREE.replace("    __syncthreads();\n  }", "  }")), ("synchronisation",),
           {"rows": 1, "cols": 97}),
    Kernel("barrier inside a branch", "row_sum", rowwise(TREE.replace("partial[t] = sum;\n  __syncthreads();",
           "partial[t] = sum;\n  if (t < cols) __syncthreads();")), ("synchronisation",), {"rows": 1, "cols": 1}),
    Kernel("first warp only", "row_sum", rowwise(
        "float sum = 0.f;\n for (int c = t; c < cols; c += 128) sum += row[c];\n"
        "for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);\n if (t == 0) y[blockIdx.x] = sum;"),
        ("agreement",), {"rows": 1, "cols": 33}),
    Kernel("stale shared memory", "row_sum", rowwise(TREE.replace("partial[t] = sum;", "if (t < cols) partial[t] = sum;")),
           ("agreement", "synchronisation"), {"rows": 1, "cols": 1}),
    Kernel("short rows only", "row_sum", rowwise(TREE.replace("c < cols; c += 128", "c < min(cols, 1024); c += 128")),
           ("agreement",), {"rows": 1, "cols": 1025}),
    Kernel("half-precision sum", "row_sum", rowwise(TREE.replace("sum += row[c]", "sum += __half2float(__float2half(row[c]))"),
           before="\n#include <cuda_fp16.h>"), ("agreement",), {"rows": 1, "cols": 1}),
    Kernel("rows shared out by divisors", "row_sum", ROWS_SPLIT, ("written",), {"rows": 67, "cols": 1}),
    Kernel("last rows of eight left out", "row_sum", rowwise(TREE, grid="rows if rows < 8 else rows // 8 * 8"), ("written",),
           {"rows": 9, "cols": 1}),
    Kernel("maximum from zero", "row_max", rowwise(WARPS.replace(LOWEST, "0.f")), ("agreement",), {"rows": 1, "cols": 1}),
    Kernel("last of equals", "row_argmax", FINITE + rowwise(
        ARGMAX, types="const float* x, int* y", output="cp.empty(rows, dtype=np.int32)"), ("agreement",),
        {"rows": 1, "cols": 2}),
    Kernel("softmax without maximum", "softmax", rowwise(
        SOFTMAX.replace("best = partial[0];", "best = 0.f;"), output=EMPTY_LIKE), ("agreement", "special_values"),
        {"rows": 1, "cols": 1}),
    Kernel("variance by difference of squares", "normalise", rowwise(
        NORMALISE.replace("sum += (row[c] - mean) * (row[c] - mean)", "sum += row[c] * row[c]")
        .replace("partial[0] / cols + 1e-5f", "partial[0] / cols - mean * mean + 1e-5f"), output=EMPTY_LIKE),
        ("agreement", "special_values"), {"rows": 1, "cols": 2}),
    Kernel("transpose with the wrong stride", "transpose", TRANSPOSE.replace("long long)c * rows", "long long)c * cols"),
           ("bounds", "agreement", "written"), {"rows": 1, "cols": 2}),
    Kernel("bias by row", "bias", rowwise(
        "for (int c = t; c < cols; c += 128) y[(long long)blockIdx.x * cols + c] = row[c] + bias[blockIdx.x % cols];",
        types="const float* x, const float* bias, float* y", output=EMPTY_LIKE, entry="def run(x, bias):", call="x, bias, y"),
        ("agreement",), {"rows": 1, "cols": 2}),
    Kernel("matrix product, inner tail", "matmul", GEMM.replace("row < m && k0 + threadIdx.x < k ?", "row < m ?"),
           ("bounds", "agreement"), {"m": 1, "n": 1, "k": 1}),
    Kernel("matrix product, whole tiles of k", "matmul", GEMM.replace("k0 < k; k0 += T", "k0 + T <= k || k0 == 0; k0 += T"),
           ("agreement",), {"m": 1, "n": 1, "k": 17}),
    Kernel("matrix product, one barrier", "matmul", GEMM.replace("    __syncthreads();\n  }\n", "  }\n"), ("synchronisation",),
           {"m": 1, "n": 1, "k": 17}),
)
