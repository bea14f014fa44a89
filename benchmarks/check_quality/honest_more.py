"""More right kernels, the tricky ones among them: none may be blamed."""

from __future__ import annotations

from benchmarks.check_quality.kernels import FINITE, GEMM, SCAN, TREE, Kernel, elementwise, module, rowwise
from benchmarks.check_quality.sources import (
    ASYNC_GEMM,
    COLUMNS,
    HISTOGRAM,
    LAST_BLOCK,
    PRODUCERS,
    SPLIT_K,
    STENCIL,
    TORCH_LINEAR,
    TWO_STAGES,
)

EMPTY_LIKE = "cp.empty_like(x)"
OFFSET = 'SUPPORTS = {"layouts": ["contiguous", "offset"]}\n'
WHOLE = "#include <cuda_fp16.h>\n"
HALVES = """int j = 2 * i;
  if (j + 1 < n) {
    __half2 v = reinterpret_cast<const __half2*>(x)[i];
    reinterpret_cast<__half2*>(y)[i] = __hfma2(__float2half2_rn(2.f), v, __float2half2_rn(1.f));
  } else if (j < n) {
    y[j] = __hfma(__float2half(2.f), x[j], __float2half(1.f));
  }"""
UNROLLED = """i = blockIdx.x * 1024 + threadIdx.x;
  #pragma unroll
  for (int u = 0; u < 4; ++u, i += 256) if (i < n) y[i] = 3.f * x[i] + y2[i];"""
ROWS_BY_WARP = """
  int r = blockIdx.x * 4 + t / 32, lane = t % 32;
  if (r >= rows) return;
  const float* mine = x + (long long)r * cols;
  float sum = 0.f;
  for (int c = lane; c < cols; c += 32) sum += mine[c];
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (lane == 0) y[r] = sum;
"""
VECTOR_ROWS = """  if (cols % 4 == 0 && (reinterpret_cast<unsigned long long>(x) & 15) == 0) {
    for (int c = t; c < cols / 4; c += 128) {
      float4 v = __ldg(reinterpret_cast<const float4*>(row) + c);
      sum += (v.x + v.y) + (v.z + v.w);
    }
  } else {
    for (int c = t; c < cols; c += 128) sum += row[c];
  }
"""
REDUCED = TREE.split("for (int c = t")[0] + "{body}" + TREE.split("sum += row[c];\n", 1)[1]
WELFORD = """
  float mean = 0.f, m2 = 0.f;
  int count = 0;
  for (int c = t; c < cols; c += 32) {
    float v = row[c], before = v - mean;
    mean += before / ++count;
    m2 += before * (v - mean);
  }
  for (int o = 16; o > 0; o >>= 1) {
    float other = __shfl_xor_sync(0xffffffffu, mean, o), other_m2 = __shfl_xor_sync(0xffffffffu, m2, o);
    int others = __shfl_xor_sync(0xffffffffu, count, o), all = count + others;
    if (all > 0) {
      float d = other - mean;
      float mine = (float)count / all, theirs = (float)others / all;
      m2 += other_m2 + d * d * count * theirs;
      mean = mean * mine + other * theirs;
    }
    count = all;
  }
  float scale = rsqrtf(m2 / cols + 1e-5f);
  for (int c = t; c < cols; c += 32) y[(long long)blockIdx.x * cols + c] = (row[c] - mean) * scale * gain[c] + bias[c];
"""
NORM = {"types": "const float* x, const float* gain, const float* bias, float* y", "output": EMPTY_LIKE, "threads": 32,
        "entry": "def run(x, gain, bias):", "call": "x, gain, bias, y"}
RMS = """
  __shared__ float sums[4];
  float sum = 0.f;
  for (int c = t; c < cols; c += 128) sum += row[c] * row[c];
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
  if (t % 32 == 0) sums[t / 32] = sum;
  __syncthreads();
  sum = sums[0] + sums[1] + sums[2] + sums[3];
  float scale = rsqrtf(sum / cols + 1e-6f);
  for (int c = t; c < cols; c += 128) y[(long long)blockIdx.x * cols + c] = row[c] * scale * gain[c];
"""
RMS_CALL = {"types": "const float* x, const float* gain, float* y", "output": EMPTY_LIKE, "entry": "def run(x, gain):",
            "call": "x, gain, y"}
