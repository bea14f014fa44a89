"""From a line of CUDA source to the line of a file that the person can open."""

from __future__ import annotations

import pytest

from evaluator.origins import digest, origin_of
from evaluator.types import Status

HEADER = '"""A docstring."""\nimport cupy as cp\nimport numpy as np\n\n'
KERNEL = '''
extern "C" __global__ void kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = 2.f * x[i] + 1.f;
}
'''
RUN = """
kernel = cp.RawKernel(CODE, "kernel")


def run(x):
    y = cp.empty_like(x)
    kernel(((x.size + 255) // 256,), (256,), (x, y, np.int32(x.size)))
    return y
"""
SCALE = """
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32)}
def reference(x):
    return 2 * x + 1
"""


def line_of(text: str, part: str) -> int:
    return 1 + text[:text.index(part)].count("\n")


def module(literal: str) -> str:
    return f"{HEADER}{literal}\n{RUN}"


@pytest.mark.parametrize("literal", [
    f'CODE = r"""{KERNEL}"""',
    f'HEAD = """\n#define TWO 2.f\n"""\nCODE = HEAD + r"""{KERNEL}"""',
    f'CODE = f"""{KERNEL.replace("{", "{{").replace("}", "}}").replace("1.f;", "{1}.f;")}"""',
], ids=["one", "joined", "computed"])
def test_a_finding_leads_to_the_line_of_the_solution(bench, literal):
    solution = module(literal)
    evaluation = bench.evaluate(bench.native(SCALE, [{"n": 5}]), solution)
    assert evaluation.status is Status.RUNTIME_ERROR, evaluation.message
    finding = evaluation.findings[0]
    place = f"solution.py:{line_of(solution, 'y[i] =')}"
    if "{1}" in literal:  # computed text: the file does not hold that very line
        assert finding.origin is None and finding.line == 4
        return
    assert finding.origin.endswith(place)
    assert finding.source == "y[i] = 2.f * x[i] + 1.f;"
    assert evaluation.message.startswith(f"out_of_bounds in kernel kernel at {finding.origin}")
    assert finding.message not in evaluation.message


def test_a_compile_error_leads_to_the_line_of_the_solution(bench):
    solution = module(f'CODE = r"""{KERNEL.replace("y[i] =", "y[j] =")}"""')
    evaluation = bench.evaluate(bench.native(SCALE, [{"n": 5}]), solution)
    assert evaluation.status is Status.COMPILE_ERROR
    assert f"solution.py:{line_of(solution, 'y[j] =')}: y[j] = 2.f * x[i] + 1.f;" in evaluation.message
    assert "kernel.cu(4)" in evaluation.compile_log


def test_a_copied_file_is_named_until_its_copy_is_edited(tmp_path):
    solution = tmp_path / "solution.py"
    solution.write_text(module(f'# start.cu, line by line (sha256 {digest(KERNEL)}):\nCODE = r"""{KERNEL}"""'))
    assert origin_of(KERNEL, 4, str(solution)).place == "start.cu:4"
    edited = tmp_path / "edited.py"
    edited.write_text(solution.read_text().replace("2.f * x[i]", "3.f * x[i]"))
    at = line_of(edited.read_text(), "y[i] =")
    assert origin_of(KERNEL.replace("2.f * x[i]", "3.f * x[i]"), 4, str(edited)).place == f"{edited}:{at}"


def test_lines_outside_the_source_lead_nowhere(tmp_path):
    solution = tmp_path / "solution.py"
    solution.write_text(module(f'CODE = r"""{KERNEL}"""'))
    assert origin_of(KERNEL, 99, str(solution)) is None
    assert origin_of("int a;\nint b;\n", 2, str(solution)) is None
    assert origin_of(KERNEL, 4, str(tmp_path / "missing.py")) is None
