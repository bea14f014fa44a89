"""The row operations: for each algorithm, the passes over a row and the value that is written.

Texts are C. `v` stands for the row's current element; a cached row's pass may assign to it. `cols` is the row length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Merge:
    """How the partial results of two threads become one."""

    type: str
    body: str
    """Body of a C function of `a` and `b` of that type."""
    members: tuple[str, ...] = ()
    """Where the type is a struct of floats."""


MERGES = {
    "sum": Merge("float", "return a + b;"),
    "max": Merge("float", "return fmaxf(a, b);"),
    "max_or_nan": Merge("float", "return (b > a || b != b) ? b : a;"),
    "min_or_nan": Merge("float", "return (b < a || b != b) ? b : a;"),
    "softmax": Merge(
        "Softmax", "const float top = fmaxf(a.top, b.top);\nreturn {top, a.sum * EXP(a.top - top) + b.sum * EXP(b.top - top)};",
        ("top", "sum"),
    ),
    "moments": Merge(
        "Moments",
        "const float count = a.count + b.count, share = b.count / fmaxf(count, 1.0f), gap = b.mean - a.mean;\n"
        "return {count, a.mean + gap * share, a.squares + b.squares + gap * gap * a.count * share};",
        ("count", "mean", "squares"),
    ),
}


@dataclass(frozen=True)
class Pass:
    """One loop over the row, then the merge of the threads' partial results."""

    about: str
    merge: str
    variable: str
    declare: tuple[str, ...]
    update: tuple[str, ...]
    """Statements for one element."""
    partial: str = ""
    """The thread's partial result, where it is not `variable` itself."""
    then: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowOp:
    """One operation."""

    passes: tuple[Pass, ...]
    result: str
    """The output: of an element (over `v`) or of the row."""
    per_element: bool
    reference: Callable[..., Any]
    """NumPy: (x, weight, bias, eps) -> output."""
    online: tuple[Pass, ...] = ()
    """Fewer passes, with a running result; () where there is no such algorithm."""
    cached: tuple[Pass, ...] = ()
    """Passes over a row held in registers, where they differ from `passes`."""
    cached_result: str = ""
    transcendental: bool = False
    weighted: bool = False
    """Whether the operation takes a weight and a bias."""
    eps: float = 0.0
    """Added to the variance (or a lower limit of the norm) where the task says nothing."""


LOWEST = "-3.402823466e38f"
INFINITE = "__int_as_float(0x7f800000)"
TOP = Pass("The row's maximum.", "max", "top", (f"float top = {LOWEST};",), ("top = fmaxf(top, v);",))
EXP_SUM = Pass("The sum of exponentials.", "sum", "total", ("float total = 0.0f;",), ("total += EXP(v - top);",))
ONLINE = Pass(
    "Maximum and sum of exponentials in one pass: the sum is rescaled when the maximum grows.",
    "softmax", "part", (f"Softmax part = {{{LOWEST}, 0.0f}};",),
    ("if (v > part.top) { part.sum *= EXP(part.top - v); part.top = v; }", "part.sum += EXP(v - part.top);"),
    then=("const float top = part.top, total = part.sum;",),
)
MEAN = Pass("The mean.", "sum", "total", ("float total = 0.0f;",), ("total += v;",), then=("const float mean = total / cols;",))
VARIANCE = Pass(
    "The variance around that mean.", "sum", "squares", ("float squares = 0.0f;",),
    ("squares += (v - mean) * (v - mean);",),
    then=("const float scale = rsqrtf(squares / cols + EPS);",),
)
# A thread sums around its own first element: the cancellation is then bounded by the number of its elements, and
# no division is needed until the threads' moments are merged.
MOMENTS = Pass(
    "Mean and variance in one pass: sums around the thread's first element, merged as moments (Chan et al.).",
    "moments", "part", ("const float shift = FIRST;", "float count = 0.0f, sum = 0.0f, squares = 0.0f;"),
    ("count += 1.0f;", "sum += v - shift;", "squares += (v - shift) * (v - shift);"),
    partial="Moments{count, shift + sum / fmaxf(count, 1.0f), squares - sum * sum / fmaxf(count, 1.0f)}",
    then=("const float mean = part.mean, scale = rsqrtf(fmaxf(part.squares, 0.0f) / cols + EPS);",),
)


def _squares(*then: str) -> tuple[Pass, ...]:
    return (Pass("The sum of squares.", "sum", "squares", ("float squares = 0.0f;",), ("squares += v * v;",), then=then),)


def _one_pass(merge: str, initial: str, update: str, result: str, reference: Callable[..., Any]) -> RowOp:
    return RowOp((Pass("The row, once.", merge, "total", (f"float total = {initial};",), (update,)),), result, False, reference)


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _log_softmax(x: Any) -> Any:
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _layer_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    scaled = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + eps)
    return scaled * (1.0 if weight is None else weight) + (0.0 if bias is None else bias)


def _rms_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    scaled = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
    return scaled * (1.0 if weight is None else weight) + (0.0 if bias is None else bias)


def _l2_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    return x / np.maximum(np.sqrt((x * x).sum(axis=-1, keepdims=True)), eps)


ROW_OPS: dict[str, RowOp] = {
    "sum": _one_pass("sum", "0.0f", "total += v;", "total", lambda x, w, b, e: x.sum(axis=-1)),
    "mean": _one_pass("sum", "0.0f", "total += v;", "total / cols", lambda x, w, b, e: x.mean(axis=-1)),
    "max": _one_pass("max_or_nan", f"-{INFINITE}", "total = merge_max_or_nan(total, v);", "total",
                     lambda x, w, b, e: x.max(axis=-1)),
    "min": _one_pass("min_or_nan", INFINITE, "total = merge_min_or_nan(total, v);", "total",
                     lambda x, w, b, e: x.min(axis=-1)),
    "softmax": RowOp(
        (TOP, EXP_SUM), "EXP(v - top) / total", True, lambda x, w, b, e: _softmax(x), online=(ONLINE,),
        cached=(TOP, Pass("Exponentials replace the row; their sum.", "sum", "total", ("float total = 0.0f;",),
                          ("v = EXP(v - top);", "total += v;"), then=("const float scale = 1.0f / total;",))),
        cached_result="v * scale", transcendental=True,
    ),
    "log_softmax": RowOp((TOP, EXP_SUM), "v - top - LOG(total)", True, lambda x, w, b, e: _log_softmax(x), online=(ONLINE,),
                         transcendental=True),
    "layer_norm": RowOp((MEAN, VARIANCE), "(v - mean) * scale", True, _layer_norm, online=(MOMENTS,), weighted=True, eps=1e-5),
    "rms_norm": RowOp(_squares("const float scale = rsqrtf(squares / cols + EPS);"), "v * scale", True, _rms_norm,
                      weighted=True, eps=1e-5),
    "l2_norm": RowOp(_squares("const float norm = sqrtf(squares);", "const float scale = 1.0f / (norm < EPS ? EPS : norm);"),
                     "v * scale", True, _l2_norm),
}