LOG_SUM = """
  float best = -__int_as_float(0x7f800000);
  for (int c = t; c < cols; c += 32) best = fmaxf(best, row[c]);
  for (int o = 16; o > 0; o >>= 1) best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, o));
  float sum = 0.f;
  for (int c = t; c < cols; c += 32) sum += expf(row[c] - best);
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (t == 0) y[blockIdx.x] = logf(sum) + best;
"""
ARGMAX = """
  float best = -__int_as_float(0x7f800000);
  int at = 0x7fffffff;
  for (int c = t; c < cols; c += 32) if (row[c] > best || at == 0x7fffffff) { best = row[c]; at = c; }
  for (int o = 16; o > 0; o >>= 1) {
    float other = __shfl_down_sync(0xffffffffu, best, o);
    int there = __shfl_down_sync(0xffffffffu, at, o);
    if (other > best || (other == best && there < at)) { best = other; at = there; }
  }
  if (t == 0) y[blockIdx.x] = at;
"""
ARGMAX_CALL = {"types": "const float* x, int* y", "output": "cp.empty(rows, dtype=np.int32)", "threads": 32}
ROW_SCAN = """
  __shared__ float warps[4];
  float carry = 0.f;
  for (int base = 0; base < cols; base += 128) {
    int c = base + t, lane = t % 32;
    float v = c < cols ? row[c] : 0.f;
    for (int o = 1; o < 32; o <<= 1) {
      float left = __shfl_up_sync(0xffffffffu, v, o);
      if (lane >= o) v += left;
    }
    if (lane == 31) warps[t / 32] = v;
    __syncthreads();
    float before = carry;
    for (int w = 0; w < t / 32; ++w) before += warps[w];
    if (c < cols) y[(long long)blockIdx.x * cols + c] = v + before;
    carry += warps[0] + warps[1] + warps[2] + warps[3];
    __syncthreads();
  }
"""
KAHAN = """
  float sum = 0.f, lost = 0.f;
  if (t == 0) {
    for (int c = 0; c < cols; ++c) {
      float v = __fsub_rn(row[c], lost), next = __fadd_rn(sum, v);
      lost = __fsub_rn(__fsub_rn(next, sum), v);
      sum = next;
    }
    y[blockIdx.x] = sum;
  }
"""
TWO_RESULTS = module("""
extern "C" __global__ void kernel(const float* x, float* sums, float* tops, int cols) {
  const float* row = x + (long long)blockIdx.x * cols;
  float sum = 0.f, top = row[0];
  for (int c = threadIdx.x; c < cols; c += 32) {
    sum += row[c];
    top = row[c] > top || row[c] != row[c] ? row[c] : top;
  }
  for (int o = 16; o > 0; o >>= 1) {
    sum += __shfl_xor_sync(0xffffffffu, sum, o);
    float other = __shfl_xor_sync(0xffffffffu, top, o);
    top = other > top || other != other ? other : top;
  }
  if (threadIdx.x == 0) { sums[blockIdx.x] = sum; tops[blockIdx.x] = top; }
}
""", """
def run(x):
    rows, cols = x.shape
    sums, tops = cp.empty(rows, dtype=x.dtype), cp.empty(rows, dtype=x.dtype)
    kernel((rows,), (32,), (x, sums, tops, np.int32(cols)))
    return sums, tops
""")
DOT = module("""
extern "C" __global__ void kernel(const float* x, const float* y, float* out, int n) {
  float sum = 0.f;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum = fmaf(x[i], y[i], sum);
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}
""", """
def run(x, y):
    out = cp.zeros(1, dtype=x.dtype)
    kernel((min((x.size + 255) // 256, 16),), (256,), (x, y, out, np.int32(x.size)))
    return out
""")
CONCAT = module("""
extern "C" __global__ void kernel(const float* x, const float* y, float* out, int nx, int ny) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < nx + ny) out[i] = i < nx ? x[i] : y[i - nx];
}
""", """
def run(x, y):
    out = cp.empty(x.size + y.size, dtype=x.dtype)
    kernel(((out.size + 127) // 128,), (128,), (x, y, out, np.int32(x.size), np.int32(y.size)))
    return out
""")
GATHER = module("""
extern "C" __global__ void kernel(const float* x, const int* index, float* y, int cols) {
  const float* from = x + (long long)index[blockIdx.x] * cols;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) y[(long long)blockIdx.x * cols + c] = from[c];
}
""", """
def run(x, index):
    y = cp.empty_like(x)
    kernel((x.shape[0],), (64,), (x, index, y, np.int32(x.shape[1])))
    return y
""")
PAIRS = module("""
extern "C" __global__ void kernel(const float* x, float* y, int rows, int cols) {
  int half = cols / 2, i = blockIdx.x * 128 + threadIdx.x;
  if (i >= rows * half) return;
  const float* from = x + (long long)(i / half) * cols + 2 * (i % half);
  y[i] = 0.5f * (from[0] + from[1]);
}
""", """
def run(x):
    rows, cols = x.shape
    y = cp.empty((rows, cols // 2), dtype=x.dtype)
    kernel(((y.size + 127) // 128,), (128,), (x, y, np.int32(rows), np.int32(cols)))
    return y
""")
PERSISTENT = module("""
extern "C" __global__ void kernel(const float* x, float* y, int* next, int n) {
  __shared__ int tile;
  while (true) {
    if (threadIdx.x == 0) tile = atomicAdd(next, 1);
    __syncthreads();
    int mine = tile;
    __syncthreads();
    if (mine * 256 >= n) return;
    int i = mine * 256 + threadIdx.x;
    if (i < n) y[i] = 2.f * x[i] + 1.f;
  }
}
""", """
def run(x):
    y, ticket = cp.empty_like(x), cp.zeros(1, dtype=np.int32)
    kernel((8,), (256,), (x, y, ticket, np.int32(x.size)))
    return y
""")
IN_PLACE = module("""
extern "C" __global__ void kernel(float* x, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n && x[i] < 0.f) x[i] = 0.f;
}
""", """
def run(x):
    kernel(((x.size + 255) // 256,), (256,), (x, np.int32(x.size)))
    return x
""")
MATVEC = rowwise("""
  extern __shared__ float stage[];
  for (int c = t; c < cols; c += 128) stage[c] = row[c] * v[c];
  __syncthreads();
  if (t < 32) {
    float sum = 0.f;
    for (int c = t; c < cols; c += 32) sum += stage[c];
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (t == 0) y[blockIdx.x] = sum;
  }
""", types="const float* x, const float* v, float* y", entry="def run(x, v):", call="x, v, y").replace(
    "np.int32(cols)))", "np.int32(cols)), shared_mem=4 * cols)")
