"""A small valid task on disk, and ways to break one part of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelskill.errors import TaskError
from kernelskill.tasks import load_task

TOML = """\
name = "row_scale"
flops = "rows * cols"

[sizes]
rows = 64
cols = 32

[[check_sizes]]
rows = 3
cols = 5

[tolerance]
rtol = 1e-5

[inputs]
x = ["rows", "cols"]

[start]
cu = "start.cu"
kernel = "scale"
grid = ["ceil_div(rows * cols, 128)"]
block = [128]
args = ["x", "y", "rows * cols", 2.5]
outputs = { y = { shape = ["rows", "cols"], dtype = "float32" } }
"""
REFERENCE = """\
import numpy as np


def make_inputs(rng, rows, cols):
    return {"x": rng.standard_normal((rows, cols), dtype=np.float32)}


def reference(x):
    return 2.5 * x
"""
CUDA = """\
// __global__ void not_a_kernel(int n) {}
extern "C" __global__ void scale(const float* x, float* y, int n, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = factor * x[i];
}
"""
SINGLE = """\
import cupy

NAME = "double_it"
SIZES = {"n": 1000}
CHECK_SIZES = [{"n": 1}, {"n": 33}]


def make_inputs(rng, n):
    return {"x": rng.standard_normal(n)}


def reference(x):
    return 2 * x


def run(x):
    return 2 * x
"""
KERNELBENCH = """\
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


batch_size = 512
dim = 128 * 64


def get_inputs():
    return [torch.randn(batch_size, dim)]


def get_init_inputs():
    return []
"""


def edited(text: str, old: str, new: str) -> str:
    """The text with one part replaced; the part must be there exactly once."""
    assert text.count(old) == 1, old
    return text.replace(old, new)


def write_folder(folder: Path, toml: str = TOML, reference: str = REFERENCE, cuda: str = CUDA) -> Path:
    """A native task folder."""
    folder.mkdir(exist_ok=True)
    (folder / "task.toml").write_text(toml)
    (folder / "reference.py").write_text(reference)
    (folder / "start.cu").write_text(cuda)
    return folder


def failure(path: Path) -> TaskError:
    """The error of loading the task."""
    with pytest.raises(TaskError) as caught:
        load_task(path)
    return caught.value


def check_failure(path: Path, where: str, message: str, hint: str = "") -> None:
    """The error names `file:line` (of a file below `path`'s folder), and says `message` and `hint`."""
    error = failure(path)
    folder = path if path.is_dir() else path.parent
    place = str(error.location).removeprefix(f"{folder.resolve()}/")
    assert (place, error.message) == (where, message), f"{place}: {error.message}"
    assert hint in error.hint, error.hint
