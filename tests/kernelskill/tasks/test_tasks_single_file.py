from __future__ import annotations

import pytest
from task_files import SINGLE, check_failure, edited

from kernelskill.tasks import load_task

MISTAKES = [
    ('NAME = "double_it"\n', "", "t.py", "missing key 'NAME'", ""),
    ('SIZES = {"n": 1000}', 'SIZES = {"n": 10.5}', "t.py:4", "'SIZES.n': must be a whole number, got 10.5", ""),
    ('SIZES = {"n": 1000}', "SIZES = make()", "t.py:4:9", "SIZES must be a literal: task files are read, not executed", ""),
    ('[{"n": 1}, {"n": 33}]', '[{"n": 1}, {"m": 33}]', "t.py:5", "unknown key 'CHECK_SIZES[1].m'", "known: n"),
    ('CHECK_SIZES = [{"n": 1}, {"n": 33}]', "CHECK_SIZES = 3", "t.py:5", "'CHECK_SIZES': must be a list, got 3", ""),
    ('NAME = "double_it"', 'NAMES = "double_it"', "t.py:3", "unknown constant 'NAMES'", "did you mean 'NAME'?"),
    ("def reference(x):", "def refrence(x):", "t.py", "no function 'reference'", "did you mean 'refrence'?"),
    ("def run(x):", "def run(x, y):", "t.py:16", "run takes 2 values, the task has 1 inputs: x", ""),
    ("def run(x):", "def start(x):", "t.py", "no function 'run'", "def run(x)"),
    ("def run(x):", "def run(x:", "t.py:16:8", "Python syntax error: '(' was never closed", ""),
]


@pytest.mark.parametrize(("old", "new", "where", "message", "hint"), MISTAKES)
def test_mistake_is_told_with_its_line(tmp_path, old, new, where, message, hint):
    path = tmp_path / "t.py"
    path.write_text(edited(SINGLE, old, new))
    check_failure(path, where, message, hint)


def test_multi_line_constants_point_at_the_entry(tmp_path):
    path = tmp_path / "t.py"
    path.write_text(edited(SINGLE, 'CHECK_SIZES = [{"n": 1}, {"n": 33}]', 'CHECK_SIZES = [\n    {"n": 1},\n    {"n": -2},\n]'))
    check_failure(path, "t.py:7", "'CHECK_SIZES[1].n': must be at least 1, got -2")


def test_solution_holds_what_run_needs_and_not_the_reference(tmp_path):
    path = tmp_path / "t.py"
    path.write_text(
        SINGLE.replace(
            "def run(x):\n    return 2 * x",
            """\
# How much to scale by.
FACTOR = 2


def helper(x):
    return FACTOR * x


def unused():
    return NAME


def run(x):
    return cupy.asarray(helper(x))""",
        )
    )
    task = load_task(path)
    source = task.start_source
    assert source.startswith("import cupy\n")
    assert "# How much to scale by.\nFACTOR = 2\n\n\ndef helper(x):" in source
    for gone in ("reference", "make_inputs", "SIZES", "NAME", "unused"):
        assert gone not in source
    assert task.spec.path == str(path)
    assert task.spec.check_sizes == ({"n": 1}, {"n": 33})


def test_file_of_neither_form(tmp_path):
    path = tmp_path / "t.py"
    path.write_text("x = 1\n")
    check_failure(path, "t.py", "neither a KernelBench task nor a native task", "class Model")
    other = tmp_path / "t.txt"
    other.write_text("")
    check_failure(other, "t.txt", "a task is a folder with task.toml or a Python file")