MATVEC = 'SUPPORTS = {"sizes": {"cols": {"max": 12288}}}\n' + MATVEC
TRANSPOSE_32 = module("""
extern "C" __global__ void kernel(const float* x, float* y, int rows, int cols) {
  __shared__ float tile[32][33];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (r + j < rows && c < cols) tile[threadIdx.y + j][threadIdx.x] = x[(long long)(r + j) * cols + c];
  __syncthreads();
  r = blockIdx.y * 32 + threadIdx.x;
  c = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (r < rows && c + j < cols) y[(long long)(c + j) * rows + r] = tile[threadIdx.x][threadIdx.y + j];
}
""", """
def run(x):
    rows, cols = x.shape
    y = cp.empty((cols, rows), dtype=x.dtype)
    kernel(((cols + 31) // 32, (rows + 31) // 32), (32, 8), (x, y, np.int32(rows), np.int32(cols)))
    return y
""")
SIDE_STREAM = elementwise("if (i < n) y[i] = 2.f * x[i] + 1.f;").replace("    kernel((", '''\
    here, side = cp.cuda.get_current_stream(), cp.cuda.Stream(non_blocking=True)
    ready, done = cp.cuda.Event(), cp.cuda.Event()
    ready.record(here)
    with side:
        side.wait_event(ready)
        launch(x, y, n)
        done.record(side)
    here.wait_event(done)
    return y


def launch(x, y, n):
    kernel((''').replace("np.int32(n)))\n    return y", "np.int32(n)))")
