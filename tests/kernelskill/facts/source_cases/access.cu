// Small kernels and the facts that their text shows. A case begins with `// case`; then come its settings and expected facts,
// one `name: value` each (`absent`: there must be no such fact), then its CUDA text.

// case one element a thread
// uses_shared_memory: false; shared_tile_count: 0; source_barriers: 0; uses_warp_shuffle: false; source_atomics: 0;
// uses_transcendental: false; uses_fast_math: false; has_unroll_pragma: false; uses_async_copy: false;
// uses_tensor_cores: false; barrier_in_loop: false; uses_double_buffer: false; uses_grid_stride_loop: false;
// reduction_style: none; elements_per_thread: 1; has_bounds_check: true; uses_restrict: true;
// loop_stride_columns: false; vector_load_bytes: 4; vector_store_bytes: 4; uses_vector_types: false;
// reduction_loop: false; input_passes: absent; threads_per_row: absent; register_tile_elements: absent;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}

// case comments and strings that look like code
// uses_shared_memory: false; shared_tile_count: 0; source_barriers: 0; uses_warp_shuffle: false; source_atomics: 0;
// uses_transcendental: false; uses_fast_math: false; has_unroll_pragma: false; uses_async_copy: false;
// uses_tensor_cores: false; barrier_in_loop: false; uses_double_buffer: false; uses_grid_stride_loop: false;
// has_bounds_check: false; uses_vector_types: false; reduction_style: none;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    // __shared__ float tile[32][33]; __syncthreads(); atomicAdd(y, x[0]); expf(x[0]);
    /* for (int i = 0; i < n; i += gridDim.x) { __shfl_xor_sync(0xffffffffu, 1.0f, 1); }
       float4 v; wmma::fragment f; if (i < n) __expf(1.0f);
       #pragma unroll
       */
    const char* note = "__syncthreads(); __shared__ float s[8][9]; expf(1)";
    char c = '{';
    y[blockIdx.x * blockDim.x + threadIdx.x] = x[0];
}

// case disabled code
// uses_shared_memory: false; shared_tile_count: 0; source_barriers: 0; uses_warp_shuffle: false; source_atomics: 0;
// uses_transcendental: false; uses_fast_math: false; has_unroll_pragma: false; uses_async_copy: false;
// uses_tensor_cores: false; barrier_in_loop: false; uses_double_buffer: false; uses_grid_stride_loop: false;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
#if 0
    __shared__ float s[32];
    __syncthreads();
#endif
    y[0] = x[0];
}

// case early return is a bounds check
// has_bounds_check: true;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = x[i];
}

// case a condition on data is no bounds check
// has_bounds_check: false;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] > 0.0f) y[i] = x[i];
}

// case bounds in a conditional expression
// has_bounds_check: true;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? x[i] : 0.0f;
    y[i & 255] = v;
}

// case bounds through a derived size
// has_bounds_check: true;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int quads = n / 4;
    if (i < quads) y[i] = x[i];
}

// case grid-stride loop
// uses_grid_stride_loop: true; has_bounds_check: false; elements_per_thread: absent; reduction_style: none;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] = x[i];
}

// case grid-stride through a variable
// uses_grid_stride_loop: true;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    const int step = gridDim.x * 256;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += step) y[i] = x[i];
}

// case block-stride is not grid-stride
// uses_grid_stride_loop: false; loop_stride_columns: false;
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
    for (int c = threadIdx.x; c < cols; c += blockDim.x) y[blockIdx.x * cols + c] = x[blockIdx.x * cols + c];
}

// case restrict on one of two
// uses_restrict: false;
extern "C" __global__ void k(const float* __restrict__ x, float* y) {
    y[0] = x[0];
}

// case no pointer parameter
// uses_restrict: absent; loop_stride_columns: absent;
__global__ void k(int n) {
    int i = n;
}

// case float4 by cast
// uses_vector_types: true; vector_load_bytes: 16; vector_store_bytes: 16; elements_per_thread: 4;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) {
        float4 v = reinterpret_cast<const float4*>(x)[i];
        reinterpret_cast<float4*>(y)[i] = v;
    }
}

// case float4 by dereferenced cast
// vector_load_bytes: 16; vector_store_bytes: 16; elements_per_thread: 4;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i < n) *reinterpret_cast<float4*>(y + 4 * i) = *reinterpret_cast<const float4*>(&x[4 * i]);
}

// case float2 pointers
// uses_vector_types: true; vector_load_bytes: 8; elements_per_thread: 2;
extern "C" __global__ void k(const float2* x, float2* y) {
    y[threadIdx.x] = x[threadIdx.x];
}

// case vector loads with a scalar tail
// elements_per_thread: 4; vector_load_bytes: 16;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) reinterpret_cast<float4*>(y)[i] = reinterpret_cast<const float4*>(x)[i];
    if (blockIdx.x == 0 && threadIdx.x < n % 4) y[n - n % 4 + threadIdx.x] = x[n - n % 4 + threadIdx.x];
}

// case four elements a thread
// elements_per_thread: 4; has_unroll_pragma: true;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    int first = blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        int i = first + j * 256;
        if (i < n) y[i] = x[i];
    }
}

// case unroll 1 forbids unrolling
// has_unroll_pragma: false;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
#pragma unroll 1
    for (int j = 0; j < n; ++j) y[j] = x[j];
}

// case unroll by a factor
// has_unroll_pragma: true;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
#pragma unroll 8
    for (int j = 0; j < n; ++j) y[j] = x[j];
}

// case exp in a device function
// uses_transcendental: true; uses_fast_math: false;
__device__ float f(float v) {
    return expf(v);
}
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    y[0] = f(x[0]);
}

// case exp in a function that is not called
// uses_transcendental: false;
__device__ float f(float v) {
    return expf(v);
}
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    y[0] = x[0];
}

// case sqrt is not transcendental
// uses_transcendental: false;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    y[0] = sqrtf(x[0]) + rsqrtf(x[1]) + fabsf(x[2]);
}

// case intrinsics
// uses_transcendental: true; uses_fast_math: true;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    y[0] = __expf(x[0]);
}

// case fast-math option
// options = --use_fast_math
// uses_fast_math: true;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    y[0] = expf(x[0]);
}

// case fast reciprocal in PTX
// uses_fast_math: true;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x[0]));
    y[0] = r;
}

// case async copy in PTX
// uses_async_copy: true;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(0), "l"(x));
}

// case tensor cores
// uses_tensor_cores: true; reduction_loop: true;
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    for (int k0 = 0; k0 < n; k0 += 16) wmma::mma_sync(c, a, b, c);
}
