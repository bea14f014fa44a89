from __future__ import annotations

import pytest

from evaluator.guards import check_source
from evaluator.types import TaskSpec

SIZES = {"n": 4}
NATIVE = TaskSpec(name="t", kind="native", path="/tasks/softmax/reference.py", sizes=SIZES, check_sizes=(SIZES,))
KERNELBENCH = TaskSpec(name="t", kind="kernelbench", path="/tasks/23_Softmax.py", sizes=SIZES, check_sizes=(SIZES,))


@pytest.mark.parametrize(("line", "words"), [
    ("import subprocess", "starts other programs"),
    ("import os, socket", "network"),
    ("from multiprocessing import Pool", "processes"),
    ("import threading as t", "clock"),
    ("import ctypes", "memory"),
    ("from ctypes import c_int", "memory"),
    ("import gc", "objects"),
    ("import evaluator.types", "judges"),
    ("from kernelskill import model", "needs only cupy"),
    ("import reference", "reference"),
    ("from . import helper", "self-contained"),
    ("import os; os.system('true')", "os.system"),
    ("from os import system as s; s('true')", "os.system"),
    ("import os as o; o._exit(0)", "os._exit"),
    ("import os; leave = os._exit", "os._exit"),
    ("import os; os.execv('/bin/true', [])", "os.execv"),
    ("import sys; sys._getframe(1)", "sys._getframe"),
    ("import sys; sys.modules['torch'] = None", "sys.modules"),
    ("exec('x = 1')", "exec"),
    ("value = eval('1 + 1')", "eval"),
    ("__import__('os')", "__import__"),
    ("open('out.txt', 'w')", "open for writing"),
    ("open('out.txt', mode='a')", "open for writing"),
    ("m = 'w'; open('out.txt', m)", "open for writing"),
    ("from pathlib import Path; Path('x').write_text('y')", "write_text"),
    ("import torch; torch.cuda.synchronize = lambda: None", "torch.cuda.synchronize"),
    ("import time; time.perf_counter = lambda: 0", "time.perf_counter"),
    ("import cupy as cp; setattr(cp, 'empty', None)", "setattr on cupy"),
    ("import torch; torch.backends.cuda.matmul.allow_tf32 = True", "allow_tf32"),
    ("f = (lambda: 0).__globals__", "__globals__"),
    ("source = open('reference.py').read()", "task's file"),
    ("source = open('/tasks/softmax/reference.py').read()", "task's file"),
])
def test_refused_with_line(line, words):
    found = check_source(f"import cupy\n\n{line}\n", "solution.py", NATIVE)
    assert found, line
    assert {(f.kind, f.severity, f.file, f.line) for f in found} == {("guard", "error", "solution.py", 3)}
    assert any(words in f.message for f in found), [f.message for f in found]


def test_inheriting_the_reference():
    source = "from problem import Model\nclass ModelNew(Model):\n    pass\n"
    assert [f.line for f in check_source(source, "s.py", KERNELBENCH)] == [2]


HONEST = '''
import math
import os
import sys
import time
from functools import lru_cache, partial

import cupy as cp
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.dlpack import to_dlpack

CODE = r"""
// exec, eval, subprocess, os.system: words in a comment
extern "C" __global__ void kernel(float* x) {}
"""
HERE = os.path.dirname(os.path.abspath(__file__))
ARCH = os.environ.get("ARCH", "sm_90")


@lru_cache(maxsize=None)
def module(options=()):
    compiled = cp.RawModule(code=CODE, options=options)
    compiled.compile()
    return compiled


class ModelNew(nn.Module):
    def __init__(self, input):
        super().__init__()
        self.input = input
        self.weight = nn.Parameter(torch.ones(3))
        self.cache = {}

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self.scale = 1.0 / math.sqrt(input.shape[-1])
        stream = torch.cuda.current_stream()
        try:
            with cp.cuda.ExternalStream(stream.cuda_stream):
                module().get_function("kernel")((1,), (32,), (input.data_ptr(),))
        except RuntimeError:
            raise
        kernel = module().get_function("kernel")
        kernel.max_dynamic_shared_size_bytes = 98304
        input.requires_grad_(False)
        return input.eval() if hasattr(input, "eval") else input


def run(x):
    x.shape = (x.size,)
    text = open(__file__).read()
    return cp.ascontiguousarray(x)
'''


@pytest.mark.parametrize("task", [NATIVE, KERNELBENCH])
def test_honest_look_alikes_pass(task):
    assert check_source(HONEST, "solution.py", task) == []


def test_findings_come_in_line_order_and_once():
    found = check_source("import gc\nimport ctypes\nimport os\nos.system('a'); os.system('a')\n", "s.py", NATIVE)
    assert [f.line for f in found] == [1, 2, 4]


def test_text_that_is_no_python():
    with pytest.raises(SyntaxError):
        check_source("def run(:\n", "s.py", NATIVE)
