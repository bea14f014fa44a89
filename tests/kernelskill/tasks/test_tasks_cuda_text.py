from __future__ import annotations

from kernelskill.tasks.cuda_text import CudaText, mask

SOURCE = r"""
#define NAME "__global__ void from_macro(int n) {}"
// extern "C" __global__ void commented(int n) {}
/* __global__ void also(int n) {
   __syncthreads(); } */
#if 0
__global__ void disabled(int n) { }
#else
__global__ void enabled(int n) { }
#endif
const char* text = "__global__ void in_string(int n) { \" }";
const char* raw = R"x(__global__ void in_raw() { } " )x";
template <typename T, int N = 4>
__device__ __forceinline__ T twice(const T (&values)[N], T v) { return v + v; }
__device__ float table[4] = {1, 2, 3, 4};
__global__ void declared_only(int n);
extern "C" __global__ void __launch_bounds__(256, 2) big(const float* __restrict__ x, float4 *y, unsigned int n,
                                                         const long long m, char c = '}') {
    if (c == '{') { y[0].x = x[n]; }
}
extern "C" {
static __global__ void inner(int) { }
}
"""


def test_functions_are_found_behind_comments_strings_and_directives():
    cuda = CudaText(SOURCE)
    assert list(cuda.kernels) == ["enabled", "big", "inner"]
    assert list(cuda.device_functions) == ["twice"]
    assert cuda.device_functions["twice"].template_parameters == ("T", "N")
    assert (cuda.kernels["enabled"].extern_c, cuda.kernels["big"].extern_c, cuda.kernels["inner"].extern_c) == (
        False,
        True,
        True,
    )
    assert cuda.kernels["big"].line == 17


def test_parameters():
    big = CudaText(SOURCE).kernels["big"]
    assert [(p.name, p.type, p.is_pointer, p.is_const, p.is_restrict) for p in big.parameters] == [
        ("x", "float", True, True, True),
        ("y", "float4", True, False, False),
        ("n", "unsigned int", False, False, False),
        ("m", "long long", False, True, False),
        ("c", "char", False, False, False),
    ]
    assert big.body.count("{") == big.body.count("}") == 2
    assert [p.name for p in CudaText(SOURCE).device_functions["twice"].parameters] == ["values", "v"]


def test_mask_keeps_length_and_lines():
    masked = mask(SOURCE)
    assert len(masked) == len(SOURCE)
    assert [i for i, c in enumerate(masked) if c == "\n"] == [i for i, c in enumerate(SOURCE) if c == "\n"]
    assert "commented" not in masked
    assert "in_string" not in masked


def test_broken_source_finds_nothing():
    assert CudaText("__global__ void open(int n { ").functions == ()
    assert CudaText("__global__ void open(int n) { if (x) {").functions == ()
    assert CudaText("/* unterminated __global__ void k() {}").functions == ()
