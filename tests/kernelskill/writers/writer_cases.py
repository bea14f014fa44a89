"""Tasks of every family, and walks through the plans that method sequences reach."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

from evaluator.types import TaskSpec
from kernelskill.model import MethodApplication, Task
from kernelskill.writers import Request
from kernelskill.writers.template import TemplateWriter

SIZES = {"rows": 8192, "cols": 1024, "m": 512, "n": 512, "k": 512}
ROWS = {"input": "x", "rows": "rows", "cols": "cols"}
MATRIX = ["rows", "cols"]


def make_task(family: str, operation: str, arguments: dict, start: str = "", sizes: dict | None = None) -> Task:
    spec = TaskSpec(name="case", kind="native", path="reference.py", sizes=sizes or SIZES, check_sizes=())
    return Task(spec, Path(), start, family, operation, arguments)


@cache
def tasks() -> dict[str, Task]:
    chains = {
        "bias_gelu": ("gelu(x + bias)", {"x": MATRIX, "bias": ["cols"]}),
        "broadcasts": ("where(x > 0, x * s, tanh(x)) - sigmoid(c)", {"x": MATRIX, "s": [1], "c": ["rows", 1]}),
        "one_operator": ("exp(x)", {"x": MATRIX}),
    }
    found = {name: make_task("elementwise", text, {"inputs": inputs, "shape": MATRIX})
             for name, (text, inputs) in chains.items()}
    for operation in ("sum", "mean", "max", "min", "softmax", "log_softmax", "rms_norm", "l2_norm"):
        found[operation] = make_task("row_reduction", operation, ROWS)
    found["layer_norm"] = make_task("row_reduction", "layer_norm", ROWS | {"weight": "gamma", "bias": "beta", "eps": 1e-5})
    product = {"a": "a", "b": "b", "m": "m", "n": "n", "k": "k"}
    found["transpose"] = make_task("transpose", "", ROWS)
    found["matmul"] = make_task("matmul", "", product)
    found["matmul_gelu"] = make_task("matmul", "", product | {"epilogue": "gelu(acc + bias)"})
    return found


def cuda_of(source: str) -> str:
    match = re.search(r'CUDA_SOURCE = r"""\n(.*?)"""', source, re.DOTALL)
    assert match
    return match[1]


def apply(task: Task, source: str, *methods: str | MethodApplication) -> str:
    writer = TemplateWriter()
    for method in methods:
        chosen = method if isinstance(method, MethodApplication) else MethodApplication(method=method)
        source = writer.write(task, Request(method=chosen, source=source))
    return source


def reached(task: Task, walks: int, seed: int = 0) -> dict[str, tuple[str, ...]]:
    """Sources that random method sequences reach from the start, with the sequence: the same for the same seed."""
    writer, rng = TemplateWriter(), random.Random(seed)
    start = writer.start(task)
    found: dict[str, tuple[str, ...]] = {start: ()}
    for _ in range(walks):
        source, path = start, ()
        for _ in range(rng.randint(2, 8)):
            open_methods = writer.applicable(task, source)
            if not open_methods:
                break
            method = rng.choice(sorted(open_methods))
            source = writer.write(task, Request(method=open_methods[method], source=source))
            path = (*path, str(open_methods[method]))
            found.setdefault(source, path)
    return found
