"""Control flow, calls, barriers, clocks, printf, assert."""

from __future__ import annotations

import numpy as np

from benchmarks.probes.integers import words
from benchmarks.probes.probe import Case, Group

GROUP = Group("control")
RNG = np.random.Generator


@GROUP.probe("""(const int* a, int* out) {
  int i = threadIdx.x, r = 0;
  for (int k = 0; k < 20; k++) {
    if ((a[i] + k) % 7 == 0) continue;
    if (k > a[i] % 13) break;
    switch ((a[i] + k) % 9) { case 0: r += 3; break; case 1: r ^= a[k]; break; case 2: r -= a[0]; case 3: r *= 3; break;
      case 4: r = -r; break;
      case 5: r += k; break; case 6: r |= 16; break; case 7: r >>= 1; break; default: r++; }
  }
  out[i] = r;
}""")
def divergence(rng: RNG) -> Case:
    """switch (brx.idx), nested divergent loops with break and continue."""
    a = rng.integers(0, 100, 32, dtype="i4")
    def one(x: int) -> int:
        r = 0
        for k in range(20):
            if (x + k) % 7 == 0:
                continue
            if k > x % 13:
                break
            case = (x + k) % 9
            r = {0: r + 3, 1: r ^ int(a[k]), 2: (r - int(a[0])) * 3, 3: r * 3, 4: -r, 5: r + k, 6: r | 16,
                 7: r >> 1}.get(case, r + 1)
        return r
    return Case({"a": a, "out": np.zeros(32, "i4")}, lambda: {"out": np.array([one(int(x)) for x in a], "i4")})


@GROUP.probe("""(const float* a, float* out) {
  int i = threadIdx.x; float x = a[i]; Pair p = {x, i};
  if (i & 1) p = twice(p); else bump(&x, i);
  p = twice(p); out[i] = p.x + p.k + x;
}""", helpers="""struct Pair { float x; int k; }; __device__ __noinline__ Pair twice(Pair p) { p.x *= 2; p.k += 1; return p; }
__device__ __noinline__ void bump(float* x, int n) { for (int k = 0; k < n; k++) *x = *x * 0.5f + 1; }""")
def calls(rng: RNG) -> Case:
    """device functions: noinline calls in divergent code, structures returned, pointers to local variables."""
    a = rng.integers(-8, 8, 32).astype("f4")
    def expected() -> dict[str, np.ndarray]:
        out = np.zeros(32, "f4")
        for i in range(32):
            x = a[i]
            factor, k = (4, i + 2) if i & 1 else (2, i + 1)
            for _ in range(0 if i & 1 else i):
                x = np.float32(x * np.float32(0.5) + np.float32(1))
            out[i] = np.float32(np.float32(a[i] * np.float32(factor)) + np.float32(k)) + x
        return {"out": out}
    return Case({"a": a, "out": np.zeros(32, "f4")}, expected)


@GROUP.probe("(const int* a, int* out) { out[threadIdx.x] = fib(a[threadIdx.x]); }",
             helpers="__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }",
             refused="recursive function")
def recursion(rng: RNG) -> Case:
    """recursion."""
    a = rng.integers(0, 10, 32, dtype="i4")
    return Case({"a": a, "out": np.zeros(32, "i4")}, lambda: {"out": np.array([0, 1, 1, 2, 3, 5, 8, 13, 21, 34], "i4")[a]})


@GROUP.probe("(const float* a, float* out, int k) { out[threadIdx.x] = table[(threadIdx.x + k) & 1](a[threadIdx.x]); }",
             helpers="""__device__ float up(float x) { return x + 1; } __device__ float twofold(float x) { return x * 2; }
typedef float (*F)(float); __device__ F table[2] = {up, twofold};""", refused="function pointer")
def function_pointers(rng: RNG) -> Case:
    """function pointers and virtual functions."""
    a = rng.standard_normal(32).astype("f4")
    return Case({"a": a, "out": np.zeros(32, "f4")}, lambda: {"out": np.where(np.arange(32) & 1, a * 2, a + 1)}, (np.int32(0),))


@GROUP.probe("""(const int* a, int* out) {
  if (threadIdx.x == 0) printf("probe %d %f\\n", a[0], 0.5); assert(a[threadIdx.x] > -1000);
    out[threadIdx.x] = a[threadIdx.x] + 1;
}""")
def prints(rng: RNG) -> Case:
    """printf (the text is dropped by the simulator), assert that holds."""
    a = rng.integers(-99, 99, 32, dtype="i4")
    return Case({"a": a, "out": np.zeros(32, "i4")}, lambda: {"out": a + 1})


