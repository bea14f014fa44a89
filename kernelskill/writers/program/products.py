"""Matrix products, convolutions and pooling of values: sums (or maxima) over windows and shared axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kernelskill.errors import WriterError
from kernelskill.writers.program.ir import ACC, Axis, Stage
from kernelskill.writers.program.reductions import mean
from kernelskill.writers.program.sizes import Dim, text_of
from kernelskill.writers.program.values import Value, common_shape, loops, moved, plus, reshaped, times
from kernelskill.writers.template import expression as ex


def einsum(equation: str, *operands: Value) -> Value:
    """The sum of products that the equation names. Raises WriterError for what is no plain one."""
    left, _, right = equation.replace(" ", "").partition("->")
    names = left.split(",")
    if "..." in equation or "->" not in equation or any(len(set(n)) != len(n) for n in names) or len(operands) > 4:
        raise WriterError(f"the einsum '{equation}' is not known")
    extents = {letter: d for n, o in zip(names, operands, strict=True) for letter, d in zip(n, o.dims, strict=True)}
    shared = [letter for letter in extents if letter not in right]
    axes, coords = loops([extents[letter] for letter in right], "i")
    inner, deep = loops([extents[letter] for letter in shared], "r")
    at = dict(zip((*right, *shared), (*coords, *deep), strict=True))
    elements = [o.settled().element(tuple(at[letter] for letter in n)) for n, o in zip(names, operands, strict=True)]
    shape = [extents[letter] for letter in right]
    if len(elements) == 2 and shared:
        return _product(operands[0], axes, inner, elements[0], elements[1], shape)
    body = elements[0]
    for element in elements[1:]:
        body = ex.Call("mul", (body, element))
    builder = operands[0].builder
    stage = Stage("reduce", builder.result(), axes, body, reduced=inner, combine="sum")
    return builder.add(stage if shared else Stage("map", builder.result(), axes, body), shape)


def _product(value: Value, axes: tuple[Axis, ...], inner: tuple[Axis, ...], a: ex.Expression, b: ex.Expression,
             shape: Sequence[Dim]) -> Value:
    stage = Stage("product", value.builder.result(), axes, a, b, inner, "sum", ACC)
    return value.builder.add(stage, shape)


def matmul(a: Value, b: Value) -> Value:
    """torch.matmul: vectors, matrices, and batches that broadcast."""
    a, b = a.settled(), b.settled()
    one = a.builder.sizes.of(1)
    left = reshaped(a, [one, *a.dims]) if len(a.dims) == 1 else a
    right = reshaped(b, [*b.dims, one]) if len(b.dims) == 1 else b
    lead = common_shape([Value(a.builder, v.dims[:-2], v.element) for v in (left, right)]) if max(
        len(left.dims), len(right.dims)) > 2 else ()
    k, m, n = left.dims[-1], left.dims[-2], right.dims[-1]
    axes, coords = loops([*lead, m, n], "i")
    inner, (r,) = loops([k], "r")
    batch = coords[:-2]
    body = left.broadcast([*lead, m, k])((*batch, coords[-2], r))
    second = right.broadcast([*lead, k, n])((*batch, r, coords[-1]))
    result = _product(a, axes, inner, body, second, [*lead, m, n])
    dropped = [*lead, *([m] if len(a.dims) > 1 else []), *([n] if len(b.dims) > 1 else [])]
    return result if len(dropped) == len(result.dims) else reshaped(result, dropped)


def linear(x: Value, weight: Value, bias: Value | None = None) -> Value:
    """x weight^T + bias."""
    result = matmul(x, transposed(weight))
    return result if bias is None else _plus_bias(result, lambda axes: bias.element((axes[-1].name,)))


def _plus_bias(result: Value, bias: Callable[[tuple[Axis, ...]], ex.Expression]) -> Value:
    """The product just built, with a bias in its epilogue."""
    stage = result.builder.stages.pop()
    return result.builder.add(replace(stage, epilogue=ex.Call("add", (ACC, bias(stage.axes)))), result.dims)


def transposed(value: Value, first: int = -2, second: int = -1) -> Value:
    """Two axes swapped."""
    order = list(range(len(value.dims)))
    order[first], order[second] = order[second], order[first]
    return permuted(value, order)


def permuted(value: Value, order: Sequence[int]) -> Value:
    """The axes in another order."""
    order = [int(k) % len(value.dims) for k in order]
    back = [order.index(k) for k in range(len(order))]
    return moved(value, [value.dims[k] for k in order], lambda c: tuple(c[k] for k in back))


def per_axis(value: Any, count: int) -> tuple[int, ...]:
    """A number or one for each spatial axis."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


