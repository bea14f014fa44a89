from __future__ import annotations

import ast

import pytest
from task_files import CUDA, TOML, check_failure, edited, write_folder

from evaluator.origins import Origin, origin_of
from kernelskill.tasks import load_task

START_MISTAKES = [
    ('cu = "start.cu"', 'cu = "begin.cu"', "task.toml:19", "'start.cu': no file begin.cu beside the task", ""),
    ('cu = "start.cu"\n', "", "task.toml:18", "'start' names neither a CUDA file nor a solution", "solution ="),
    (
        'kernel = "scale"',
        'kernel = "scal"',
        "task.toml:20",
        "'start.kernel': no kernel 'scal' in start.cu; it has scale",
        "did you mean 'scale'?",
    ),
    (
        'kernel = "scale"',
        'kernel = "not_a_kernel"',
        "task.toml:20",
        "'start.kernel': no kernel 'not_a_kernel' in start.cu; it has scale",
        "",
    ),
    (
        '"ceil_div(rows * cols, 128)"',
        '"ceildiv(rows, 128)"',
        "task.toml:21",
        "'start.grid': 'ceildiv(rows, 128)' calls unknown function 'ceildiv'",
        "did you mean 'ceil_div'?",
    ),
    (
        '"ceil_div(rows * cols, 128)"',
        '"rows / 2"',
        "task.toml:21",
        "'start.grid': 'rows / 2': 'rows / 2' is not allowed here",
        "//",
    ),
    (
        '"ceil_div(rows * cols, 128)"',
        '"rows // 5"',
        "task.toml:21",
        "'start.grid': rows // 5 = 0 for rows=3, cols=5; allowed is 1 to 2147483647",
        "",
    ),
    (
        '"ceil_div(rows * cols, 128)"',
        '1, "rows * 2000"',
        "task.toml:21",
        "'start.grid': rows * 2000 = 128000 for rows=64, cols=32; allowed is 1 to 65535",
        "",
    ),
    (
        "block = [128]",
        "block = [2048]",
        "task.toml:22",
        "'start.block': 2048 threads [2048]; a block holds at most 1024, 64 along z",
        "",
    ),
    (
        "block = [128]",
        'block = ["rows"]',
        "task.toml:22",
        "'start.block': must be one to three whole numbers, got ['rows']",
        "",
    ),
    (
        '"x", "y", "rows * cols", 2.5',
        '"x", "y", "rows * cols"',
        "task.toml:23",
        "'start.args': 3 entries, kernel scale takes 4: x, y, n, factor",
        "",
    ),
    (
        '"x", "y", "rows * cols", 2.5',
        '"x", "z", "rows * cols", 2.5',
        "task.toml:23",
        "'start.args': 'z' is not an input or output, but parameter 'y' is a pointer",
        "known: x, y",
    ),
    (
        '"x", "y", "rows * cols", 2.5',
        '"x", "y", "rws", 2.5',
        "task.toml:23",
        "'start.args': 'rws' is not an input, output or size",
        "did you mean 'rows'?",
    ),
    (
        '"x", "y", "rows * cols", 2.5',
        '"x", "y", "y", 2.5',
        "task.toml:23",
        "'start.args': 'y' is an array, but parameter 'n' is int",
        "",
    ),
    (
        '"x", "y", "rows * cols", 2.5',
        '"x", "y", 2.5, 2.5',
        "task.toml:23",
        "'start.args': 2.5 is no whole number, but parameter 'n' is int",
        "",
    ),
    (
        '"x", "y", "rows * cols", 2.5',
        '"x", "y", "rows * 100000000", 2.5',
        "task.toml:23",
        "'start.args': rows * 100000000 = 6400000000 does not fit parameter 'n' of type int",
        "long long",
    ),
    ('dtype = "float32"', 'dtype = "float64"', "task.toml:23", "'start.args': 'y' is float64, but parameter 'y' is float*", ""),
    (
        'dtype = "float32"',
        'dtype = "float23"',
        "task.toml:24",
        "'start.outputs.y.dtype': unknown dtype 'float23'",
        "did you mean 'float32'?",
    ),
    ("outputs = { y =", "outputs = { x =", "task.toml:24", "'start.outputs.x': must be a new name, not an input or a size", ""),
    (
        'shape = ["rows", "cols"]',
        'shape = ["row", "cols"]',
        "task.toml:24",
        "'start.outputs.y.shape': 'row' uses unknown name 'row'",
        "did you mean 'rows'?",
    ),
    ("block = [128]", "blocks = [128]", "task.toml:22", "unknown key 'start.blocks'", "did you mean 'block'?"),
    (
        '[inputs]\nx = ["rows", "cols"]\n',
        "",
        "task.toml:16",
        "size 'cols' is not a dimension of any input, so the launch cannot know it",
        "[inputs]",
    ),
]


@pytest.mark.parametrize(("old", "new", "where", "message", "hint"), START_MISTAKES)
def test_mistake_in_start_is_told_with_its_line(tmp_path, old, new, where, message, hint):
    check_failure(write_folder(tmp_path / "t", toml=edited(TOML, old, new)), where, message, hint)


def test_cuda_file_without_kernels(tmp_path):
    check_failure(
        write_folder(tmp_path / "t", cuda="// __global__ void scale() {}\n"), "start.cu", "holds no __global__ function"
    )


