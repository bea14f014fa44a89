from __future__ import annotations

import traceback

import pytest

from evaluator.kernelbench_module import UnknownConstant, load_module, module_constants, size_places

SOURCE = """
batch: int = 4
M, N = 8, 16
LARGE = 2 * 1024 ** 2
SHIFT = -(1 << 4)
scale = 0.5
name = "x"
both = M * N
flag = True


def area():
    return batch * M * N


def broken():
    return 1 / 0
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "problem.py"
    file.write_text(SOURCE)
    return file


def test_constants_are_integers_written_as_literals():
    assert module_constants(SOURCE) == {"batch": 4, "M": 8, "N": 16, "LARGE": 2 << 20, "SHIFT": -16}


ELSEWHERE = """
import torch
batch = 2
hidden = [1024] * 20
shape = (batch, 3, 224, 224)
names: list = ["a"]
OPTIONS = [{"batch": 64}]
def get_inputs():
    torch.manual_seed(42)
    return [torch.zeros(batch, 224, 100)]
def get_init_inputs():
    return [hidden, 32, 3]
"""


def test_sizes_stand_in_lists_and_in_the_functions_that_make_the_inputs(tmp_path):
    assert size_places(ELSEWHERE) == {
        "batch": 2, "hidden.1024": 1024, "hidden.20": 20, "shape.224": 224, "get_inputs.224": 224, "get_inputs.100": 100,
        "get_init_inputs.32": 32}
    path = tmp_path / "elsewhere.py"
    stand_in = "from types import SimpleNamespace as N; torch = N(manual_seed=print, zeros=max)"
    path.write_text(ELSEWHERE.replace("import torch", stand_in))
    module = load_module(path, {"batch": 5, "hidden.1024": 7, "shape.224": 9, "get_inputs.224": 11, "get_init_inputs.32": 8})
    assert module.shape == (5, 3, 9, 9) and module.get_inputs() == [100] and module.get_init_inputs() == [[7] * 20, 8, 3]
    assert load_module(path).shape == (2, 3, 224, 224)


def test_replaced_constants_reach_functions_and_derived_values(path):
    module = load_module(path, {"N": 5, "batch": 2, "LARGE": 7})
    assert module.area() == 2 * 8 * 5
    assert (module.both, module.LARGE, module.M) == (40, 7, 8)


def test_without_constants_the_file_is_as_shipped(path):
    assert load_module(path).area() == 4 * 8 * 16


def test_unknown_constant_lists_the_known_ones(path):
    with pytest.raises(UnknownConstant, match=r"problem\.py: rows: .*batch, M, N, LARGE, SHIFT"):
        load_module(path, {"rows": 3})


def test_a_float_is_no_size(path):
    with pytest.raises(UnknownConstant, match="scale"):
        load_module(path, {"scale": 3})


def test_tracebacks_keep_the_files_lines(path):
    module = load_module(path, {"N": 5})
    with pytest.raises(ZeroDivisionError) as caught:
        module.broken()
    last = traceback.extract_tb(caught.tb)[-1]
    assert (last.filename, last.line) == (str(path), "return 1 / 0")


def test_a_huge_power_is_not_computed():
    assert module_constants("n = 2 ** 10 ** 10\nm = 1 << 100000000000") == {}