def windows(extent: Dim, kernel: Dim, step: int, pad: int, hole: int, more: int = 0) -> Dim:
    """How many windows fit along an axis that is longer by `more`."""
    value = (int(extent) + 2 * pad + more - hole * (int(kernel) - 1) - 1) // step + 1
    if (step, hole) == (1, 1) and kernel.text.isdigit() and int(kernel) == 2 * pad + 1:
        return extent
    padded = f"{extent.text} + {2 * pad + more}" if pad or more else extent.text
    reach = f"{hole} * ({kernel.text} - 1) + 1" if hole > 1 else kernel.text
    text = f"{padded} - {reach if hole == 1 else f'({reach})'}"
    return extent.table.named(f"({text}) // {step} + 1" if step > 1 else f"{text} + 1", value)


def _reached(extent: Dim, kernel: Dim, step: int, more: int, hole: int) -> Dim:
    """The extent of a transposed convolution's output."""
    value = (int(extent) - 1) * step + more + hole * (int(kernel) - 1) + 1
    reach = f"{hole} * ({kernel.text} - 1) + 1" if hole > 1 else kernel.text
    text = f"({extent.text} - 1) * {step} + {reach}" if step > 1 else f"{extent.text} - 1 + {reach}"
    return extent.table.named(f"{text} + {more}" if more > 0 else f"{text} - {-more}" if more else text, value)


