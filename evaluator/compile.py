"""CUDA C -> PTX and cubin with NVRTC through ctypes: no driver, no nvcc, no CuPy.

Flags are those that CuPy passes, so a solution compiles to the same code here and on a machine with a GPU.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from evaluator.includes import HeaderNotFound, Refused, checked_source, header_hint
from evaluator.options import checked_options
from evaluator.toolkit import INSTALL_HINT, ToolkitMissing, find_toolkit

CUPY_FLAGS = ("-ftz=true", "--device-as-default-execution-space")
CUPY_STANDARD = "--std=c++17"
"""What CuPy 14 adds where the options name no standard (CuPy 13: c++11)."""
REPORT_FLAGS = ("-lineinfo", "--ptxas-options=-v")
SUCCESS, COMPILATION_FAILED = 0, 6
LOG_HINTS = (
    (re.compile(r'identifier "INFINITY" is undefined'),
     "NVRTC does not define INFINITY: use __int_as_float(0x7f800000) or CUDART_INF_F of <math_constants.h>"),
    (re.compile(r'identifier "(?:NAN|FLT_MAX|FLT_MIN|DBL_MAX|INT_MAX)" is undefined'),
     "NVRTC has no <float.h>/<limits.h>: use <cuda/std/limits>, or the literal (FLT_MAX = 3.402823466e+38f)"),
    (re.compile(r'identifier "u?int(?:8|16|32|64)_t" is undefined'),
     "add #include <cuda/std/cstdint>, or use int, unsigned, long long"),
    (re.compile(r'identifier "(?:__half2?|half2?)" is undefined'), "add #include <cuda_fp16.h>"),
    (re.compile(r'identifier "(?:__nv_bfloat16|__nv_bfloat162)" is undefined'), "add #include <cuda_bf16.h>"),
    (re.compile(r'(?:namespace|identifier|name) "?(?:wmma|nvcuda)'), "add #include <mma.h>"),
    (re.compile(r'(?:namespace|identifier|name) "?(?:cg|cooperative_groups)\b'), "add #include <cooperative_groups.h>"),
    (re.compile(r'namespace "std"'), "NVRTC has no host standard library: use cuda::std with #include <cuda/std/...>"),
)


class CompileError(Exception):
    """The source does not compile. `log` is NVRTC's log with hints appended; `line` the first error's line, if any."""

    def __init__(self, log: str, line: int | None = None) -> None:
        super().__init__(log)
        self.log, self.line = log, line


class GuardError(CompileError):
    """The source or an option was refused before compiling, because it could read host files."""


@dataclass(frozen=True)
class Compiled:
    """One NVRTC result."""

    ptx: str
    cubin: bytes
    log: str
    """Compiler warnings and ptxas's resource report."""
    lowered: Mapping[str, str] = field(default_factory=dict)
    """Name expression -> mangled name."""
    arch: str = ""


def compile_cuda(
    source: str,
    *,
    arch: str = "sm_90",
    options: Sequence[str] = (),
    name_expressions: Sequence[str] = (),
    filename: str = "kernel.cu",
) -> Compiled:
    """Compiles `source` for a real architecture.

    `options` are the solution's own (CuPy spelling). `name_expressions` instantiate templates, e.g. `"f<float, 128>"`.
    Raises GuardError (a file or option that is not permitted), CompileError (it does not compile), ToolkitMissing.
    """
    text, own_options = permitted(source, options, name_expressions, filename)
    standard = () if any("std=" in option for option in own_options) else (CUPY_STANDARD,)
    flags = [f"-arch={arch}", *CUPY_FLAGS, *standard, *own_options, *REPORT_FLAGS,
             *(f"-I{d}" for d in find_toolkit().include_dirs)]
    return _compile(text, flags, tuple(name_expressions), filename, arch)


def permitted(source: str, options: Sequence[str] = (), name_expressions: Sequence[str] = (), filename: str = "kernel.cu",
              ) -> tuple[str, list[str]]:
    """The source and the options as they may be compiled. Raises like `compile_cuda`, but compiles nothing."""
    toolkit = find_toolkit()
    try:
        own_options = checked_options(options, toolkit.include_dirs)
        for name in name_expressions:
            _check_name_expression(name)
        return checked_source(source, toolkit.include_dirs), own_options
    except Refused as refusal:
        raise GuardError(_at(filename, refusal.line, f"error: {refusal}"), refusal.line) from None
    except HeaderNotFound as missing:
        log = _at(filename, missing.line, f"catastrophic error: {missing}")
        hint = header_hint(missing.header)
        raise CompileError(log + (f"hint: {hint}\n" if hint else ""), missing.line) from None


def nvrtc_version() -> tuple[int, int]:
    """(major, minor) of the NVRTC in use. Raises ToolkitMissing."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def _check_name_expression(name: str) -> None:
    """A name expression is pasted into the program as text: it must not be able to carry a directive."""
    if not re.fullmatch(r"[\w\s:<>,*&()+\-./=!~|^]*", name) or "\n" in name or "\r" in name:
        raise Refused(f"name expression {name!r} holds characters that are not part of a C++ name")


def _at(filename: str, line: int | None, message: str) -> str:
    return f"{filename}({line}): {message}\n" if line else f"{filename}: {message}\n"


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    path = find_toolkit().nvrtc
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise ToolkitMissing(f"cannot load {path}: {error}; {INSTALL_HINT}") from error


def _compile(text: str, flags: Sequence[str], names: tuple[str, ...], filename: str, arch: str) -> Compiled:
    library, program = _library(), ctypes.c_void_p()
    _check(library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), filename.encode(), 0, None, None))
    try:
        for name in names:
            _check(library.nvrtcAddNameExpression(program, name.encode()))
        array = (ctypes.c_char_p * len(flags))(*[flag.encode() for flag in flags])
        status = library.nvrtcCompileProgram(program, len(flags), array)
        log = _text(program, "ProgramLog")
        if status != SUCCESS:
            raise _compile_error(log or _reason(status))
        return Compiled(_text(program, "PTX"), _bytes(program, "CUBIN"), log, _lowered(program, names), arch)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _compile_error(log: str) -> CompileError:
    hints = [hint for pattern, hint in LOG_HINTS if pattern.search(log)]
    first = re.search(r"\((\d+)\): (?:catastrophic )?error", log)
    return CompileError(log.rstrip() + "\n" + "".join(f"hint: {hint}\n" for hint in hints), int(first[1]) if first else None)


def _lowered(program: ctypes.c_void_p, names: tuple[str, ...]) -> dict[str, str]:
    lowered = {}
    for name in names:
        mangled = ctypes.c_char_p()
        _check(_library().nvrtcGetLoweredName(program, name.encode(), ctypes.byref(mangled)))
        lowered[name] = (mangled.value or b"").decode()
    return lowered


def _bytes(program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(getattr(_library(), f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(getattr(_library(), f"nvrtcGet{what}")(program, buffer))
    return buffer.raw


def _text(program: ctypes.c_void_p, what: str) -> str:
    return _bytes(program, what).rstrip(b"\0").decode(errors="replace")


def _reason(status: int) -> str:
    _library().nvrtcGetErrorString.restype = ctypes.c_char_p
    message: bytes = _library().nvrtcGetErrorString(status)
    return f"{message.decode()} ({status})"


def _check(status: int) -> None:
    if status != SUCCESS:
        raise CompileError(f"NVRTC: {_reason(status)}")
