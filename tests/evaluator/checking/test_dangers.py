"""What of a solution's code makes sizes dangerous."""

from __future__ import annotations

import pytest

from evaluator.checking.dangers import find_dangers
from evaluator.checking.declaration import DeclarationError, read_declaration

SOLUTION = '''
import cupy as cp
BLOCK = 192
CODE = r"""
#define TILE 24
// a comment with 777
extern "C" __global__ void k(const float4* x, float* y, int n) {
  __shared__ float tile[TILE][25];
  for (int i = threadIdx.x; i < n >> 7; i += 0x60) y[i] = x[i].x * 1.5f;
}
"""
def run(x):
    kernel(((x.size + 191) // BLOCK,), (BLOCK,), (x,))
'''


def test_blocks_tiles_shifts_and_vector_widths_are_found():
    numbers = find_dangers(SOLUTION).numbers
    assert {192, 25, 128, 96, 4, 32} <= set(numbers)
    assert 191 not in numbers, "191 in (n + 191) // 192 stands for 192"
    assert 777 not in numbers and 15 not in numbers


def test_atomics_beside_floats_loosen_bitwise_equality():
    assert not find_dangers(SOLUTION).float_atomics
    assert find_dangers(SOLUTION.replace("y[i] = x[i].x * 1.5f", "atomicAdd(y, x[i].x)")).float_atomics


def test_a_declaration_is_read_without_running_the_solution():
    text = 'import nowhere\nSUPPORTS = {"sizes": {"cols": {"multiple_of": 4, "min": 0}}, "layouts": ["contiguous", "offset"]}\n'
    declared = read_declaration(text, "s.py", {"rows": 1, "cols": 1})
    assert declared.stated and declared.sizes == {"cols": {"multiple_of": 4, "min": 0}}
    assert declared.layouts == ("contiguous", "offset") and declared.values == "any"
    assert not read_declaration("x = 1", "s.py", {}).stated


@pytest.mark.parametrize(("value", "words"), [
    ('{"sizes": {"depth": {"min": 1}}}', "no size of the task (rows, cols)"),
    ('{"sizes": {"cols": {"multiple": 4}}}', "'cols' by 'multiple' = 4: use min, max, multiple_of"),
    ('{"sizes": {"cols": {"multiple_of": 0}}}', "'multiple_of' = 0"),
    ('{"layouts": ["blocked"]}', "layouts"),
    ('{"dtypes": ["float8"]}', "the dtype 'float8'"),
    ("make()", "no literal dict"),
])
def test_a_declaration_that_cannot_be_used_names_its_line_and_why(value, words):
    with pytest.raises(DeclarationError, match=r"^s\.py:2: ") as raised:
        read_declaration(f"\nSUPPORTS = {value}\n", "s.py", {"rows": 1, "cols": 1})
    assert words in str(raised.value)
