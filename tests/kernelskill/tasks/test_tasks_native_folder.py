from __future__ import annotations

import pytest
from task_files import REFERENCE, TOML, check_failure, edited, write_folder

from kernelskill.tasks import load_task

TOML_MISTAKES = [
    ('name = "row_scale"\n', "", "task.toml", "missing key 'name'", 'name = "row_softmax"'),
    ('name = "row_scale"', "name = 3", "task.toml:1", "'name': must be text in quotes, got 3", ""),
    ('name = "row_scale"', 'name = "a b"', "task.toml:1", "'name': use letters, digits, - and _, got 'a b'", ""),
    ('name = "row_scale"', 'nmae = "x"', "task.toml:1", "unknown key 'nmae'", "did you mean 'name'?"),
    ("rows = 64", "rows = 0", "task.toml:5", "'sizes.rows': must be at least 1, got 0", ""),
    ("rows = 64", 'rows = "64"', "task.toml:5", "'sizes.rows': must be a whole number, got '64'", ""),
    ("rows = 64", "rows = true", "task.toml:5", "'sizes.rows': must be a whole number, got True", ""),
    ("rows = 3\n", "", "task.toml:8", "'check_sizes[0]' does not give 'rows'", "each entry needs rows, cols"),
    ("cols = 5", "cols = 5\ncolls = 1", "task.toml:11", "unknown key 'check_sizes[0].colls'", "did you mean 'cols'?"),
    ("rtol = 1e-5", "rtol = -1", "task.toml:13", "'tolerance.rtol': must be zero or more, got -1.0", ""),
    ("rtol = 1e-5", "reltol = 1", "task.toml:13", "unknown key 'tolerance.reltol'", "did you mean 'rtol'?"),
    (
        'flops = "rows * cols"',
        'flops = "rows * col"',
        "task.toml:2",
        "'flops': 'rows * col' uses unknown name 'col'",
        "did you mean 'cols'?",
    ),
    (
        'flops = "rows * cols"',
        'flops = "rows // (cols - cols)"',
        "task.toml:2",
        "'flops': 'rows // (cols - cols)' divides by zero for rows=64, cols=32",
        "",
    ),
    ('x = ["rows", "cols"]', 'z = ["rows", "cols"]', "task.toml:16", "'inputs.z': not an input of the reference", ""),
    ('flops = "rows * cols"', 'allow = ["tf23"]', "task.toml:2", "'allow': unknown precision 'tf23'", "did you mean 'tf32'?"),
    ("[sizes]\nrows = 64\ncols = 32\n", "", "task.toml", "missing key 'sizes'", "[sizes] with one line a size"),
    ("[[check_sizes]]\nrows = 3\ncols = 5\n", "", "task.toml", "missing key 'check_sizes'", "small, awkward values"),
]


@pytest.mark.parametrize(("old", "new", "where", "message", "hint"), TOML_MISTAKES)
def test_mistake_in_task_toml_is_told_with_its_line(tmp_path, old, new, where, message, hint):
    check_failure(write_folder(tmp_path / "t", toml=edited(TOML, old, new)), where, message, hint)


REFERENCE_MISTAKES = [
    ("def reference(x):", "def reference(x:", "reference.py:8:14", "Python syntax error: '(' was never closed", ""),
    ("def reference(x):", "def refrence(x):", "reference.py", "no function 'reference'", "did you mean 'refrence'?"),
    (
        "def make_inputs(rng, rows, cols):",
        "def inputs(rng, rows, cols):",
        "reference.py",
        "no function 'make_inputs'",
        "inputs",
    ),
    (
        "def make_inputs(rng, rows, cols):",
        "def make_inputs():",
        "reference.py:4",
        "make_inputs must take a random generator first",
        "def make_inputs(rng, rows, cols)",
    ),
    (
        "def make_inputs(rng, rows, cols):",
        "def make_inputs(rng, rows):",
        "reference.py:4",
        "make_inputs does not take the size 'cols'",
        "",
    ),
    (
        "def make_inputs(rng, rows, cols):",
        "def make_inputs(rng, rows, columns):",
        "reference.py:4",
        "make_inputs takes 'columns', which is not one of the task's sizes",
        "did you mean 'cols'?",
    ),
    (
        "def reference(x):",
        "def reference(*x):",
        "reference.py:8",
        "reference must name its inputs one by one (no *args, **kwargs or /)",
        "",
    ),
    ("def reference(x):", "def reference():", "reference.py:8", "reference takes no input", ""),
    (
        "def reference(x):",
        "def reference(x, bias):",
        "reference.py:8",
        "reference takes 'bias', which make_inputs does not return",
        "",
    ),
    (
        '{"x": rng',
        '{"xs": rng',
        "reference.py:5",
        "make_inputs returns 'xs', which reference does not take",
        "did you mean 'x'?",
    ),
]


@pytest.mark.parametrize(("old", "new", "where", "message", "hint"), REFERENCE_MISTAKES)
def test_mistake_in_reference_is_told_with_its_line(tmp_path, old, new, where, message, hint):
    check_failure(write_folder(tmp_path / "t", reference=edited(REFERENCE, old, new)), where, message, hint)


