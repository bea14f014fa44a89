"""No source and no option can put a host file into the compile log. Each case leaks, or might, without the guard."""

from __future__ import annotations

import pytest

from evaluator.compile import CompileError, GuardError, compile_cuda
from evaluator.includes import Refused, checked_source
from evaluator.toolkit import find_toolkit

SECRET = "tell_nobody_5381"
KERNEL = '\nextern "C" __global__ void f(float* a) { a[0] = 1; }\n'
ATTACKS = {
    "absolute": ('#include "{file}"', 1),
    "angle brackets": ("#include <{file}>", 1),
    "spaces": ('   #   include   "{file}"', 1),
    "no space": ('#include"{file}"', 1),
    "parent folders": ('#include "../../../../../../../../..{file}"', 1),
    "parent folders after a real one": ('#include "cuda/../../../../../../../../../../../../..{file}"', 1),
    "macro": ('#define F "{file}"\n#include F', 2),
    "stringised macro": ("#define S(x) #x\n#define T(x) S(x)\n#include T({file})", 3),
    "comment before the name": ('#include /* */ "{file}"', 1),
    "comment before the hash": ('/* \n */ #include "{file}"', 2),
    "comment inside": ('#/**/include "{file}"', 1),
    "comment made of a string": ('const char* s = "/*";\n#include "{file}"\n// */', 2),
    "fake raw string": ('#define XR\n#define A XR"(\n#include "{file}"\n// )"', 3),
    "continued keyword": ('#inc\\\nlude "{file}"', 1),
    "continued with trailing blank": ('#inc\\ \nlude "{file}"', 1),
    "continued comment": ('// harmless \\\n text\n#include "{file}"', 3),
    "carriage return": ('int a;\r#include "{file}"', 2),
    "digraph": ('%:include "{file}"', 1),
    "trigraph hash": ('??=include "{file}"', 1),
    "trigraph splice": ('#inc??/\nlude "{file}"', 1),
    "include_next": ('#include_next "{file}"', 1),
    "embed": ('__device__ const char d[] = {{\n#embed "{file}"\n}};', 2),
    "import directive": ('#import "{file}"', 1),
    "header unit": ('import "{file}";', 1),
    "has_include": ('#if __has_include("{file}")\n#error it is there\n#endif', 1),
    "has_include of a macro": ('#define F "{file}"\n#if __has_include(F)\n#error it is there\n#endif', 2),
    "has_embed": ('#if __has_embed("{file}")\n#error it is there\n#endif', 1),
    "line": ('#line 1 "{file}"\nint x = y;', 1),
    "line marker": ('# 1 "{file}"\nint x = y;', 1),
    "NUL": ('int a;\0\n#include "{file}"', 1),
    "steered CUDA header": ('#define __THRUST_HOST_SYSTEM_ALGORITH_DETAIL_HEADER_INCLUDE(x) "{file}"\n'
                            "#include <thrust/reduce.h>", 1),
    "disabled by #if, still named": ('#if 0\n#include "{file}"\n#endif', 2),
}


@pytest.fixture
def secret_file(tmp_path):
    path = tmp_path / "secret"
    path.write_text(f"{SECRET} is not C++\n")
    return path


@pytest.mark.parametrize("name", ATTACKS)
def test_source_attacks_are_refused_with_their_line(name, secret_file):
    template, line = ATTACKS[name]
    with pytest.raises(GuardError) as caught:
        compile_cuda(template.format(file=secret_file) + KERNEL)
    assert SECRET not in caught.value.log
    assert caught.value.line == line
    assert f"kernel.cu({line}): error" in caught.value.log


def test_the_leak_is_real_without_the_guard(secret_file, monkeypatch):
    monkeypatch.setattr("evaluator.compile.checked_source", lambda source, _: source)
    with pytest.raises(CompileError) as caught:
        compile_cuda(f'#include "{secret_file}"{KERNEL}')
    assert SECRET in caught.value.log


@pytest.mark.parametrize("options", [
    ("-include", "{file}"), ("-include={file}",), ("--pre-include={file}",), ("--pre-include", "{file}"), ("-I{folder}",),
    ("-I", "{folder}"), ("--include-path={folder}",), ("--include-path", "{folder}"), ("--use-pch={file}",),
    ("--pch-dir={folder}",), ("--create-pch={file}",), ("--time={file}",), ("-fdevice-time-trace={file}",),
    ("-DX=1\n#include \"{file}\"",), ("@{file}",), ("--options-file={file}",), ("{file}",),
    ("-Xcudafe", "--pre_include={file}"),
    ("-D__THRUST_HOST_SYSTEM_ALGORITH_HEADER_INCLUDE(x)=<{file}>",),
])
def test_options_that_name_files_are_refused(options, secret_file):
    asked = tuple(o.format(file=secret_file, folder=secret_file.parent) for o in options)
    before = secret_file.read_text()
    with pytest.raises(GuardError) as caught:
        compile_cuda('#include "secret"' + KERNEL if "folder" in str(options) else KERNEL, options=asked)
    assert SECRET not in caught.value.log
    assert secret_file.read_text() == before


def test_architecture_is_not_the_solutions_choice():
    with pytest.raises(GuardError, match="sets the architecture"):
        compile_cuda(KERNEL, options=("-arch=sm_80",))


def test_name_expression_cannot_carry_a_directive(secret_file):
    with pytest.raises(GuardError, match="not part of a C"):
        compile_cuda(KERNEL, name_expressions=[f'f);\n#include "{secret_file}"\n(void'])


def test_file_in_the_working_directory_is_not_read(secret_file, monkeypatch):
    monkeypatch.chdir(secret_file.parent)
    with pytest.raises(CompileError) as caught:
        compile_cuda('#include "secret"' + KERNEL)
    assert SECRET not in caught.value.log


@pytest.mark.parametrize("source", [
    '// #include "/etc/passwd"\n', '/*\n#include "/etc/passwd"\n*/\n', "#define STR(x) #x\n", "#pragma unroll\n", "#\n",
    '#if __has_include(<cuda_bf16.h>)\n#include <cuda_bf16.h>\n#endif\n', "int big = 1'000'000; // it's fine\n",
    "const char* s = R\"x(a \" /* b)x\"; int after;\n", "char c = '\"'; /* \" */ int d;\n",
])
def test_honest_text_passes(source):
    assert compile_cuda("__device__ int here;\n" + source + KERNEL).ptx


def test_checked_text_keeps_lines_and_columns():
    source = "int a; /* one\n two */ int b; // three\n#define M(x) \\\n  x\nint c;\n"
    text = checked_source(source, find_toolkit().include_dirs)
    assert text.splitlines()[1] == "        int b;         "
    assert text.splitlines()[4] == "int c;"


def test_refusal_names_what_is_permitted():
    with pytest.raises(Refused, match=r"cuda_fp16\.h"):
        checked_source('#include "/etc/passwd"', find_toolkit().include_dirs)
