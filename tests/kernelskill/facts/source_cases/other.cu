// Small kernels and the facts that their text shows. A case begins with `// case`; then come its settings and expected facts,
// one `name: value` each (`absent`: there must be no such fact), then its CUDA text.

// case atomic sum
// reduction_style: atomic; source_atomics: 1;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(y, x[i]);
}

// case register tile
// family = matmul
// register_tile_elements: 32; elements_per_thread: 32; reduction_loop: true;
extern "C" __global__ void k(const float* A, const float* B, float* C, int N, int K) {
    float acc[8][4] = {};
    for (int k0 = 0; k0 < K; ++k0) for (int i = 0; i < 8; ++i) for (int j = 0; j < 4; ++j) acc[i][j] += A[k0
        + i] * B[k0 * N + j];
    for (int i = 0; i < 8; ++i) for (int j = 0; j < 4; ++j) C[(blockIdx.y * 8 + i) * N + threadIdx.x * 4 + j] =
        acc[i][j];
}

// case register tile of unknown extent
// register_tile_elements: absent; reduction_loop: true;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    float acc[TM] = {};
    for (int k0 = 0; k0 < n; ++k0) acc[0] += x[k0];
    y[0] = acc[0];
}

// case uncoalesced product
// block = 16 16 1
// family = matmul
// loop_stride_columns: true; reduction_style: serial;
extern "C" __global__ void k(const float* A, const float* B, float* C, int M, int N, int K) {
    int r = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= M || c >= N) return;
    float s = 0.0f;
    for (int i = 0; i < K; ++i) s += A[r * K + i] * B[i * N + c];
    C[r * N + c] = s;
}

// case coalesced product
// block = 16 16 1
// family = matmul
// loop_stride_columns: false; has_bounds_check: true;
extern "C" __global__ void k(const float* A, const float* B, float* C, int M, int N, int K) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= M || c >= N) return;
    float s = 0.0f;
    for (int i = 0; i < K; ++i) s += A[r * K + i] * B[i * N + c];
    C[r * N + c] = s;
}

// case an index from memory has no address
// loop_stride_columns: false; vector_store_bytes: 4;
extern "C" __global__ void k(const int* i, const float* x, float* y) {
    y[i[threadIdx.x]] = 1.0f;
}

// case stores of single threads only
// elements_per_thread: absent;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    if (threadIdx.x == 0) y[blockIdx.x] = x[0];
}
