// ux_*: transpose of 16-bit elements, with and without padding. uc_*: sums over the rows of a matrix, a column each.

#define TRANSPOSE(NAME, PITCH)                                                                                            \
    extern "C" __global__ void NAME(const unsigned short* __restrict__ x, unsigned short* __restrict__ y, int rows, int cols) { \
        __shared__ unsigned short s[32][PITCH];                                                                           \
        int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;                                         \
        for (int i = 0; i < 32; i += 8) s[threadIdx.y + i][threadIdx.x] = x[(size_t)(r + i) * cols + c];                  \
        __syncthreads();                                                                                                  \
        c = blockIdx.y * 32 + threadIdx.x, r = blockIdx.x * 32 + threadIdx.y;                                             \
        for (int i = 0; i < 32; i += 8) y[(size_t)(r + i) * rows + c] = s[threadIdx.x][threadIdx.y + i];                  \
    }
TRANSPOSE(ux_plain, 32)
TRANSPOSE(ux_padded, 34)

// Two elements an access, both ways.
extern "C" __global__ void ux_pairs(const ushort2* __restrict__ x, ushort2* __restrict__ y, int rows, int cols) {
    __shared__ unsigned short s[64][66];
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 64 + threadIdx.y;
    for (int i = 0; i < 64; i += 8) {
        ushort2 v = x[((size_t)(r + i) * cols >> 1) + c];
        s[threadIdx.y + i][2 * threadIdx.x] = v.x;
        s[threadIdx.y + i][2 * threadIdx.x + 1] = v.y;
    }
    __syncthreads();
    c = blockIdx.y * 32 + threadIdx.x, r = blockIdx.x * 64 + threadIdx.y;
    for (int i = 0; i < 64; i += 8)
        y[((size_t)(r + i) * rows >> 1) + c] = make_ushort2(s[2 * threadIdx.x][threadIdx.y + i], s[2 * threadIdx.x + 1][threadIdx.y + i]);
}

extern "C" __global__ void uc_thread(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cols) return;
    float sum = 0.f;
    for (int r = 0; r < rows; r++) sum += x[(size_t)r * cols + c];
    y[c] = sum;
}

// 32 columns a block, eight rows at once, one atomic a column and part.
extern "C" __global__ void uc_tile(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float s[8][33];
    int c = blockIdx.x * 32 + threadIdx.x, part = rows / gridDim.y, first = blockIdx.y * part;
    float sum = 0.f;
    for (int r = first + threadIdx.y; r < first + part; r += 8) sum += x[(size_t)r * cols + c];
    s[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0) {
        for (int i = 1; i < 8; i++) sum += s[i][threadIdx.x];
        atomicAdd(&y[c], sum);
    }
}

// Four columns a thread.
extern "C" __global__ void uc_float4(const float4* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, part = rows / gridDim.y, first = blockIdx.y * part;
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
    for (int r = first; r < first + part; r++) {
        float4 v = x[(size_t)r * (cols / 4) + c];
        sum.x += v.x; sum.y += v.y; sum.z += v.z; sum.w += v.w;
    }
    atomicAdd(&y[4 * c], sum.x);
    atomicAdd(&y[4 * c + 1], sum.y);
    atomicAdd(&y[4 * c + 2], sum.z);
    atomicAdd(&y[4 * c + 3], sum.w);
}
