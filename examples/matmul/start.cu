// One output a thread; neighbouring threads walk down a column.

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; i++) sum += a[(long long)row * k + i] * b[(long long)i * n + col];
    c[(long long)row * n + col] = sum;
}
