// transpose: y[c * rows + r] = x[r * cols + c].

extern "C" __global__ void tr_read_coalesced(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < rows && c < cols) y[c * rows + r] = x[r * cols + c];
}

extern "C" __global__ void tr_write_coalesced(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < rows && c < cols) y[c * rows + r] = x[r * cols + c];
}

template <int PITCH>
__device__ __forceinline__ void tile_body(const float* x, float* y, int rows, int cols) {
    __shared__ float tile[32][PITCH];
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
    if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = x[r * cols + c];
    __syncthreads();
    int oc = blockIdx.y * 32 + threadIdx.x, orow = blockIdx.x * 32 + threadIdx.y;
    if (orow < cols && oc < rows) y[orow * rows + oc] = tile[threadIdx.x][threadIdx.y];
}

// Column reads of an unpadded tile: 32-way bank conflicts.
extern "C" __global__ void tr_tile32(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    tile_body<32>(x, y, rows, cols);
}

extern "C" __global__ void tr_tile33(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    tile_body<33>(x, y, rows, cols);
}

// Block 32x8, four rows a thread.
extern "C" __global__ void tr_tile33_ilp4(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float tile[32][33];
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
    float v[4];
#pragma unroll
    for (int j = 0; j < 4; j++) v[j] = (r + 8 * j < rows && c < cols) ? x[(r + 8 * j) * cols + c] : 0.0f;
#pragma unroll
    for (int j = 0; j < 4; j++) tile[threadIdx.y + 8 * j][threadIdx.x] = v[j];
    __syncthreads();
    int oc = blockIdx.y * 32 + threadIdx.x, orow = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (orow + 8 * j < cols && oc < rows) y[(orow + 8 * j) * rows + oc] = tile[threadIdx.x][threadIdx.y + 8 * j];
}

// Block 16x16, tile 64x64, 16-byte loads and stores. rows % 64 == cols % 64 == 0.
extern "C" __global__ void tr_float4(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float tile[64][65];
    int tx = threadIdx.x, ty = threadIdx.y, c0 = blockIdx.x * 64, r0 = blockIdx.y * 64;
    float4 v[4];
#pragma unroll
    for (int j = 0; j < 4; j++)
        v[j] = *reinterpret_cast<const float4*>(&x[(r0 + ty + 16 * j) * cols + c0 + 4 * tx]);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        float* t = &tile[ty + 16 * j][4 * tx];
        t[0] = v[j].x; t[1] = v[j].y; t[2] = v[j].z; t[3] = v[j].w;
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int c = ty + 16 * j;
        float4 o = make_float4(tile[4 * tx][c], tile[4 * tx + 1][c], tile[4 * tx + 2][c], tile[4 * tx + 3][c]);
        *reinterpret_cast<float4*>(&y[(c0 + c) * rows + r0 + 4 * tx]) = o;
    }
}
