// Small kernels and the facts that their text shows. A case begins with `// case`; then come its settings and expected facts,
// one `name: value` each (`absent`: there must be no such fact), then its CUDA text.

// case thread a row
// block = 64 1 1
// family = row_reduction
// reduction_style: serial; reduction_loop: true; threads_per_row: 1; loop_stride_columns: true; input_passes: 1;
// elements_per_thread: 1; register_tile_elements: 1; uses_online_reduction: false;
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float s = 0.0f;
    for (int c = 0; c < cols; ++c) s += x[(long long)r * cols + c];
    y[r] = s;
}

// case block a row with a tree
// family = row_reduction
// reduction_style: shared_tree; threads_per_row: 256; barrier_in_loop: true; input_passes: 1;
// elements_per_thread: absent; loop_stride_columns: false;
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
    __shared__ float s[256];
    int t = threadIdx.x;
    float v = 0.0f;
    const float* in = x + blockIdx.x * (size_t)cols;
    for (int c = t; c < cols; c += 256) v += in[c];
    s[t] = v;
    __syncthreads();
    for (int o = 128; o; o >>= 1) {
        if (t < o) s[t] += s[t + o];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}

// case warp a row
// family = row_reduction
// reduction_style: warp_shuffle; uses_warp_shuffle: true; threads_per_row: 32;
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    float v = 0.0f;
    for (int c = lane; c < cols; c += 32) v += x[r * cols + c];
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    if (lane == 0) y[r] = v;
}

// case warp a row in two dimensions
// block = 32 4 1
// family = row_reduction
// threads_per_row: 32; loop_stride_columns: false;
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
    int r = blockIdx.x * blockDim.y + threadIdx.y;
    float v = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 32) v += x[r * cols + c];
    v += __shfl_down_sync(~0u, v, 16);
    y[r] = v;
}

// case three passes
// family = row_reduction
// input_passes: 3; uses_online_reduction: false; uses_transcendental: true;
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
    const float* p = x + blockIdx.x * cols;
    float m = -1e30f, s = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) m = fmaxf(m, p[c]);
    for (int c = threadIdx.x; c < cols; c += 256) s += expf(p[c] - m);
    for (int c = threadIdx.x; c < cols; c += 256) y[blockIdx.x * cols + c] = expf(p[c] - m) / s;
}

// case online softmax
// family = row_reduction
// input_passes: 2; uses_online_reduction: true;
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
    const float* p = x + blockIdx.x * cols;
    float m = -1e30f, z = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) {
        float v = p[c], t = fmaxf(m, v);
        z = z * expf(m - t) + expf(v - t);
        m = t;
    }
    for (int c = threadIdx.x; c < cols; c += 256) y[blockIdx.x * cols + c] = expf(p[c] - m) / z;
}

// case online softmax in a struct
// family = row_reduction
// uses_online_reduction: true; reduction_loop: true; input_passes: 1;
struct Part {
    float top, sum;
};
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
    const float* p = x + blockIdx.x * cols;
    Part a = {-1e30f, 0.0f};
    for (int c = threadIdx.x; c < cols; c += 256) {
        float v = p[c];
        if (v > a.top) {
            a.sum *= expf(a.top - v);
            a.top = v;
        }
        a.sum += expf(v - a.top);
    }
    y[blockIdx.x] = a.sum;
}

// case Welford
// family = row_reduction
// uses_online_reduction: true;
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
    const float* p = x + blockIdx.x * cols;
    float n = 0.0f, mean = 0.0f, m2 = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) {
        float v = p[c], d = v - mean;
        n += 1.0f;
        mean += d / n;
        m2 += d * (v - mean);
    }
    y[blockIdx.x] = m2;
}

// case two sums are not Welford
// family = row_reduction
// uses_online_reduction: false; input_passes: 1;
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
    const float* p = x + blockIdx.x * cols;
    float a = 0.0f, q = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) {
        float v = p[c];
        a += v;
        q += v * v;
    }
    y[blockIdx.x] = q - a * a;
}

// case a tail loop is no second pass
// family = row_reduction
// input_passes: 1;
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
    const float* p = x + blockIdx.x * cols;
    float s = 0.0f;
    int c = threadIdx.x;
    for (; c + 768 < cols; c += 1024) s += p[c] + p[c + 256] + p[c + 512] + p[c + 768];
    for (; c < cols; c += 256) s += p[c];
    y[blockIdx.x] = s;
}

// case row kept in registers
// family = row_reduction
// input_passes: 1; reduction_loop: true; register_tile_elements: 1; elements_per_thread: 8;
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
    const float* in = x + blockIdx.x * cols;
    float v[8], s = 0.0f;
#pragma unroll
    for (int j = 0; j < 8; ++j) v[j] = in[j * 256 + threadIdx.x];
    for (int j = 0; j < 8; ++j) s += v[j];
    for (int j = 0; j < 8; ++j) y[blockIdx.x * cols + j * 256 + threadIdx.x] = v[j] / s;
}

// case bias is read by every row and is no pass
// family = row_reduction
// input_passes: 1;
extern "C" __global__ void k(const float* x, const float* bias, float* y, int cols) {
    __shared__ float row[1024];
    float s = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) {
        row[c] = x[blockIdx.x * cols + c];
        s += row[c];
    }
    for (int c = threadIdx.x; c < cols; c += 256) y[blockIdx.x * cols + c] = row[c] * s + bias[c];
}
