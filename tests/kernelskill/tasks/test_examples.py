from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest

from evaluator.compile import compile_cuda
from kernelskill.facts.solution_source import read_solution
from kernelskill.tasks import load_task

EXAMPLES = Path(__file__).parents[3] / "examples"
FOLDERS = sorted(p.parent.name for p in EXAMPLES.glob("*/task.toml"))
FILES = sorted(str(p.relative_to(EXAMPLES)) for p in [*EXAMPLES.glob("*.py"), *EXAMPLES.glob("kernelbench/*.py")])


def test_the_promised_examples_exist():
    assert FOLDERS == ["bias_gelu", "layer_norm", "matmul", "row_softmax", "row_sum", "transpose"]
    assert FILES == ["kernelbench/bias_gelu.py", "kernelbench/linear_relu.py", "kernelbench/softmax.py", "silu_gate.py"]


@pytest.mark.parametrize("name", [*FOLDERS, "silu_gate.py"])
def test_native_example_loads_and_its_start_compiles(name):
    task = load_task(EXAMPLES / name)
    assert task.family
    assert task.flops
    assert len(task.spec.check_sizes) >= 3
    assert all(math.prod(check.values()) <= 1 << 20 for check in task.spec.check_sizes)
    assert any(all(value <= 2 for value in check.values()) for check in task.spec.check_sizes)
    solution = read_solution(task.start_source)
    assert solution is not None
    assert solution.library_calls == 0
    assert compile_cuda(solution.cuda).ptx.count(".entry") == (2 if name == "bias_gelu" else 1)


@pytest.mark.parametrize("name", [f for f in FILES if "/" in f])
def test_kernelbench_example_loads_without_a_start(name):
    task = load_task(EXAMPLES / name)
    assert (task.spec.kind, task.start_source) == ("kernelbench", "")
    assert len(task.spec.sizes) >= 2


@pytest.mark.parametrize("name", FOLDERS)
def test_rendered_start_is_python_that_takes_the_inputs(name):
    module = ast.parse(load_task(EXAMPLES / name).start_source)
    run = next(n for n in module.body if isinstance(n, ast.FunctionDef) and n.name == "run")
    reference = ast.parse((EXAMPLES / name / "reference.py").read_text())
    expected = next(n for n in reference.body if isinstance(n, ast.FunctionDef) and n.name == "reference")
    assert [a.arg for a in run.args.args] == [a.arg for a in expected.args.args]
