from __future__ import annotations

from random import Random

import pytest
from source_kernels import ABSENT, read_cases

from kernelskill.facts.static import add_kernel_features, add_source_facts, solution_kernels
from kernelskill.facts.table import FactTable
from kernelskill.tasks.cuda_text import CudaText

CASES = read_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernel_features(case):
    table = FactTable()
    add_kernel_features(table, CudaText(case.cuda), case.kernel, case.options, case.block, case.family)
    found = {name: fact.value for name, fact in table.facts().items()}
    assert {name: found.get(name, ABSENT) for name in case.facts} == case.facts


def test_every_kernel_fact_of_the_source_is_shown_both_ways():
    """The cases prove each yes/no fact true somewhere and false somewhere."""
    seen: dict[str, set[object]] = {}
    for case in CASES:
        for name, value in case.facts.items():
            seen.setdefault(name, set()).add(value)
    yes_no = {name for name, values in seen.items() if any(isinstance(value, bool) for value in values)}
    assert len(CASES) >= 60
    assert len(yes_no) >= 16
    assert {name for name in yes_no if not {True, False} <= seen[name]} == set()


SOLUTION = '''
import cupy
import torch
import torch.nn.functional as F
from torch import nn

TILE = 32
HELPER = r"""__device__ float twice(float v) { return v + v; }"""
SOURCE = HELPER + f"""
extern "C" __global__ void k(const float* x, float* y, int n) {{
    __shared__ float t[{TILE}][{TILE} + 1];
    y[threadIdx.x] = twice(x[threadIdx.x]);
}}
"""
kernel = cupy.RawKernel(SOURCE, "k", options=("--use_fast_math",))
BLOCK = (TILE, 8)


def launch(x, y):
    kernel((1,), BLOCK, (x, y, 3))


def run(x):
    y = cupy.empty_like(x)
    launch(cupy.ascontiguousarray(x), y)
    return y


def never_called(x):
    return torch.relu(x) @ x
'''


def source_facts(source, kernel="k"):
    table = FactTable()
    add_source_facts(table, source, kernel, None, "")
    return {name: fact.value for name, fact in table.facts().items()}


def test_cuda_text_is_put_together_from_constants():
    facts = source_facts(SOLUTION)
    assert solution_kernels(SOLUTION) == ["k"]
    assert facts["source_kernels"] == 1
    assert facts["shared_tile_padded"] is True
    assert facts["uses_fast_math"] is True
    assert facts["block_threads"] == 256
    assert facts["library_calls"] == 0


@pytest.mark.parametrize(
    ("line", "calls"),
    [
        ("return torch.relu(y)", 1),
        ("return F.gelu(y) + F.softmax(y, dim=1)", 2),
        ("return x @ y", 1),
        ("return y.sum()", 1),
        ("return cupy.sqrt(y)", 1),
        ("return never_called(y)", 2),
        ("return torch.empty(3).view(3)", 0),
        ("return y.reshape(3, 1)", 0),
        ("cupy.cuda.Device().synchronize()", 0),
        ("return torch.nn.functional.linear(y, y)", 1),
    ],
)
def test_library_calls(line, calls):
    assert source_facts(SOLUTION.replace("    return y\n\n\ndef never", f"    {line}\n\n\ndef never"))["library_calls"] == calls


def test_layers_of_a_model_are_library_calls():
    model = """
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, n)
        self.weight = nn.Parameter(torch.randn(n))
        self.spare = nn.ReLU()

    def forward(self, x):
        return self.tail(self.linear(x)) + self.weight

    def tail(self, x):
        return torch.tanh(x)
"""
    assert source_facts(model)["library_calls"] == 2


def test_what_the_source_does_not_show_is_absent():
    assert source_facts("not python (") == {}
    facts = source_facts("x = 1\n")
    assert "library_calls" not in facts
    assert facts["source_kernels"] == 0
    two = SOLUTION.replace("def never", "    kernel((1,), (64,), (x, y, 3))\n\n\ndef never")
    assert "block_threads" not in source_facts(two)
    assert "uses_shared_memory" not in source_facts(SOLUTION, kernel="")


def test_recursion_and_definitions_that_go_round_are_survived():
    cuda = """
__device__ float f(float v) { return v > 1.0f ? f(v / 2.0f) + f(v / 3.0f) : g(v) + g(v + 1.0f); }
__device__ float g(float v) { return f(v) + f(v); }
extern "C" __global__ void k(const float* x, float* y, int n) {
    int a = b + b, b = c + c, c = a + a;
    y[a] = f(x[threadIdx.x]);
}
"""
    table = FactTable()
    add_kernel_features(table, CudaText(cuda), "k", (), (256, 1, 1), "")
    assert table.value("loop_stride_columns") is False


def test_damaged_source_gives_fewer_facts_and_no_error():
    """Generated code may be cut off or malformed anywhere; the compiler says so, the scanner must not fall over it."""
    random = Random(7)
    for case in CASES:
        for _ in range(6):
            start = random.randrange(len(case.cuda))
            text = random.choice(
                [case.cuda[:start], case.cuda[:start] + random.choice("(){}[];<>*&=\"'/#") + case.cuda[start:]]
            )
            cuda = CudaText(text)
            for kernel in cuda.kernels:
                add_kernel_features(FactTable(), cuda, kernel, case.options, case.block, case.family)
