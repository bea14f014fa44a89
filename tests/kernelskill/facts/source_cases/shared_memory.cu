// Small kernels and the facts that their text shows. A case begins with `// case`; then come its settings and expected facts,
// one `name: value` each (`absent`: there must be no such fact), then its CUDA text.

// case unpadded tile
// uses_shared_memory: true; shared_tile_count: 1; shared_tile_padded: false; source_barriers: 1;
// barrier_in_loop: false; uses_double_buffer: false;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float t[32][32];
    t[threadIdx.y][threadIdx.x] = x[0];
    __syncthreads();
    y[0] = t[threadIdx.x][threadIdx.y];
}

// case padded tile
// shared_tile_padded: true;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float t[32][32 + 1];
    y[0] = t[threadIdx.x][0];
}

// case odd tile
// shared_tile_padded: true;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float t[32][33];
    y[0] = t[threadIdx.x][0];
}

// case padded by a macro
// shared_tile_padded: true;
#define PITCH 132
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ __align__(16) float t[8][PITCH];
    y[0] = t[0][0];
}

// case padding of zero
// shared_tile_padded: false;
constexpr int PAD = 0;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float t[64][64 + PAD];
    y[0] = t[0][0];
}

// case tile of unknown extent
// shared_tile_padded: absent;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float t[32][WHAT];
    y[0] = t[0][0];
}

// case tile of a template argument
// shared_tile_padded: true; shared_tile_count: 1;
template <int P> __device__ void body(float* y) {
    __shared__ float t[32][P];
    y[0] = t[0][0];
}
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    body<33>(y);
}

// case kernel template
// kernel = k<33>
// shared_tile_padded: true;
template <int P> __global__ void k(float* y) {
    __shared__ float t[32][P];
    y[0] = t[0][0];
}

// case dynamic shared memory
// uses_shared_memory: true; shared_tile_count: 1;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[0];
    y[0] = s[0];
}

// case a shared scalar is no array
// uses_shared_memory: false; shared_tile_count: 0;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ bool last;
    last = n > 0;
    y[0] = last;
}

// case two tiles in one declaration
// shared_tile_count: 2;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float a[16][16], b[16][16];
    y[0] = a[0][0] + b[0][0];
}

// case double buffer
// uses_double_buffer: true; barrier_in_loop: true; source_barriers: 1;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float t[2][256];
    int stage = 0;
    for (int k = 0; k < n; ++k) {
        t[stage ^ 1][threadIdx.x] = x[k];
        __syncthreads();
        y[k] = t[stage][0];
        stage ^= 1;
    }
}

// case two rows are no double buffer
// uses_double_buffer: false;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float t[2][256];
    t[0][threadIdx.x] = x[0];
    t[1][threadIdx.x] = x[1];
    for (int j = 0; j < 2; ++j) y[j] = t[j][0];
    int w = threadIdx.x / 128;
    y[2] = t[w][0];
}

// case cooperative-group barrier
// source_barriers: 1; barrier_in_loop: true;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    auto block = cooperative_groups::this_thread_block();
    for (int j = 0; j < n; ++j) block.sync();
}

// case warp barrier is no block barrier
// source_barriers: 0;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    __syncwarp();
}
