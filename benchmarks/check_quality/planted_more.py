"""More kernels with one planted fault each, otherwise right, and the smallest sizes that show it."""

from __future__ import annotations

from benchmarks.check_quality import honest_more as right
from benchmarks.check_quality.kernels import FINITE, GEMM, SOFTMAX, TREE, WARPS, Kernel, elementwise, module, rowwise
from benchmarks.check_quality.sources import (
    ASYNC_GEMM,
    COLUMNS,
    HISTOGRAM,
    LAST_BLOCK,
    PRODUCERS,
    SPLIT_K,
    STENCIL,
    TENSOR_GEMM,
    TORCH_LINEAR,
    TWO_STAGES,
)

GOOD = "if (i < n) y[i] = 2.f * x[i] + 1.f;"
OFFSET = 'SUPPORTS = {"layouts": ["contiguous", "offset"]}\n'
EMPTY_LIKE = "cp.empty_like(x)"
FIRST_LAUNCH = elementwise(GOOD).replace("def run(x):\n", "GRID = []\n\n\ndef run(x):\n").replace(
    "    kernel(((n + 255) // 256,)", "    if not GRID:\n        GRID.append((n + 255) // 256)\n    kernel((GRID[0],)")
ONE_OUTPUT = elementwise(GOOD).replace("def run(x):\n", "OUTPUT = []\n\n\ndef run(x):\n").replace(
    "    y = cp.empty_like(x)\n", "    if not OUTPUT or OUTPUT[0].size < n:\n        OUTPUT[:] = [cp.empty_like(x)]\n"
    "    y = OUTPUT[0][:n]\n")
BLOCK_TOTALS = module("""
extern "C" __global__ void kernel(const float* x, float* y, int n) {
  __shared__ float sums[256];
  int t = threadIdx.x, from = blockIdx.x * 1024, to = min(n, from + 1024);
  float sum = 0.f;
  for (int i = from + t; i < to; i += 256) sum += x[i];
  sums[t] = sum;
  __syncthreads();
  for (int step = 128; step > 0; step >>= 1) {
    if (t < step) sums[t] += sums[t + step];
    __syncthreads();
  }
  if (t == 0) atomicAdd(y, sums[0]);
}
""", """
def run(x):
    y = cp.zeros(1, dtype=x.dtype)
    kernel(((x.size + 1023) // 1024,), (256,), (x, y, np.int32(x.size)))
    return y
""")
FLAT_BIAS = module("""
extern "C" __global__ void kernel(const float* x, const float* bias, float* y, int count, int cols) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= count) return;
  int row = (int)((float)i * __frcp_rn((float)cols));
  y[i] = x[i] + bias[i - row * cols];
}
""", """
def run(x, bias):
    y = cp.empty_like(x)
    kernel(((x.size + 255) // 256,), (256,), (x, bias, y, np.int32(x.size), np.int32(x.shape[1])))
    return y
""")
TALL = module("""
extern "C" __global__ void kernel(const float* x, float* y, int cols) {
  const float* row = x + (long long)blockIdx.y * cols;
  for (int c = threadIdx.x; c < cols; c += 64) y[(long long)blockIdx.y * cols + c] = fmaxf(row[c], 0.f) + fminf(row[c], 0.f);
}
""", """
def run(x):
    y = cp.empty_like(x)
    kernel((1, x.shape[0]), (64,), (x, y, np.int32(x.shape[1])))
    return y
""")
PACKED = module("""
extern "C" __global__ void pack(const float* b, float* bt, int n, int k) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n * k) bt[(long long)(i % n) * k + i / n] = b[i];
}
extern "C" __global__ void kernel(const float* a, const float* bt, float* c, int m, int n, int k) {
  int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  if (row >= m || col >= n) return;
  float sum = 0.f;
  for (int i = 0; i < k; ++i) sum += a[(long long)row * k + i] * bt[(long long)col * k + i];
  c[(long long)row * n + col] = sum;
}
""", """
PACKED = {}


def run(a, b):
    (m, k), n = a.shape, b.shape[1]
    if (n, k) not in PACKED:
        PACKED[n, k] = cp.empty((n, k), dtype=b.dtype)
        pack(((n * k + 127) // 128,), (128,), (b, PACKED[n, k], np.int32(n), np.int32(k)))
    c = cp.empty((m, n), dtype=a.dtype)
    grid = ((n + 15) // 16, (m + 15) // 16)
    kernel(grid, (16, 16), (a, PACKED[n, k], c, np.int32(m), np.int32(n), np.int32(k)))
    return c
""", kernels=("pack", "kernel"))
KEPT_WEIGHTS = TORCH_LINEAR
for old, new in (
    ("if self.version != (w.data_ptr(), w._version):", "if not PACKED:"), ("self.packed.data_ptr()", "PACKED[0].data_ptr()"),
    ("self.packed = torch.empty((inner, out), device=x.device, dtype=x.dtype)",
     "PACKED.append(torch.empty((inner, out), device=x.device, dtype=x.dtype))"),
    ("            self.version = (w.data_ptr(), w._version)\n", ""), ("class ModelNew", "PACKED = []\n\n\nclass ModelNew"),
):
    KEPT_WEIGHTS = KEPT_WEIGHTS.replace(old, new)