MORE_HONEST = (
    Kernel("pairs of halves with tail", "half_scale", elementwise(
        HALVES, types="const __half* x, __half* y", before=WHOLE, grid="(n + 511) // 512")),
    Kernel("unrolled by four", "axpy", elementwise(
        UNROLLED, types="const float* x, const float* y2, float* y", grid="(n + 1023) // 1024")
        .replace("def run(x):", "def run(x, y2):").replace("(x, y, np", "(x, y2, y, np")),
    Kernel("persistent blocks with a ticket", "scale", PERSISTENT),
    Kernel("sum in two kernels", "total", TWO_STAGES),
    Kernel("sum finished by the last block", "total", LAST_BLOCK),
    Kernel("scan in one block, declared finite", "running_sum", FINITE + elementwise(SCAN, grid="1")),
    Kernel("a warp a row", "row_sum", rowwise(ROWS_BY_WARP, grid="(rows + 3) // 4", arguments="np.int32(rows), np.int32(cols)",
                                              parameters="int rows, int cols")),
    Kernel("rows by fours where they fit", "row_sum", OFFSET + rowwise(REDUCED.replace("{body}", VECTOR_ROWS))),
    Kernel("compensated sum", "row_sum", FINITE + rowwise(KAHAN, threads=32)),
    Kernel("row sum by atomics", "row_sum", rowwise(
        "for (int c = t; c < cols; c += 128) atomicAdd(&y[blockIdx.x], row[c]);", output="cp.zeros(rows, dtype=x.dtype)")),
    Kernel("sum of halves in single precision", "half_row_sum", rowwise(
        TREE.replace("sum += row[c]", "sum += __half2float(row[c])"), types="const __half* x, float* y", before=WHOLE,
        output="cp.empty(rows, dtype=cp.float32)").replace("const float* row", "const __half* row")),
    Kernel("Welford's normalisation", "layer_norm", FINITE + rowwise(WELFORD, **NORM)),
    Kernel("root mean square norm", "rms_norm", rowwise(RMS, **RMS_CALL)),
    Kernel("log of a sum of exponentials", "log_sum_exp", FINITE + rowwise(LOG_SUM, threads=32)),
    Kernel("argmax with ties broken", "row_argmax", FINITE + rowwise(ARGMAX, **ARGMAX_CALL)),
    Kernel("running sum of rows", "row_cumsum", FINITE + rowwise(ROW_SCAN, output=EMPTY_LIKE)),
    Kernel("sum and maximum", "sum_and_max", TWO_RESULTS),
    Kernel("dot product by atomics", "dot", DOT),
    Kernel("histogram in shared memory", "histogram", HISTOGRAM),
    Kernel("stencil with a halo", "stencil", STENCIL),
    Kernel("column sums", "col_sum", COLUMNS),
    Kernel("concatenation", "concat", CONCAT),
    Kernel("gathered rows", "gather", GATHER),
    Kernel("means of pairs", "pairs", PAIRS),
    Kernel("reversal", "reverse", elementwise("if (i < n) y[n - 1 - i] = x[i];")),
    Kernel("reciprocal", "reciprocal", elementwise("if (i < n) y[i] = 1.f / x[i];")),
    Kernel("gelu by tanh", "gelu", elementwise(
        "if (i < n) { float v = x[i]; y[i] = 0.5f * v * (1.f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v))); }")),
    Kernel("lower triangle", "lower", rowwise(
        "for (int c = t; c < cols; c += 128) y[(long long)blockIdx.x * cols + c] = c <= blockIdx.x ? row[c] : 0.f;",
        output=EMPTY_LIKE)),
    Kernel("scaled rows", "row_scale", rowwise(
        "float f = s[blockIdx.x];\n  for (int c = t; c < cols; c += 128) y[(long long)blockIdx.x * cols + c] = row[c] * f;",
        types="const float* x, const float* s, float* y", output=EMPTY_LIKE, entry="def run(x, s):", call="x, s, y")),
    Kernel("in place, as the reference does", "clip", IN_PLACE),
    Kernel("products in dynamic shared memory", "matvec", MATVEC),
    Kernel("own stream, joined", "scale", SIDE_STREAM),
    Kernel("multiples of four declared", "scale", 'SUPPORTS = {"sizes": {"n": {"multiple_of": 4}}}\n' + elementwise(
        "if (i < n / 4) { float4 v = reinterpret_cast<const float4*>(x)[i]; v.x = 2.f * v.x + 1.f; v.y = 2.f * v.y + 1.f;\n"
        "    v.z = 2.f * v.z + 1.f; v.w = 2.f * v.w + 1.f; reinterpret_cast<float4*>(y)[i] = v; }")),
    Kernel("transpose by 32 x 8", "transpose", TRANSPOSE_32),
    Kernel("matrix product, asynchronous copies", "matmul", ASYNC_GEMM),
    Kernel("matrix product, inner dimension split", "matmul", SPLIT_K),
    Kernel("matrix product, tiles of eight", "matmul", GEMM.replace("#define T 16", "#define T 8").replace(
        "(n + 15) // 16, (m + 15) // 16), (16, 16)", "(n + 7) // 8, (m + 7) // 8), (8, 8)")),
    Kernel("producer and consumer warps", "row_sum", PRODUCERS),
    Kernel("layer with packed weights kept", "linear", TORCH_LINEAR),
)
