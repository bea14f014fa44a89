// Accelerations of n bodies (x, y, z, mass) that attract each other.

__device__ __forceinline__ void pull(float4 a, float4 b, float& x, float& y, float& z) {
    float dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z;
    float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
    float s = b.w * inverse * inverse * inverse;
    x += s * dx;
    y += s * dy;
    z += s * dz;
}

extern "C" __global__ void nb_naive(const float4* __restrict__ body, float4* __restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = 0, y = 0, z = 0;
    float4 a = body[i];
#pragma unroll 1
    for (int j = 0; j < n; j++) pull(a, body[j], x, y, z);
    out[i] = make_float4(x, y, z, 0);
}

// Bad: division and square root in full precision.
extern "C" __global__ void nb_precise(const float4* __restrict__ body, float4* __restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = 0, y = 0, z = 0;
    float4 a = body[i];
#pragma unroll 1
    for (int j = 0; j < n; j++) {
        float4 b = body[j];
        float dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z, d = sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
        x += b.w * dx / (d * d * d);
        y += b.w * dy / (d * d * d);
        z += b.w * dz / (d * d * d);
    }
    out[i] = make_float4(x, y, z, 0);
}

extern "C" __global__ void nb_tile(const float4* __restrict__ body, float4* __restrict__ out, int n) {
    __shared__ float4 s[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    float x = 0, y = 0, z = 0;
    float4 a = body[i];
    for (int j = 0; j < n; j += 128) {
        s[threadIdx.x] = body[j + threadIdx.x];
        __syncthreads();
#pragma unroll 16
        for (int k = 0; k < 128; k++) pull(a, s[k], x, y, z);
        __syncthreads();
    }
    out[i] = make_float4(x, y, z, 0);
}

// Two bodies a thread.
extern "C" __global__ void nb_tile_two(const float4* __restrict__ body, float4* __restrict__ out, int n) {
    __shared__ float4 s[128];
    int i = blockIdx.x * 256 + threadIdx.x;
    float x = 0, y = 0, z = 0, u = 0, v = 0, w = 0;
    float4 a = body[i], b = body[i + 128];
    for (int j = 0; j < n; j += 128) {
        s[threadIdx.x] = body[j + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < 128; k++) {
            float4 c = s[k];
            pull(a, c, x, y, z);
            pull(b, c, u, v, w);
        }
        __syncthreads();
    }
    out[i] = make_float4(x, y, z, 0);
    out[i + 128] = make_float4(u, v, w, 0);
}

// Two threads share a body's partners: too few blocks otherwise.
extern "C" __global__ void nb_split(const float4* __restrict__ body, float4* __restrict__ out, int n) {
    __shared__ float4 s[128];
    int half = threadIdx.x / 64, i = blockIdx.x * 64 + threadIdx.x % 64;
    float x = 0, y = 0, z = 0;
    float4 a = body[i];
    for (int j = 0; j < n; j += 128) {
        s[threadIdx.x] = body[j + threadIdx.x];
        __syncthreads();
#pragma unroll 16
        for (int k = 0; k < 64; k++) pull(a, s[half * 64 + k], x, y, z);
        __syncthreads();
    }
    s[threadIdx.x] = make_float4(x, y, z, 0);
    __syncthreads();
    if (half == 0) {
        float4 o = s[threadIdx.x + 64];
        out[i] = make_float4(x + o.x, y + o.y, z + o.z, 0);
    }
}