TREE96 = TREE.replace("[128]", "[96]").replace("c += 128", "c += 96").replace("step = 64", "step = 48")
NARROW = TREE.replace("int step = 64", "int step = blockDim.x / 2").replace("c += 128", "c += blockDim.x")
LAST_WARP = TREE.replace("step > 0", "step > 32").replace("  if (t == 0) y[blockIdx.x] = partial[0];", """  if (t < 32) {
    float v = partial[t] + partial[t + 32];
    if (t < cols) for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    if (t == 0) y[blockIdx.x] = v;
  }""")
MORE_PLANTED = (
    # tails and vector accesses
    Kernel("odd half dropped", "half_scale", elementwise(
        right.HALVES.split(" else if")[0], types="const __half* x, __half* y", before=right.WHOLE, grid="(n + 511) // 512"),
        ("written",), {"n": 1}),
    Kernel("vectors on a misaligned view", "scale", OFFSET + elementwise(
        "int j = 4 * i;\n  if (j + 3 < n) { float4 v = reinterpret_cast<const float4*>(x)[i];\n"
        "    y[j] = 2.f * v.x + 1.f; y[j + 1] = 2.f * v.y + 1.f; y[j + 2] = 2.f * v.z + 1.f; y[j + 3] = 2.f * v.w + 1.f;\n"
        "  } else for (int k = j; k < min(j + 4, n); ++k) y[k] = 2.f * x[k] + 1.f;"), ("layouts",), {"n": 4}),
    Kernel("rows by fours whatever their length", "row_sum", rowwise(right.REDUCED.replace(
        "{body}", right.VECTOR_ROWS.replace("cols % 4 == 0 && (reinter", "cols >= 4 && (reinter"))),
        ("agreement", "bounds"), {"rows": 1, "cols": 5}),
    Kernel("unroll without a check", "axpy", elementwise(
        right.UNROLLED.replace("if (i < n) y[i] =", "if (i < n || u == 3) y[i] ="),
        types="const float* x, const float* y2, float* y", grid="(n + 1023) // 1024")
        .replace("def run(x):", "def run(x, y2):").replace("(x, y, np", "(x, y2, y, np"), ("bounds",), {"n": 1}),
    # grids and strides
    Kernel("grid stride one too long", "scale", elementwise(
        "for (; i < n; i += gridDim.x * blockDim.x + 1) y[i] = 2.f * x[i] + 1.f;", grid="2"), ("written",), {"n": 513}),
    Kernel("first element of the next block counted twice", "total", BLOCK_TOTALS.replace("min(n, from + 1024)",
           "min(n, from + 1025)"), ("agreement",), {"n": 1025}),
    Kernel("rows on the second axis of the grid", "row_scale", TALL.replace("const float* x, float* y", "const float* x, "
           "const float* s, float* y").replace("fmaxf(row[c], 0.f) + fminf(row[c], 0.f)", "row[c] * s[blockIdx.y]").replace(
           "def run(x)", "def run(x, s)").replace("(x, y, np", "(x, s, y, np"), ("runs",), {"rows": 65536, "cols": 1}),
    Kernel("launch kept from the first shape", "scale", FIRST_LAUNCH, ("calls", "written"), {"n": 257}),
    Kernel("dynamic shared memory for short rows", "matvec", right.MATVEC.split("\n", 1)[1].replace(
        "shared_mem=4 * cols", "shared_mem=4 * min(cols, 128)"), ("bounds",), {"rows": 1, "cols": 129}),
    # indices
    Kernel("index in sixteen bits", "scale", elementwise("short j = i; if (i < n) y[j] = 2.f * x[j] + 1.f;"), ("bounds",),
           {"n": 32769}),
    Kernel("row offset in sixteen bits", "row_sum", rowwise(TREE.replace(
        "  float sum = 0.f;", "  row = x + (unsigned short)(blockIdx.x * cols);\n  float sum = 0.f;")), ("agreement",),
        {"rows": 65537, "cols": 1}),
    Kernel("row by a rounded reciprocal", "bias", FLAT_BIAS, ("bounds", "agreement"), {"rows": 2, "cols": 41}),
    Kernel("store index transposed", "matmul", GEMM.replace(
        "c[(long long)row * n + col] = sum", "c[(long long)col * m + row] = sum"), ("agreement",), {"m": 2, "n": 2, "k": 1}),
    Kernel("pair count rounded up", "pairs", right.PAIRS.replace("half = cols / 2", "half = (cols + 1) / 2"),
           ("agreement", "bounds", "written"), {"rows": 2, "cols": 3}),
    Kernel("stencil reads past the end", "stencil", STENCIL.replace("i + 1 < n ? x[i + 1] : 0.f", "x[i + 1]"), ("bounds",),
           {"n": 1}),
    Kernel("stencil without the right halo", "stencil", STENCIL.replace(
        "  if (threadIdx.x == 127) tile[129] = i + 1 < n ? x[i + 1] : 0.f;\n", "  if (threadIdx.x == 127) tile[129] = 0.f;\n"),
        ("agreement",), {"n": 129}),
    Kernel("index of the wrong width", "gather", right.GATHER.replace("const int* index", "const long long* index"),
           ("bounds", "runs"), {"rows": 1, "cols": 1}),
    # wrong broadcast and swapped operands
    Kernel("row factor by column", "row_scale", rowwise(
        "for (int c = t; c < cols; c += 128) y[(long long)blockIdx.x * cols + c] = row[c] * s[c % gridDim.x];",
        types="const float* x, const float* s, float* y", output=EMPTY_LIKE, entry="def run(x, s):", call="x, s, y"),
        ("agreement",), {"rows": 2, "cols": 1}),
    Kernel("seam of a concatenation", "concat", right.CONCAT.replace("i < nx ? x[i]", "i <= nx - 2 ? x[i]").replace(
        "y[i - nx]", "y[max(i - nx, 0)]"), ("agreement",), {"n": 1}),
    # identities and special values
    Kernel("maximum from the least normal number", "row_max", rowwise(WARPS.replace(
        "-__int_as_float(0x7f800000)", "1.175494351e-38f")), ("agreement",), {"rows": 1, "cols": 1}),
    Kernel("maximum drops NaN", "row_max", rowwise(WARPS.replace("row[c] > best || row[c] != row[c]", "row[c] > best")),
           ("special_values",), {"rows": 1, "cols": 1}),
    Kernel("second result starts from zero", "sum_and_max", right.TWO_RESULTS.replace("top = row[0]", "top = 0.f"),
           ("agreement",), {"rows": 1, "cols": 1}),
    Kernel("reciprocal of negative zero", "reciprocal", elementwise(
        "if (i < n) y[i] = x[i] == 0.f ? __int_as_float(0x7f800000) : 1.f / x[i];"), ("special_values",), {"n": 1}),
    Kernel("ties by arrival", "row_argmax", FINITE + rowwise(right.ARGMAX.replace(
        "(other == best && there < at)", "(other == best && there < at && o < 16)"), **right.ARGMAX_CALL), ("agreement",),
        {"rows": 1, "cols": 33}),
    Kernel("logarithm of an overflowing sum", "log_sum_exp", FINITE + rowwise(right.LOG_SUM.replace(
        "expf(row[c] - best)", "expf(row[c])").replace("logf(sum) + best", "logf(sum)"), threads=32), ("agreement",),
        {"rows": 1, "cols": 1}),
    # precision
    Kernel("sum in halves", "half_row_sum", rowwise(
        "  if (t == 0) {\n    __half sum = 0.f;\n    for (int c = 0; c < cols; ++c) sum = __hadd(sum, row[c]);\n"
        "    y[blockIdx.x] = __half2float(sum);\n  }", types="const __half* x, float* y", before=right.WHOLE, threads=32,
        output="cp.empty(rows, dtype=cp.float32)").replace("const float* row", "const __half* row"),
        ("agreement", "special_values"), {"rows": 1, "cols": 2}),
    Kernel("epsilon outside the root", "rms_norm", rowwise(right.RMS.replace(
        "rsqrtf(sum / cols + 1e-6f)", "1.f / (sqrtf(sum / cols) + 1e-6f)"), **right.RMS_CALL), ("agreement",),
        {"rows": 1, "cols": 1}),
    Kernel("sample variance", "layer_norm", FINITE + rowwise(right.WELFORD.replace("m2 / cols", "m2 / max(cols - 1, 1)"),
           **right.NORM), ("agreement",), {"rows": 1, "cols": 2}),
    Kernel("tensor cores where single precision is asked", "matmul", TENSOR_GEMM, ("agreement",), {"m": 1, "n": 1, "k": 1}),
    # memory that was never written, or is written by others
    Kernel("atomics into fresh memory", "row_sum", rowwise(
        "for (int c = t; c < cols; c += 128) atomicAdd(&y[blockIdx.x], row[c]);"), ("agreement", "memory", "written"),
        {"rows": 1, "cols": 1}),
    Kernel("workspace longer than what is written", "total", TWO_STAGES.replace("y, np.int32(blocks)", "y, np.int32(64)"),
           ("agreement", "memory"), {"n": 1}),
    Kernel("split accumulates into fresh memory", "matmul", SPLIT_K.replace("cp.zeros((m, n)", "cp.empty((m, n)"),
           ("agreement", "memory", "written"), {"m": 1, "n": 1, "k": 1}),
    Kernel("stale tile of the inner tail", "matmul", GEMM.replace(
        "    as[threadIdx.y][threadIdx.x] = row < m && k0 + threadIdx.x < k ? a[(long long)row * k + k0 + threadIdx.x] : 0.f;",
        "    if (row < m && k0 + threadIdx.x < k) as[threadIdx.y][threadIdx.x] = a[(long long)row * k + k0 + threadIdx.x];"),
        ("agreement", "synchronisation"), {"m": 1, "n": 1, "k": 1}),
    Kernel("in place where the reference is not", "relu", right.IN_PLACE, ("inputs",), {"n": 1}),
    # state between calls
    Kernel("ticket not taken back", "total", LAST_BLOCK.replace("    *ticket = 0;\n", ""), ("calls",), {"n": 1}),
    Kernel("packed operand kept by shape", "matmul", PACKED, ("calls",), {"m": 1, "n": 1, "k": 1}),
    Kernel("one output for all calls", "scale", ONE_OUTPUT, ("calls",), {"n": 1}),
    Kernel("packed weights kept for ever", "linear", KEPT_WEIGHTS, ("calls", "bounds"), {"batch": 1, "features": 1}),
    # threads that must wait for each other
    Kernel("asynchronous copy not waited for", "matmul", ASYNC_GEMM.replace("wait_group 0", "wait_group 1"),
           ("agreement", "synchronisation"), {"m": 1, "n": 1, "k": 1}),
    Kernel("asynchronous copy without a barrier", "matmul", ASYNC_GEMM.replace(
        "    __syncthreads();\n    for (int i = 0", "    for (int i = 0"), ("agreement", "synchronisation"),
        {"m": 1, "n": 1, "k": 1}),
    Kernel("slot filled while it is read", "row_sum", PRODUCERS.replace(
        '        if (chunk >= 2) BARRIER("sync", "3", "4");\n', "").replace(
        '        if (chunk + 2 < chunks) BARRIER("arrive", "3", "4");\n', ""),
        ("synchronisation", "agreement"), {"rows": 1, "cols": 129}),
    Kernel("histogram without atomics", "histogram", HISTOGRAM.replace("atomicAdd(&bins[x[i]], 1)", "bins[x[i]]++"),
           ("synchronisation", "agreement"), {"n": 2}),
    Kernel("histogram bins read too early", "histogram", HISTOGRAM.replace(
        "  __syncthreads();\n  if (threadIdx.x < 16) atomicAdd(&y", "  if (threadIdx.x < 16) atomicAdd(&y"),
        ("synchronisation", "agreement"), {"n": 33}),
    Kernel("column sums without a barrier", "col_sum", COLUMNS.replace("  __syncthreads();\n", ""), ("synchronisation",),
           {"rows": 1, "cols": 1}),
    Kernel("total without atomics", "total", BLOCK_TOTALS.replace("atomicAdd(y, sums[0])", "y[0] += sums[0]"),
           ("block_order", "agreement"), {"n": 1025}),
    Kernel("last block reads without a ticket", "total", TWO_STAGES.replace(
        "part[blockIdx.x] = sum;", "part[blockIdx.x] = sum;\n    if (blockIdx.x == gridDim.x - 1) {\n      sum = 0.f;\n"
        "      for (int b = 0; b < gridDim.x; ++b) sum += part[b];\n      y[0] = sum;\n    }")
           .replace("float* part, int n) {\n  __shared__", "float* part, float* y, int n) {\n  __shared__")
           .replace("(x, part, np", "(x, part, y, np").replace("    finish((1,), (32,), (part, y, np.int32(blocks)))\n", ""),
           ("block_order",), {"n": 257}),
    # sizes of a warp and of a block
    Kernel("tree of ninety-six threads", "row_sum", rowwise(TREE96, threads=96), ("agreement",), {"rows": 1, "cols": 3}),
    Kernel("tree as wide as the row", "row_sum", rowwise(NARROW, threads="min(max(cols, 1), 128)"), ("agreement", "written"),
           {"rows": 1, "cols": 3}),
    Kernel("shuffle of a part of the warp", "row_sum", rowwise(LAST_WARP), ("synchronisation", "agreement"),
           {"rows": 1, "cols": 1}),
    Kernel("softmax of the first warp's sum", "softmax", rowwise(SOFTMAX.replace(
        "  sum = partial[0];", "  sum = partial[0];").replace("for (int step = 64; step > 0; step >>= 1) {\n    if (t < step) "
        "partial[t] += partial", "for (int step = 16; step > 0; step >>= 1) {\n    if (t < step) partial[t] += partial"),
        output=EMPTY_LIKE), ("agreement",), {"rows": 1, "cols": 33}),
)