def convolution(x: Value, weight: Value, bias: Value | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                groups: int = 1) -> Value:
    """A convolution of any number of spatial axes."""
    spatial = len(weight.dims) - 2
    if len(x.dims) != spatial + 2:
        raise WriterError("a convolution of an input without a batch is not known")
    sizes, kernel = x.builder.sizes, weight.dims[2:]
    steps, holes = per_axis(stride, spatial), per_axis(dilation, spatial)
    if padding == "same":
        padding = [int(d) * (int(k) - 1) // 2 for k, d in zip(kernel, holes, strict=True)]
    pads = per_axis(0 if padding == "valid" else padding, spatial)
    out = [windows(x.dims[2 + k], kernel[k], steps[k], pads[k], holes[k]) for k in range(spatial)]

    def place(k: int, c: str, r: str) -> tuple[str, str]:
        at = plus(plus(times(c, str(steps[k])), times(r, str(holes[k]))), str(-pads[k]) if pads[k] else "")
        return at, f"{at} >= 0 and {at} < {text_of(x.dims[2 + k])}" if pads[k] else ""

    depth = weight.dims[1]
    many = int(groups) > 1
    group = sizes.of(x.dims[1] // depth) if many else sizes.of(1)
    filters = sizes.of(weight.dims[0] // group) if many else weight.dims[0]
    return _windows(x, bias, group, filters, depth, list(kernel), out, place,
                    lambda g, o, c, rs: weight.element((plus(times(g, text_of(filters)), o), c, *rs)))


def transposed_convolution(x: Value, weight: Value, bias: Value | None = None, stride: Any = 1, padding: Any = 0,
                           output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Value:
    """The transpose of a convolution: an output element gathers the inputs that reach it."""
    spatial = len(weight.dims) - 2
    if len(x.dims) != spatial + 2:
        raise WriterError("a convolution of an input without a batch is not known")
    sizes, kernel = x.builder.sizes, weight.dims[2:]
    steps, holes, pads, more = (per_axis(v, spatial) for v in (stride, dilation, padding, output_padding))
    out = [_reached(x.dims[2 + k], kernel[k], steps[k], more[k] - 2 * pads[k], holes[k]) for k in range(spatial)]

    def place(k: int, c: str, r: str) -> tuple[str, str]:
        shifted = f"({plus(c, str(pads[k]) if pads[k] else '')} - {times(r, str(holes[k]))})"
        at = shifted if steps[k] == 1 else f"({shifted} // {steps[k]})"
        divides = f" and {shifted} % {steps[k]} == 0" if steps[k] > 1 else ""
        return at, f"{shifted} >= 0{divides} and {at} < {text_of(x.dims[2 + k])}"

    many = int(groups) > 1
    group = sizes.of(_symbolic_groups(x, weight, int(groups))) if many else sizes.of(1)
    depth = sizes.of(weight.dims[0] // group) if many else weight.dims[0]
    return _windows(x, bias, group, weight.dims[1], depth, list(kernel), out, place,
                    lambda g, o, c, rs: weight.element((plus(times(g, text_of(depth)), c), o, *rs)))


def _symbolic_groups(x: Value, weight: Value, groups: int) -> int:
    """Groups of a transposed convolution: the channels where there is one for each, else the number."""
    return x.dims[1] if groups == int(x.dims[1]) else groups


def _windows(x: Value, bias: Value | None, group: Dim, filters: Dim, depth: Dim, kernel: list[Dim], out: list[Dim], place: Any,
             weight: Any) -> Value:
    """sum over depth and window of weight * x, for every batch, group, filter and place."""
    builder, x, many = x.builder, x.settled(), int(group) > 1
    shape = [x.dims[0], *([group] if many else []), filters, *out]
    axes, coords = loops(shape, "i")
    inner, deep = loops([depth, *kernel], "r")
    n, g, rest = coords[0], coords[1] if many else "0", coords[2:] if many else coords[1:]
    places = [place(k, rest[1 + k], deep[1 + k]) for k in range(len(out))]
    channel = plus(times(g, text_of(depth)), deep[0])
    second = zeroed(x, (n, channel, *(at for at, _ in places)), [guard for _, guard in places if guard])
    result = _product(x, axes, inner, weight(g, rest[0], deep[0], deep[1:]), second, shape)
    whole = builder.sizes.of(group * filters) if many else filters
    if bias is not None:
        result = _plus_bias(result, lambda axes: bias.element((plus(times(g, text_of(filters)), rest[0]),)))
    return reshaped(result, [x.dims[0], whole, *out])


def zeroed(x: Value, coords: tuple[str, ...], guards: list[str], other: float = 0.0) -> ex.Expression:
    """The element there, or `other` where a guard does not hold."""
    return x.builder.guarded(" and ".join(guards), lambda: x.element(coords), other)


def pooled(x: Value, how: str, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
           spatial: int = 2) -> Value:
    """The maximum or the mean (padding counts as zeros) over windows of the trailing axes."""
    if ceil_mode and (how != "max" or any(per_axis(padding, spatial))):
        raise WriterError("pooling with ceil_mode is known for maxima without padding only")
    builder, x = x.builder, x.settled()
    lead, dims = len(x.dims) - spatial, x.dims
    extents = [builder.sizes.of(k) for k in per_axis(kernel, spatial)]
    steps = per_axis(kernel if stride in (None, [], ()) else stride, spatial)
    pads, holes = per_axis(padding, spatial), per_axis(dilation, spatial)
    last = [step - 1 if ceil_mode else 0 for step in steps]  # a last window may lie partly outside
    out = [windows(dims[lead + k], extents[k], steps[k], pads[k], holes[k], last[k]) for k in range(spatial)]
    axes, coords = loops([*dims[:lead], *out], "i")
    inner, deep = loops(extents, "r")
    at, guards = [], []
    for k, (c, r) in enumerate(zip(coords[lead:], deep, strict=True)):
        at.append(plus(plus(times(c, str(steps[k])), times(r, str(holes[k]))), str(-pads[k]) if pads[k] else ""))
        if pads[k] or last[k]:
            guards.append(f"{at[-1]} >= 0 and {at[-1]} < {text_of(dims[lead + k])}")
    body = zeroed(x, (*coords[:lead], *at), guards, float("-inf") if how == "max" else 0.0)
    number = builder.position(" * ".join(["1.0", *(text_of(w) for w in extents)]))
    epilogue: ex.Expression = ACC if how == "max" else ex.Call("div", (ACC, number))
    stage = Stage("reduce", builder.result(), axes, body, reduced=inner, combine="max" if how == "max" else "sum",
                  epilogue=epilogue)
    return builder.add(stage, [*dims[:lead], *out])


def adaptive_mean(x: Value, output: Any, spatial: int) -> Value:
    """Adaptive average pooling where every window has the same size."""
    x = x.settled()
    lead = len(x.dims) - spatial
    wanted = [int(x.dims[lead + k]) if w is None else int(w) for k, w in enumerate(per_axis(output, spatial))]
    if all(w == 1 for w in wanted):
        return mean(x, tuple(range(lead, len(x.dims))), True)
    if any(int(x.dims[lead + k]) % w for k, w in enumerate(wanted)):
        raise WriterError(f"adaptive pooling to {wanted} of {[int(d) for d in x.dims[lead:]]} is not known: the windows differ")
    if all(int(x.dims[lead + k]) == w for k, w in enumerate(wanted)):
        return x
    return pooled(x, "mean", [int(x.dims[lead + k]) // w for k, w in enumerate(wanted)], spatial=spatial)
