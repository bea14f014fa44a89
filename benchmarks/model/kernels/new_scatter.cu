// Scattered access beyond 4-byte permutations. n4 random pieces of 16 bytes, y[i] = x[p[i]]; tables of several sizes;
// rows of 32 floats added at random rows.

extern "C" __global__ void us_gather16(const float4* __restrict__ x, const int* __restrict__ p, float4* __restrict__ y, int n4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n4) y[i] = x[p[i]];
}

extern "C" __global__ void us_scatter16(const float4* __restrict__ x, const int* __restrict__ p, float4* __restrict__ y, int n4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n4) y[p[i]] = x[i];
}

// y[i] = table[h(i) mod size]: an odd multiplier spreads consecutive i over the whole table.
extern "C" __global__ void us_table(const float* __restrict__ table, float* __restrict__ y, int size, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = table[(unsigned(i) * 2654435761u >> 7) & (size - 1)];
}

extern "C" __global__ void us_table_ilp4(const float* __restrict__ table, float4* __restrict__ y, int size, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i >= n) return;
    float v[4];
#pragma unroll
    for (int k = 0; k < 4; k++) v[k] = table[(unsigned(4 * i + k) * 2654435761u >> 7) & (size - 1)];
    y[i] = make_float4(v[0], v[1], v[2], v[3]);
}

// y[p[r]] += x[r], rows of 32 floats: a warp a row, one coalesced atomic request each.
extern "C" __global__ void us_add_rows(const float* __restrict__ x, const int* __restrict__ p, float* __restrict__ y, int rows) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (r < rows) atomicAdd(&y[(size_t)p[r] * 32 + lane], x[(size_t)r * 32 + lane]);
}

// The same with one thread a row.
extern "C" __global__ void us_add_rows_thread(const float* __restrict__ x, const int* __restrict__ p, float* __restrict__ y, int rows) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    for (int c = 0; c < 32; c++) atomicAdd(&y[(size_t)p[r] * 32 + c], x[(size_t)r * 32 + c]);
}
