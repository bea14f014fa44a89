// Random access. ga_*: y[i] = x[p[i]].  sc_*: y[p[i]] = x[i].  p is a permutation of all elements, or of each group of 4096.
// gr_*: rows of 32 floats, y[r] = x[p[r]].

extern "C" __global__ void ga_gather(const float* __restrict__ x, const int* __restrict__ p, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[p[i]];
}

extern "C" __global__ void ga_gather_ilp4(const float* __restrict__ x, const int4* __restrict__ p, float4* __restrict__ y,
                                          int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) {
        int4 q = p[i];
        y[i] = make_float4(x[q.x], x[q.y], x[q.z], x[q.w]);
    }
}

extern "C" __global__ void ga_scatter(const float* __restrict__ x, const int* __restrict__ p, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[p[i]] = x[i];
}

extern "C" __global__ void ga_scatter_add(const float* __restrict__ x, const int* __restrict__ p, float* __restrict__ y,
                                          int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&y[p[i]], x[i]);
}

extern "C" __global__ void gl_gather(const float* __restrict__ x, const int* __restrict__ p, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[p[i]];
}

extern "C" __global__ void gl_scatter(const float* __restrict__ x, const int* __restrict__ p, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[p[i]] = x[i];
}

extern "C" __global__ void gr_thread_row(const float* __restrict__ x, const int* __restrict__ p, float* __restrict__ y,
                                         int rows) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* from = x + (size_t)p[r] * 32;
    for (int c = 0; c < 32; c++) y[(size_t)r * 32 + c] = from[c];
}

extern "C" __global__ void gr_warp_row(const float* __restrict__ x, const int* __restrict__ p, float* __restrict__ y,
                                       int rows) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, c = threadIdx.x & 31;
    if (r < rows) y[(size_t)r * 32 + c] = x[(size_t)p[r] * 32 + c];
}

extern "C" __global__ void gr_float4(const float4* __restrict__ x, const int* __restrict__ p, float4* __restrict__ y,
                                     int rows) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 8, c = threadIdx.x & 7;
    if (r < rows) y[(size_t)r * 8 + c] = x[(size_t)p[r] * 8 + c];
}
