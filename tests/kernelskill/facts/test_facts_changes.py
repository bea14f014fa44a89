"""What a step changed: kernels, launches, or what the host calls."""

import pytest

from evaluator.types import Environment, Evaluation, LaunchRecord, Status
from kernelskill.facts.changes import changed_parts

SOLUTION = '''import cupy

SOURCE = r"""
extern "C" __global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""
twice = cupy.RawModule(code=SOURCE).get_function("twice")


def run(x):
    y = cupy.empty_like(x)
    twice(((x.size + 127) // 128,), (128,), (x, y, cupy.int32(x.size)))
    return y
'''


def launched(block=128):
    return Evaluation(status=Status.PASSED, message="", environment=Environment(device="d", simulated=True, arch="sm_90"),
                      launches=(LaunchRecord(kernel="twice", grid=(8, 1, 1), block=(block, 1, 1)),))


@pytest.mark.parametrize("change, parts", [
    ((), set()),
    ((("    int i =", "    // the index\n    int  i="),), set()),
    ((("twice", "zweimal"),), set()),
    ((("2.0f * x[i]", "x[i] + x[i]"),), {"kernels"}),
    ((("cupy.empty_like(x)", "cupy.zeros(x.shape, cupy.float32)"), ("def run", "SIZES = {}\n\n\ndef run")), set()),
    ((("    return y", "    return cupy.sqrt(y)"),), {"host"}),
    ((("    return y", "    cupy.cuda.Stream()\n    return y"),), {"host"}),
    ((("    return y", "    cupy.cuda.Stream.null.synchronize()\n    return y"),), {"host"}),
])
def test_a_changed_text_is_told_by_part(change, parts):
    after = SOLUTION
    for old, new in change:
        assert old in after
        after = after.replace(old, new)
    assert changed_parts(SOLUTION, after, launched(), launched()) == parts


def test_another_launch_is_told_and_a_call_less_is_no_change():
    assert changed_parts(SOLUTION, SOLUTION, launched(), launched(256)) == {"launch"}
    more = SOLUTION.replace("    return y", "    return cupy.sqrt(y)")
    assert changed_parts(more, SOLUTION, launched(), launched()) == set()


def test_an_unknown_launch_and_a_torso_of_a_module_count_as_unchanged():
    unknown = launched().model_copy(update={"launches": ()})
    assert changed_parts(SOLUTION, SOLUTION, unknown, launched(256)) == set()
    assert "host" not in changed_parts(SOLUTION, "def run(x:", launched(), launched())
