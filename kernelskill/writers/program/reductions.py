"""Reductions, norms, softmax and scans of values, each as stages and element-wise steps on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from kernelskill.errors import WriterError
from kernelskill.writers.program.ir import ACC, Stage
from kernelskill.writers.program.sizes import Dim, text_of
from kernelskill.writers.program.values import Value, combine, loops, moved, reshaped
from kernelskill.writers.template import expression as ex

FEW_OUTPUTS, LONG = 4096, 1 << 16
"""Below so many outputs of reductions longer than that, the outermost reduced axis is reduced in a kernel of its own: a block
an output would leave multiprocessors idle."""
Then = Callable[[ex.Expression], ex.Expression]


def axes_of(value: Value, dim: Any) -> tuple[int, ...]:
    """The axes that `dim` names, in order; all for None. Raises WriterError."""
    rank = len(value.dims)
    if dim is None or dim == [] or dim == ():
        return tuple(range(rank))
    named = dim if isinstance(dim, (tuple, list)) else (dim,)
    if any(not -max(rank, 1) <= axis < max(rank, 1) for axis in named):
        raise WriterError(f"dim {dim} of a {rank}-dimensional value is not known")
    return tuple(sorted({int(axis) % max(rank, 1) for axis in named}))


def reduced(value: Value, dim: Any, how: str, keepdim: bool = False, then: Then = lambda acc: acc) -> Value:
    """The value combined over axes (`how`: sum, prod, max, min, argmax, argmin); `then` is applied to each result."""
    axes = axes_of(value, dim)
    kept = [d for k, d in enumerate(value.dims) if k not in axes]
    lengths = [int(value.dims[k]) for k in axes]
    several = len([n for n in lengths if n > 1]) > 1
    split = several and math.prod(map(int, kept)) < FEW_OUTPUTS and math.prod(lengths) > LONG
    if split and not how.startswith("arg"):
        first = next(k for k in axes if int(value.dims[k]) > 1)
        inner = _reduced(value, [k for k in axes if k != first], how, lambda acc: acc)
        place = sum(k < first for k in range(len(value.dims)) if k not in axes)
        result = _reduced(inner, [place], how, then)
    else:
        result = _reduced(value, list(axes), how, then)
    return _with_ones(result, value.dims, axes) if keepdim else result


def _reduced(value: Value, axes: list[int], how: str, then: Then) -> Value:
    builder, dims = value.builder, value.dims
    outer, _ = loops([d for k, d in enumerate(dims) if k not in axes], "i")
    inner, _ = loops([dims[k] for k in axes], "r")
    left, right = iter(outer), iter(inner)
    coords = tuple(next(right if k in axes else left).name for k in range(len(dims)))
    dtype = "long long" if how.startswith("arg") else "float"
    stage = Stage("reduce", builder.result(), outer, value.element(coords), reduced=inner, combine=how, epilogue=then(ACC),
                  dtype=dtype)
    return builder.add(stage, [d for k, d in enumerate(dims) if k not in axes])


def _with_ones(value: Value, dims: Sequence[Dim], axes: Sequence[int]) -> Value:
    """The value with an axis of one element for every reduced one."""
    one = value.builder.sizes.of(1)
    return reshaped(value, [one if k in axes else d for k, d in enumerate(dims)])


def count(value: Value, axes: Sequence[int]) -> ex.Expression:
    """The number of elements over these axes."""
    return value.builder.position(" * ".join(["1.0", *(text_of(value.dims[k]) for k in axes)]))


def mean(value: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """The arithmetic mean over axes."""
    number = count(value, axes_of(value, dim))
    return reduced(value, dim, "sum", keepdim, lambda acc: ex.Call("div", (acc, number)))


def variance(value: Value, dim: Any, centre: Value, less: int = 0, keepdim: bool = True) -> Value:
    """The mean square distance from `centre` (shape kept), over n - `less`."""
    gap = combine(value.builder, "sub", value, centre)
    number = count(value, axes_of(value, dim))
    if less:
        number = ex.Call("sub", (number, ex.Constant(float(less))))
    return reduced(combine(value.builder, "mul", gap, gap), dim, "sum", keepdim, lambda acc: ex.Call("div", (acc, number)))


def normalised(value: Value, centre: Value, spread: Value, eps: float) -> Value:
    """(value - centre) / sqrt(spread + eps)."""
    b = value.builder
    scale = combine(b, "rsqrt", combine(b, "add", spread, eps))
    return combine(b, "mul", combine(b, "sub", value, centre), scale)


def affine(value: Value, weight: Value | None, bias: Value | None) -> Value:
    """value * weight + bias, where they are."""
    scaled = value if weight is None else combine(value.builder, "mul", value, weight)
    return scaled if bias is None else combine(value.builder, "add", scaled, bias)


def along_channels(vector: Value | None, rank: int) -> Value | None:
    """A vector as it broadcasts along axis 1 of a value of that rank."""
    if vector is None:
        return None
    one = vector.builder.sizes.of(1)
    return reshaped(vector, [one, vector.dims[0], *[one] * (rank - 2)])


def layer_norm(value: Value, shape: Sequence[int], weight: Value | None = None, bias: Value | None = None,
               eps: float = 1e-5) -> Value:
    """Over the trailing axes."""
    value = value.settled()
    axes = tuple(range(len(value.dims) - len(tuple(shape)), len(value.dims)))
    centre = mean(value, axes, True)
    return affine(normalised(value, centre, variance(value, axes, centre), eps), weight, bias)


def rms_norm(value: Value, shape: Sequence[int], weight: Value | None = None, eps: float | None = None) -> Value:
    """Over the trailing axes."""
    b, value = value.builder, value.settled()
    axes = tuple(range(len(value.dims) - len(tuple(shape)), len(value.dims)))
    square = mean(combine(b, "mul", value, value), axes, True)
    scale = combine(b, "rsqrt", combine(b, "add", square, 1.1920929e-07 if eps is None else eps))
    return affine(combine(b, "mul", value, scale), weight, None)


def group_norm(value: Value, groups: int, weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5) -> Value:
    """Over the channels of a group and everything inside them."""
    value, sizes = value.settled(), value.builder.sizes
    group = sizes.of(value.dims[1] // sizes.of(groups) if groups != value.dims[1] else 1)
    grouped = reshaped(value, [value.dims[0], sizes.of(groups), group, *value.dims[2:]])
    axes = tuple(range(2, len(grouped.dims)))
    centre = mean(grouped, axes)
    wide = _with_ones(centre, grouped.dims, axes)
    spread = variance(grouped, axes, wide, keepdim=False)

    def of_channel(statistic: Value) -> Value:
        ones = [sizes.of(1)] * (len(value.dims) - 2)
        return moved(statistic, [value.dims[0], value.dims[1], *ones], lambda c: (c[0], f"({c[1]} // {text_of(group)})"))

    rank = len(value.dims)
    scaled = normalised(value, of_channel(centre), of_channel(spread), eps)
    return affine(scaled, along_channels(weight, rank), along_channels(bias, rank))


def softmax(value: Value, dim: Any) -> Value:
    """exp(value - top) / sum of it."""
    b, value = value.builder, value.settled()
    powers, total = _powers(value, dim)[1:]
    return combine(b, "div", powers, total)


def log_softmax(value: Value, dim: Any) -> Value:
    """value - top - log(sum of exponentials)."""
    b, value = value.builder, value.settled()
    top, _, total = _powers(value, dim)
    return combine(b, "sub", combine(b, "sub", value, top), combine(b, "log", total))


def _powers(value: Value, dim: Any) -> tuple[Value, Value, Value]:
    """The maximum, exp(value - maximum), and its sum; shapes kept."""
    top = reduced(value, dim, "max", True)
    powers = combine(value.builder, "exp", combine(value.builder, "sub", value, top))
    return top, powers, reduced(powers, dim, "sum", True)


def logsumexp(value: Value, dim: Any, keepdim: bool = False) -> Value:
    """log of the sum of exponentials; an infinite maximum is the result."""
    b, value = value.builder, value.settled()
    top = reduced(value, dim, "max", True)
    finite = combine(b, "where", combine(b, "lt", combine(b, "abs", top), float("inf")), top, 0.0)
    total = reduced(combine(b, "exp", combine(b, "sub", value, finite)), dim, "sum", True)
    result = combine(b, "add", combine(b, "log", total), finite)
    axes = axes_of(value, dim)
    return result if keepdim else reshaped(result.settled(), [d for k, d in enumerate(value.dims) if k not in axes])


def norm(value: Value, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Value:
    """The p-norm for p = 1, 2 or infinity."""
    b, value = value.builder, value.settled()
    if p in (2, 2.0, "fro", None):
        return reduced(combine(b, "mul", value, value), dim, "sum", keepdim, lambda acc: ex.Call("sqrt", (acc,)))
    if p in (1, float("inf")):
        return reduced(combine(b, "abs", value), dim, "sum" if p == 1 else "max", keepdim)
    raise WriterError(f"the {p}-norm is not known")


def scanned(value: Value, dim: int, how: str) -> Value:
    """The running sum or product along an axis."""
    value, builder = value.settled(), value.builder
    axis = int(dim) % len(value.dims)
    axes, coords = value.axes("i")
    stage = Stage("scan", builder.result(), axes, value.element(coords), reduced=(axes[axis],), combine=how)
    return builder.add(stage, value.dims)
