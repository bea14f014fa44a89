// y[r][c] = 0.2 (x[r][c] + its four neighbours), inside; the border is copied. `rows` and `cols` are multiples of 32.

__device__ __forceinline__ void point(const float* x, float* y, int r, int c, int rows, int cols) {
    size_t i = (size_t)r * cols + c;
    if (r == 0 || c == 0 || r == rows - 1 || c == cols - 1) y[i] = x[i];
    else y[i] = 0.2f * (x[i] + x[i - 1] + x[i + 1] + x[i - cols] + x[i + cols]);
}

extern "C" __global__ void st_naive(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    point(x, y, blockIdx.y * blockDim.y + threadIdx.y, blockIdx.x * blockDim.x + threadIdx.x, rows, cols);
}

extern "C" __global__ void st_row(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    point(x, y, blockIdx.y, blockIdx.x * blockDim.x + threadIdx.x, rows, cols);
}

// Bad: lanes walk down a column.
extern "C" __global__ void st_column(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    point(x, y, blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y, rows, cols);
}

extern "C" __global__ void st_tile(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float s[34][35];
    int r = blockIdx.y * 32 + threadIdx.y, c = blockIdx.x * 32 + threadIdx.x;
    size_t i = (size_t)r * cols + c;
    s[threadIdx.y + 1][threadIdx.x + 1] = x[i];
    if (threadIdx.y == 0 && r > 0) s[0][threadIdx.x + 1] = x[i - cols];
    if (threadIdx.y == 31 && r < rows - 1) s[33][threadIdx.x + 1] = x[i + cols];
    if (threadIdx.x == 0 && c > 0) s[threadIdx.y + 1][0] = x[i - 1];
    if (threadIdx.x == 31 && c < cols - 1) s[threadIdx.y + 1][33] = x[i + 1];
    __syncthreads();
    int a = threadIdx.y + 1, b = threadIdx.x + 1;
    if (r == 0 || c == 0 || r == rows - 1 || c == cols - 1) y[i] = s[a][b];
    else y[i] = 0.2f * (s[a][b] + s[a][b - 1] + s[a][b + 1] + s[a - 1][b] + s[a + 1][b]);
}

// A thread walks down eight rows and keeps the column in registers.
extern "C" __global__ void st_march(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * 8;
    size_t i = (size_t)first * cols + c;
    float up = first ? x[i - cols] : 0.0f, here = x[i];
#pragma unroll
    for (int k = 0; k < 8; k++, i += cols) {
        int r = first + k;
        float down = r < rows - 1 ? x[i + cols] : 0.0f;
        if (r == 0 || c == 0 || r == rows - 1 || c == cols - 1) y[i] = here;
        else y[i] = 0.2f * (here + x[i - 1] + x[i + 1] + up + down);
        up = here;
        here = down;
    }
}