def test_struct_by_value_cannot_be_passed(tmp_path):
    cuda = edited(CUDA, "float factor)", "float2 factor)")
    check_failure(
        write_folder(tmp_path / "t", cuda=cuda),
        "task.toml:23",
        "'start.args': cannot pass a value for parameter 'factor' of type 'float2'",
        "Python solution",
    )


def rendered(tmp_path, toml=TOML, cuda=CUDA):
    source = load_task(write_folder(tmp_path / "t", toml=toml, cuda=cuda)).start_source
    ast.parse(source)
    return source


def test_rendered_start_packs_scalars_as_the_signature_says(tmp_path):
    source = rendered(tmp_path)
    assert "SCALE((ceil_div(rows * cols, 128),), (128,), (x, y, np.int32(rows * cols), np.float32(2.5)))" in source
    assert "rows = x.shape[0]" in source
    assert 'MODULE.get_function("scale")' in source
    assert "name_expressions" not in source
    assert CUDA.strip() in source


@pytest.mark.parametrize(
    ("ctype", "dtype"),
    [
        ("long long", "int64"),
        ("size_t", "uint64"),
        ("unsigned", "uint32"),
        ("int64_t", "int64"),
        ("unsigned int", "uint32"),
        ("const int", "int32"),
    ],
)
def test_integer_parameter_types(tmp_path, ctype, dtype):
    assert f"np.{dtype}(rows * cols)" in rendered(tmp_path, cuda=edited(CUDA, "int n, float", f"{ctype} n, float"))


def test_kernel_without_extern_c_is_looked_up_by_name_expression(tmp_path):
    cuda = edited(CUDA, 'extern "C" __global__', "template <int W> __global__")
    source = rendered(tmp_path, toml=edited(TOML, 'kernel = "scale"', 'kernel = "scale<4>"'), cuda=cuda)
    assert 'name_expressions=("scale<4>",)' in source
    assert 'SCALE_4 = MODULE.get_function("scale<4>")' in source


def test_extern_c_block_counts_as_extern_c(tmp_path):
    cuda = 'extern "C" {\n' + edited(CUDA, 'extern "C" ', "") + "}\n"
    assert "name_expressions" not in rendered(tmp_path, cuda=cuda)


def test_shared_memory_beyond_the_default_asks_for_consent(tmp_path):
    source = rendered(tmp_path, toml=edited(TOML, "block = [128]", 'block = [128]\nshared_bytes = "4 * cols"'))
    assert "shared = 4 * cols" in source
    assert "SCALE.max_dynamic_shared_size_bytes = shared" in source
    assert "shared_mem=shared)" in source


def test_cuda_text_with_triple_quotes_survives(tmp_path):
    cuda = CUDA + '// """ and a backslash at the end of a line \\\n'
    names: dict[str, object] = {}
    tree = ast.parse(rendered(tmp_path, cuda=cuda))
    source = next(n for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "SOURCE")
    exec(compile(ast.Module([source], []), "solution", "exec"), names)
    assert str(names["SOURCE"]).strip() == cuda.strip()


@pytest.mark.parametrize("head", ["", "\n\n// a comment\n", '// """ quotes\n', "// \'\'\' and \"\"\" quotes\n"])
def test_line_n_of_the_source_is_line_n_of_the_file(tmp_path, head):
    solution = tmp_path / "solution.py"
    solution.write_text(rendered(tmp_path, cuda=head + CUDA))
    tree = ast.parse(solution.read_text())
    source = next(n for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "SOURCE")
    code = ast.literal_eval(source.value)
    for number, text in enumerate((head + CUDA).split("\n"), 1):
        if text.strip():
            assert code.split("\n")[number - 1] == text
            assert origin_of(code, number, str(solution)) == Origin(f"start.cu:{number}", text.strip())


def test_several_launches_with_a_temporary(tmp_path):
    toml = edited(
        TOML,
        'kernel = "scale"\ngrid = ["ceil_div(rows * cols, 128)"]\nblock = [128]\nargs = ["x", "y", "rows * cols", 2.5]\n',
        'temporaries = { t = { shape = ["rows", "cols"] } }\n',
    )
    for source, target in (("x", "t"), ("t", "y")):
        toml += (
            f'\n[[start.launches]]\nkernel = "scale"\ngrid = [1]\nblock = [32]\nargs = ["{source}", "{target}", "rows", 1.0]\n'
        )
    source = rendered(tmp_path, toml=toml)
    assert source.index("(x, t, np.int32(rows)") < source.index("(t, y, np.int32(rows)")
    assert source.count("get_function") == 1
    broken = edited(toml, 'args = ["t", "y", "rows", 1.0]', 'args = ["t", "q", "rows", 1.0]')
    check_failure(
        write_folder(tmp_path / "t", toml=broken),
        "task.toml:33",
        "'start.launches[1].args': 'q' is not an input or output, but parameter 'y' is a pointer",
    )


def test_python_start_must_take_the_inputs(tmp_path):
    head = TOML[: TOML.index("[start]")] + '[start]\nsolution = "start.py"\n'
    folder = write_folder(tmp_path / "t", toml=head)
    (folder / "start.py").write_text("def run(x):\n    return x\n")
    assert load_task(folder).start_source == "def run(x):\n    return x\n"
    (folder / "start.py").write_text("\ndef run(x, y):\n    return x\n")
    check_failure(folder, "start.py:2", "run takes 2 values, the task has 1 inputs: x", "def run(x)")
    (folder / "start.py").write_text("def runs(x):\n    return x\n")
    check_failure(folder, "start.py", "no function 'run'", "did you mean 'runs'?")
