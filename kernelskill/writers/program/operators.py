"""The torch functions and tensor methods that a program can hold, by name; `relu_` counts as `relu`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from evaluator.kernelbench_module import SMALL
from kernelskill.errors import WriterError
from kernelskill.writers import torch_ops
from kernelskill.writers.program import products, reductions
from kernelskill.writers.program.sizes import Dim, text_of
from kernelskill.writers.program.values import Value, combine, moved, plus, reshaped, times
from kernelskill.writers.template import expression as ex

POINTWISE = (
    "relu", "sigmoid", "tanh", "silu", "mish", "selu", "exp", "log", "sqrt", "abs", "erf", "neg", "softsign",
    "hardsigmoid", "hardswish", "add", "sub", "mul", "div", "truediv", "true_divide", "pow", "square", "clamp", "clip",
    "gelu", "softplus", "maximum", "minimum", "where", "lt", "le", "gt", "ge", "leaky_relu", "elu", "hardtanh", "relu6",
    "identity",
)
"""Element-wise functions that are the same for terms and for values."""


def _dims(x: Value, shape: Sequence[Any]) -> list[Dim]:
    """A wanted shape with its -1 found."""
    flat = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else list(shape)
    flat, sizes = [_own(x, d) for d in flat], x.builder.sizes
    if -1 not in flat:
        return [sizes.of(d) for d in flat]
    place = flat.index(-1)
    others = [d for d in flat if d != -1]
    left = list(x.dims)
    for d in list(others):  # sizes that stand in both shapes cancel, so that the rest stays a product of sizes
        match = next((k for k, own in enumerate(left) if text_of(own) == text_of(d)), None)
        if match is not None:
            left.pop(match)
            others.remove(d)
    rest: int = sizes.of(1)
    for own in left:
        rest = own if int(rest) == 1 else rest * own
    for d in others:
        rest = rest // d if int(d) != 1 else rest
    return [sizes.of(rest) if k == place else sizes.of(d) for k, d in enumerate(flat)]


def _own(x: Value, wanted: int) -> int:
    """A large literal is one of the value's own sizes, or the product of its last ones, where it equals that."""
    if isinstance(wanted, Dim) or wanted <= SMALL:
        return wanted
    found: int | None = next((d for d in x.dims if int(d) == wanted), None)
    product: int = x.dims[-1]
    for d in x.dims[-2::-1]:
        product = d * product
        found = product if found is None and int(product) == wanted else found
    return wanted if found is None else found


def _view(x: Value, *shape: Any) -> Value:
    return reshaped(x, _dims(x, shape))