def test_toml_syntax_error_has_line_and_column(tmp_path):
    check_failure(
        write_folder(tmp_path / "t", toml=edited(TOML, "rows = 64", "rows = = 64")), "task.toml:5:8", "not TOML: Invalid value"
    )


def test_folder_without_task_names_the_tasks_below(tmp_path):
    write_folder(tmp_path / "mine")
    check_failure(tmp_path, str(tmp_path), "folder without task.toml", "mine")


def test_missing_path(tmp_path):
    check_failure(tmp_path / "none.py", "none.py", "no such file or folder")


def test_valid_folder(tmp_path):
    task = load_task(write_folder(tmp_path / "t"))
    assert task.name == "row_scale"
    assert task.spec.sizes == {"rows": 64, "cols": 32}
    assert task.spec.check_sizes == ({"rows": 3, "cols": 5},)
    assert (task.spec.tolerance.rtol, task.spec.tolerance.atol) == (1e-5, 1e-5)
    assert task.spec.path == str(tmp_path / "t" / "reference.py")
    assert task.flops == "rows * cols"
    assert load_task(tmp_path / "t" / "task.toml").spec == task.spec


def test_nothing_of_the_task_runs_while_it_loads(tmp_path):
    """Top-level code of the reference would leave a file behind."""
    trap = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
    load_task(write_folder(tmp_path / "t", reference=trap + REFERENCE))
    assert not (tmp_path / "ran").exists()


FAMILY = """\
family = "row_reduction"
operation = "softmax"
"""
FAMILY_MISTAKES = [
    (
        'family = "row_reductions"\noperation = "sum"',
        "task.toml:3",
        "unknown family 'row_reductions'",
        "did you mean 'row_reduction'?",
    ),
    ('operation = "sum"', "task.toml:3", "'operation' without 'family'", "families:"),
    (
        'family = "row_reduction"\noperation = "softmx"',
        "task.toml:4",
        "unknown row reduction 'softmx'",
        "did you mean 'softmax'?",
    ),
    ('family = "matmul"\noperation = "gemm"', "task.toml:4", "family matmul has no operation 'gemm'", "leave operation out"),
]


@pytest.mark.parametrize(("lines", "where", "message", "hint"), FAMILY_MISTAKES)
def test_mistake_in_family(tmp_path, lines, where, message, hint):
    arguments = (
        '\n[arguments]\na = "x"\nb = "x"\nm = "rows"\nn = "rows"\nk = "cols"\n'
        if "matmul" in lines
        else '\n[arguments]\ninput = "x"\nrows = "rows"\ncols = "cols"\n'
    )
    if "family" not in lines:
        arguments = ""
    toml = edited(TOML, 'flops = "rows * cols"\n', f'flops = "rows * cols"\n{lines}\n') + arguments
    check_failure(write_folder(tmp_path / "t", toml=toml), where, message, hint)


ARGUMENT_MISTAKES = [
    ('input = "x"\nrows = "rows"', "task.toml:28", "missing key 'arguments.cols'", "cols, input, rows"),
    (
        'input = "z"\nrows = "rows"\ncols = "cols"',
        "task.toml:29",
        "'arguments.input': 'z' is not an input of the reference",
        "",
    ),
    (
        'input = "x"\nrows = "rowz"\ncols = "cols"',
        "task.toml:30",
        "'arguments.rows': 'rowz' uses unknown name 'rowz'",
        "did you mean 'rows'?",
    ),
    (
        'input = "x"\nrows = "rows"\ncols = "cols"\nepsilon = 1e-5',
        "task.toml:32",
        "unknown key 'arguments.epsilon'",
        "did you mean",
    ),
]


@pytest.mark.parametrize(("lines", "where", "message", "hint"), ARGUMENT_MISTAKES)
def test_mistake_in_arguments(tmp_path, lines, where, message, hint):
    toml = edited(TOML, 'flops = "rows * cols"\n', f'flops = "rows * cols"\n{FAMILY}') + f"\n[arguments]\n{lines}\n"
    check_failure(write_folder(tmp_path / "t", toml=toml), where, message, hint)


OPERATION_MISTAKES = [
    ("glu(x)", "'operation': unknown function 'glu'", "did you mean 'gelu'?"),
    ("gelu(x, x)", "'operation': gelu takes 1 values, got 2", ""),
    ("x + y", "'operation': 'y' is not one of its inputs", "known: x"),
    ("x ** 2", "'operation': 'x ** 2' is not allowed here", "+ - * /"),
    ("x +", "'operation': 'x +' is not an expression", ""),
    ("x.real", "'operation': 'x.real' is not allowed here", ""),
]


@pytest.mark.parametrize(("operation", "message", "hint"), OPERATION_MISTAKES)
def test_mistake_in_elementwise_operation(tmp_path, operation, message, hint):
    lines = f'family = "elementwise"\noperation = "{operation}"\n'
    arguments = '\n[arguments]\ninputs = { x = ["rows", "cols"] }\noutput = "y"\nshape = ["rows", "cols"]\n'
    toml = edited(TOML, 'flops = "rows * cols"\n', f'flops = "rows * cols"\n{lines}') + arguments
    check_failure(write_folder(tmp_path / "t", toml=toml), "task.toml:4", message, hint)
