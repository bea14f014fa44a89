// y[i] = x[i] + 1 with blocks of 32 to 1024 threads, one element a thread.

#define ADD_ONE(NAME)                                                                                                 \
    extern "C" __global__ void NAME(const float* __restrict__ x, float* __restrict__ y, int n) {                      \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                                \
        if (i < n) y[i] = x[i] + 1.0f;                                                                                \
    }

ADD_ONE(sb_32)
ADD_ONE(sb_64)
ADD_ONE(sb_128)
ADD_ONE(sb_512)
ADD_ONE(sb_1024)
ADD_ONE(sb_48)

// Half the warps leave at once.
extern "C" __global__ void sb_half_idle(const float* __restrict__ x, float* __restrict__ y, int n) {
    if (threadIdx.x >= blockDim.x / 2) return;
    int i = blockIdx.x * (blockDim.x / 2) + threadIdx.x;
    if (i < n) y[i] = x[i] + 1.0f;
}