def _flatten(x: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    rank = len(x.dims)
    start, end = start_dim % rank, end_dim % rank
    return reshaped(x, _dims(x, [*x.dims[:start], -1, *x.dims[end + 1 :]]))


def _unsqueeze(x: Value, dim: int) -> Value:
    at = dim % (len(x.dims) + 1)
    return reshaped(x, [*x.dims[:at], x.builder.sizes.of(1), *x.dims[at:]])


def _squeeze(x: Value, dim: Any = None) -> Value:
    axes = reductions.axes_of(x, dim)
    return reshaped(x, [d for k, d in enumerate(x.dims) if k not in axes or int(d) != 1])


def _permute(x: Value, *order: Any) -> Value:
    return products.permuted(x, order[0] if len(order) == 1 else order)


def _expand(x: Value, *shape: Any) -> Value:
    wanted = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else list(shape)
    lead = len(wanted) - len(x.dims)
    dims = [x.dims[k - lead] if d == -1 else x.builder.sizes.of(d) for k, d in enumerate(wanted)]
    return moved(x, dims, lambda c: tuple("0" if int(d) == 1 else at for at, d in zip(c[lead:], x.dims, strict=True)))


def _getitem(x: Any, index: Any) -> Any:
    if not isinstance(x, Value):
        return x[index]
    parts = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        taken = len([p for p in parts if p is not None]) - 1
        parts[at : at + 1] = [slice(None)] * (len(x.dims) - taken)
    for place, part in enumerate(list(parts)):
        if part is None:
            x = _unsqueeze(x, place)
            parts[place] = slice(None)
    dropped = 0
    for axis, part in enumerate(parts):
        if isinstance(part, slice):
            x = _slice(x, axis - dropped, part)
        elif isinstance(part, int):
            x, dropped = _select(x, axis - dropped, part), dropped + 1
        else:
            raise WriterError("indexing by values is not known")
    return x


def _slice(x: Value, axis: int, part: slice) -> Value:
    extent, step = x.dims[axis], 1 if part.step is None else part.step
    if step < 1:
        raise WriterError("a slice that goes backwards is not known")

    def bound(value: Any, default: int) -> int:
        whole = default if value is None else value
        return whole if int(whole) >= 0 else extent + whole

    start, stop = bound(part.start, 0), bound(part.stop, extent)
    stop = extent if int(stop) > int(extent) else stop
    if int(start) == 0 and int(stop) == int(extent) and step == 1:
        return x
    length = stop - start if step == 1 else (stop - start + (step - 1)) // step
    dims = [*x.dims[:axis], x.builder.sizes.of(length), *x.dims[axis + 1 :]]
    return moved(x, dims, lambda c: (*c[:axis], plus(c[axis] if step == 1 else f"{c[axis]} * {step}", text_of(start)),
                                     *c[axis + 1 :]))


def _select(x: Value, dim: int, index: int) -> Value:
    axis = dim % len(x.dims)
    at = text_of(index if int(index) >= 0 else x.dims[axis] + index)
    return moved(x, [*x.dims[:axis], *x.dims[axis + 1 :]], lambda c: (*c[:axis], at, *c[axis:]))


def _narrow(x: Value, dim: int, start: int, length: int) -> Value:
    return _slice(x, dim % len(x.dims), slice(start, start + length))


def _split(x: Value, size: Any, dim: int = 0) -> tuple[Value, ...]:
    axis = dim % len(x.dims)
    total = int(x.dims[axis])
    if not isinstance(size, (tuple, list)) and total % int(size) == 0:
        size = x.dims[axis] // (total // int(size))  # so many equal parts, whatever the sizes are
    lengths = list(size) if isinstance(size, (tuple, list)) else [size] * (total // int(size)) + [total % int(size)]
    found, start = [], x.builder.sizes.of(0)
    for length in (n for n in lengths if int(n)):
        found.append(_narrow(x, axis, start, length))
        start = x.builder.sizes.of(length if int(start) == 0 else start + length)
    return tuple(found)


def _chunk(x: Value, chunks: int, dim: int = 0) -> tuple[Value, ...]:
    return _split(x, (x.dims[dim] + (chunks - 1)) // chunks, dim)


def _flip(x: Value, *dims: Any) -> Value:
    axes = reductions.axes_of(x, dims[0] if len(dims) == 1 else dims)
    return moved(x, x.dims, lambda c: tuple(f"({text_of(d)} - 1 - {at})" if k in axes else at
                                            for k, (d, at) in enumerate(zip(x.dims, c, strict=True))))


def _cat(values: Sequence[Value], dim: int = 0) -> Value:
    pieces = [v for v in values if all(int(d) for d in v.dims)]
    axis, builder = dim % len(pieces[0].dims), pieces[0].builder
    ends = [pieces[0].dims[axis]]
    for piece in pieces[1:]:
        ends.append(builder.sizes.of(ends[-1] + piece.dims[axis]))

    def element(coords: tuple[str, ...]) -> ex.Expression:
        found: ex.Expression | None = None
        for k in range(len(pieces) - 1, -1, -1):
            start = text_of(ends[k - 1]) if k else ""
            at = f"({coords[axis]} - {start})" if k else coords[axis]
            inside = f"{coords[axis]} >= {start} and " if k else ""
            own = (*coords[:axis], at, *coords[axis + 1 :])
            before = f"{coords[axis]} < {text_of(ends[k])}"
            one = builder.guarded(inside + before, partial(pieces[k].element, own), 0.0)
            found = one if found is None else ex.Call("where", (builder.position(before), one, found))
        assert found is not None
        return found

    dims = [*pieces[0].dims[:axis], ends[-1], *pieces[0].dims[axis + 1 :]]
    return Value(builder, tuple(dims), element, computed=True)


def _stack(values: Sequence[Value], dim: int = 0) -> Value:
    return _cat([_unsqueeze(v, dim if dim >= 0 else dim + len(v.dims) + 1) for v in values], dim)


def _pad(x: Value, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Value:
    if mode != "constant":
        raise WriterError(f"padding by '{mode}' is not known")
    sizes, rank = x.builder.sizes, len(x.dims)
    before = [0] * rank
    dims = list(x.dims)
    for k in range(len(pad) // 2):
        axis, low, high = rank - 1 - k, int(pad[2 * k]), int(pad[2 * k + 1])
        before[axis] = low
        dims[axis] = sizes.of(dims[axis] + (low + high)) if low + high else dims[axis]

    def element(coords: tuple[str, ...]) -> ex.Expression:
        at = tuple(plus(c, str(-b) if b else "") for c, b in zip(coords, before, strict=True))
        guards = [f"{c} >= 0 and {c} < {text_of(d)}" for c, d, wide in zip(at, x.dims, dims, strict=True) if d is not wide]
        return products.zeroed(x, at, guards, float(value or 0.0))

    return Value(x.builder, tuple(dims), element, computed=True)


def _triangle(keep: str) -> Callable[..., Value]:
    def step(x: Value, diagonal: int = 0) -> Value:
        mask = Value(x.builder, x.dims, lambda c: x.builder.position(f"{c[-1]} - {c[-2]} {keep} {diagonal}"), computed=True)
        return combine(x.builder, "where", mask, x, 0.0)
    return step


def _filled(number: float) -> Callable[..., Value]:
    def step(x: Value, *rest: Any, **keywords: Any) -> Value:
        return Value(x.builder, x.dims, lambda c: ex.Constant(number), computed=True)
    return step


def _masked_fill(x: Value, mask: Value, value: float) -> Value:
    return combine(x.builder, "where", mask, float(value), x)


def _compared(function: str) -> Callable[..., Value]:
    def step(x: Any, y: Any) -> Value:
        return combine((x if isinstance(x, Value) else y).builder, function, x, y)
    return step


def _power(x: Any, exponent: Any) -> Value:
    if isinstance(exponent, Value) or not isinstance(x, Value):
        return combine((exponent if isinstance(exponent, Value) else x).builder, "pow", x, exponent)
    if exponent in (0.5, 2, 3, 4):
        known: Value = torch_ops.BY_NAME["pow"](x, exponent)
        return known
    return combine(x.builder, "rsqrt", x) if exponent == -0.5 else combine(x.builder, "pow", x, float(exponent))


def _reduction(how: str) -> Callable[..., Value]:
    def step(x: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Value:
        return reductions.reduced(x.settled(), dim, how, keepdim)
    return step


def _mean(x: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Value:
    return reductions.mean(x.settled(), dim, keepdim)


class Pair(tuple[Value, Value]):
    """Values and indices of max and min along an axis; what is not used costs nothing."""

    @property
    def values(self) -> Value:
        """The extreme elements."""
        return self[0]


def _extreme(how: str) -> Callable[..., Any]:
    def step(x: Value, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, (Value, float)):
            return combine(x.builder, how, x, dim)
        found = reductions.reduced(x.settled(), dim, how, keepdim)
        return found if dim is None else Pair((found, None))  # type: ignore[arg-type]
    return step


def _variance(root: bool) -> Callable[..., Value]:
    def step(x: Value, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *,
             correction: int | None = None) -> Value:
        x = x.settled()
        less = int(unbiased) if correction is None else correction
        found = reductions.variance(x, dim, reductions.mean(x, dim, True), less, keepdim)
        return combine(x.builder, "sqrt", found) if root else found
    return step


def _dropout(x: Value, p: float = 0.5, training: bool = True, inplace: bool = False) -> Value:
    if training and p > 0:
        raise WriterError("dropout in training mode draws random numbers")
    return x


def _normalize(x: Value, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Value:
    x = x.settled()
    return combine(x.builder, "div", x, combine(x.builder, "max", reductions.norm(x, p, dim, True), eps))


def _norm(x: Value, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    return reductions.norm(x, p, dim, keepdim)


def _attention(q: Value, k: Value, v: Value, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
               scale: float | None = None, enable_gqa: bool = False) -> Value:
    if attn_mask is not None or dropout_p or enable_gqa:
        raise WriterError("attention with a mask, dropout or shared heads is not known")
    b = q.builder
    depth = Value(b, (), lambda c: b.position(f"1.0 * {text_of(q.dims[-1])}"), computed=True)
    factor: Any = combine(b, "rsqrt", depth) if scale is None else scale
    scores = combine(b, "mul", products.matmul(q, products.transposed(k)), factor)
    if is_causal:
        mask = Value(b, scores.dims, lambda c: b.position(f"{c[-1]} <= {c[-2]}"), computed=True)
        scores = combine(b, "where", mask, scores, float("-inf"))
    return products.matmul(reductions.softmax(scores, -1), v)


def _unfold(x: Value, dimension: int, size: int, step: int) -> Value:
    """Windows along an axis, their elements along a new last one."""
    axis, sizes = dimension % len(x.dims), x.builder.sizes
    count = products.windows(x.dims[axis], sizes.of(size), step, 0, 1)
    dims = [*x.dims[:axis], count, *x.dims[axis + 1 :], sizes.of(size)]
    return moved(x, dims, lambda c: (*c[:axis], plus(times(c[axis], str(step)), c[-1]), *c[axis + 1 : -1]))


def _heads(x: Value, heads: int) -> Value:
    """[length, batch, heads * depth] as [batch, heads, length, depth]."""
    length, batch, width = x.dims
    split = reshaped(x, [length, batch, x.builder.sizes.of(heads), x.builder.sizes.of(width // heads)])
    return products.permuted(split, (1, 2, 0, 3))


def _multi_head_attention(
    query: Value, key: Value, value: Value, embed_dim: int, heads: int, weight: Value | None, bias: Value | None, bias_k: Any,
    bias_v: Any, add_zero_attn: bool, dropout_p: float, out_weight: Value, out_bias: Value | None, training: bool = True,
    key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None, **more: Any,
) -> tuple[Value, None]:
    """nn.MultiheadAttention's function, without masks and dropout; the weights that it may return are not known."""
    masks = (bias_k, bias_v, key_padding_mask, attn_mask)
    if weight is None or any(m is not None for m in masks) or add_zero_attn or (dropout_p and training) or len(query.dims) != 3:
        raise WriterError("multi-head attention with masks, dropout, other widths or without a batch is not known")
    parts = []
    for k, x in enumerate((query, key, value)):
        width = x.dims[-1]
        start = width * k if k else 0
        shift = None if bias is None else _narrow(bias, 0, start, width)
        parts.append(_heads(products.linear(x.settled(), _narrow(weight, 0, start, width), shift), heads))
    mixed = products.permuted(_attention(parts[0], parts[1], parts[2]), (2, 0, 1, 3))
    joined = reshaped(mixed, [mixed.dims[0], mixed.dims[1], query.dims[-1]])
    return products.linear(joined, out_weight, out_bias), None


def _addmm(bias: Value, a: Value, b: Value) -> Value:
    return combine(a.builder, "add", products.matmul(a, b), bias)


def _size(x: Value, dim: int | None = None) -> Any:
    return tuple(x.dims) if dim is None else x.dims[dim]


def _numel(x: Value) -> int:
    return math.prod(x.dims)


def _pool(how: str, spatial: int) -> Callable[..., Value]:
    def largest(x: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                ceil_mode: bool = False, return_indices: bool = False) -> Value:
        return products.pooled(x, how, kernel_size, stride, padding, dilation, ceil_mode, spatial)

    def average(x: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                count_include_pad: bool = True, divisor_override: Any = None) -> Value:
        padded = any(products.per_axis(padding, spatial))
        if divisor_override is not None or (padded and not count_include_pad):
            raise WriterError("average pooling with another divisor is not known")
        return products.pooled(x, how, kernel_size, stride, padding, 1, ceil_mode, spatial)

    return largest if how == "max" else average


def _adaptive(spatial: int) -> Callable[..., Value]:
    return lambda x, output_size: products.adaptive_mean(x, output_size, spatial)


OPERATORS: dict[str, Callable[..., Any]] = {
    **{name: torch_ops.BY_NAME[name] for name in POINTWISE},
    "pow": _power, "eq": _compared("eq"), "ne": _compared("ne"), "multiply": torch_ops.BY_NAME["mul"],
    "rsqrt": lambda x: combine(x.builder, "rsqrt", x),
    "view": _view, "reshape": _view, "flatten": _flatten, "unsqueeze": _unsqueeze, "squeeze": _squeeze, "permute": _permute,
    "transpose": products.transposed, "t": products.transposed, "expand": _expand, "getitem": _getitem, "select": _select,
    "narrow": _narrow, "split": _split, "chunk": _chunk, "flip": _flip, "cat": _cat, "concat": _cat, "stack": _stack,
    "pad": _pad,
    "triu": _triangle(">="), "tril": _triangle("<="), "zeros_like": _filled(0.0), "ones_like": _filled(1.0),
    "masked_fill": _masked_fill, "contiguous": lambda x: x, "clone": lambda x: x, "detach": lambda x: x,
    "float": lambda x: x, "to": lambda x, *rest, **more: x, "dropout": _dropout, "dropout1d": _dropout, "dropout2d": _dropout,
    "dropout3d": _dropout, "size": _size, "dim": lambda x: len(x.dims), "numel": _numel,
    "sum": _reduction("sum"), "prod": _reduction("prod"), "amax": _reduction("max"), "amin": _reduction("min"), "mean": _mean,
    "argmax": _reduction("argmax"), "argmin": _reduction("argmin"), "max": _extreme("max"), "min": _extreme("min"),
    "var": _variance(False), "std": _variance(True), "norm": _norm, "vector_norm": _norm, "normalize": _normalize,
    "softmax": lambda x, dim=None, _stacklevel=3, dtype=None: reductions.softmax(x, dim),
    "log_softmax": lambda x, dim=None, _stacklevel=3, dtype=None: reductions.log_softmax(x, dim),
    "logsumexp": reductions.logsumexp, "layer_norm": reductions.layer_norm, "rms_norm": reductions.rms_norm,
    "cumsum": lambda x, dim, dtype=None: reductions.scanned(x, dim, "sum"),
    "cumprod": lambda x, dim, dtype=None: reductions.scanned(x, dim, "prod"),
    "matmul": products.matmul, "mm": products.matmul, "bmm": products.matmul, "mv": products.matmul, "linear": products.linear,
    "addmm": _addmm, "unfold": _unfold, "multi_head_attention_forward": _multi_head_attention,
    "scaled_dot_product_attention": _attention,
    "einsum": lambda equation, *operands: products.einsum(equation, *(
        operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands)),
    **{f"conv{n}d": products.convolution for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": products.transposed_convolution for n in (1, 2, 3)},
    **{f"max_pool{n}d": _pool("max", n) for n in (1, 2, 3)}, **{f"avg_pool{n}d": _pool("mean", n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": _adaptive(n) for n in (1, 2, 3)},
}
"""Name -> function of values. What depends on the module around it (batch and group norm) is in tracing.py."""