@GROUP.probe("""(const int* a, int* out) {
  int i = threadIdx.x; out[i] = __syncthreads_count(a[i] > 0);
    out[96 + i] = __syncthreads_and(a[i] > -50) | __syncthreads_or(a[i] == 49) << 1;
}""", block=(96,))
def barrier_reductions(rng: RNG) -> Case:
    """__syncthreads_count, _and, _or (bar.red)."""
    a = rng.integers(-49, 49, 96, dtype="i4")
    def expected() -> dict[str, np.ndarray]:
        flags = int((a > -50).all()) | int((a == 49).any()) << 1
        return {"out": np.concatenate([np.full(96, (a > 0).sum()), np.full(96, flags)]).astype("i4")}
    return Case({"a": a, "out": np.zeros(192, "i4")}, expected)


@GROUP.probe("""(const int* a, int* out) {
  __shared__ int s[2][64]; int t = threadIdx.x;
  if (t < 64) {
    for (int k = 0; k < 4; k++) { asm volatile("bar.sync 1, 128;" ::: "memory"); s[k & 1][t] = a[k * 64 + t] * 2;
      asm volatile("bar.arrive 2, 128;" ::: "memory"); }
  } else {
    t -= 64; asm volatile("bar.arrive 1, 128;" ::: "memory");
    for (int k = 0; k < 4; k++) {
      asm volatile("bar.sync 2, 128;" ::: "memory"); out[k * 64 + t] = s[k & 1][63 - t];
        if (k < 3) asm volatile("bar.arrive 1, 128;" ::: "memory");
    }
  }
  asm volatile("barrier.sync 3, 128;" ::: "memory");
}""", block=(128,))
def named_barriers(rng: RNG) -> Case:
    """named barriers: bar.sync id, count; bar.arrive; barrier.sync without .aligned: producer and consumer warps."""
    a = words(rng, 256, "i4") >> 2
    return Case({"a": a, "out": np.zeros(256, "i4")}, lambda: {"out": (a.reshape(4, 64)[:, ::-1] * 2).ravel()})


@GROUP.probe("""(const int* a, int* out, int id) {
  int t = threadIdx.x, r;
  if (t < 64) { asm volatile("{.reg .pred p; setp.gt.s32 p, %1, 0; barrier.red.popc.u32 %0, 4, 64, p;}"
    : "=r"(r) : "r"(a[t]) : "memory"); out[t] = r; }
  asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(96) : "memory");
}""", block=(96,))
def counted_barriers(rng: RNG) -> Case:
    """bar.red with a thread count; a barrier number in a register."""
    a = rng.integers(-49, 49, 64, dtype="i4")
    return Case({"a": a, "out": np.zeros(64, "i4")}, lambda: {"out": np.full(64, (a > 0).sum(), "i4")}, (np.int32(5),))


@GROUP.probe("""(int* out) {
  long long t = clock64(); int c = clock(); unsigned long long g, h; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g));
  __nanosleep(100); asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(h));
  out[threadIdx.x] = (clock64() > t) + 2 * (clock() - c > 0) + 4 * (h >= g);
}""")
def clocks(rng: RNG) -> Case:
    """clock64, clock, %globaltimer, __nanosleep: time goes on."""
    return Case({"out": np.zeros(32, "i4")}, lambda: {"out": np.full(32, 7, "i4")})


@GROUP.probe("""(int* out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
    z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x >= 7) return; out[(z * 4 + y) * 7 + x] = x + 10 * y + 100 * z + 1000 * (gridDim.x + gridDim.y + gridDim.z);
}""", attributes="__launch_bounds__(64, 2)", grid=(2, 2, 3), block=(4, 2, 2))
def indices(rng: RNG) -> Case:
    """__trap-free early return, __builtin_unreachable, setmaxnreg-free launch bounds, 3-D blocks and grids."""
    def expected() -> dict[str, np.ndarray]:
        z, y, x = np.meshgrid(np.arange(6), np.arange(4), np.arange(7), indexing="ij")
        return {"out": (x + 10 * y + 100 * z + 7000).ravel().astype("i4")}
    return Case({"out": np.zeros(168, "i4")}, expected)


@GROUP.probe("(int* out) { int* p = (int*)malloc(16); p[0] = 5; out[threadIdx.x] = p[0]; free(p); }", refused="malloc")
def device_malloc(rng: RNG) -> Case:
    """malloc and free in a kernel."""
    return Case({"out": np.zeros(32, "i4")}, lambda: {"out": np.full(32, 5, "i4")})


@GROUP.probe("""(int* out) {
  asm volatile("griddepcontrol.wait;" ::: "memory"); out[threadIdx.x] = threadIdx.x;
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}""")
def dependent_launch(rng: RNG) -> Case:
    """griddepcontrol (programmatic dependent launch) without a dependent launch."""
    return Case({"out": np.zeros(32, "i4")}, lambda: {"out": np.arange(32, dtype="i4")})
