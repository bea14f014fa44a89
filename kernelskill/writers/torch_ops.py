"""The torch operators that the templates know: functions, methods and modules, each as a step on terms."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from kernelskill.errors import WriterError
from kernelskill.writers.torch_terms import Leaf, Product, RowOperation, Term, combine, of_root, plain_leaf, transposed

Step = Callable[..., Any]
FLOAT32_EPS = float(torch.finfo(torch.float32).eps)


def _clamp(x: Term, min: float | None = None, max: float | None = None) -> Any:
    low = x if min is None else combine("max", x, min)
    return low if max is None else combine("min", low, max)


def _gelu(x: Term, approximate: str = "none") -> Any:
    return combine("gelu_tanh" if approximate == "tanh" else "gelu", x)


def _softplus(x: Term, beta: float = 1.0, threshold: float = 20.0) -> Any:
    if (beta, threshold) != (1.0, 20.0):
        raise WriterError(f"softplus with beta {beta} and threshold {threshold} is not known")
    return combine("softplus", x)


def _add(x: Term | float, y: Term | float, alpha: float = 1.0) -> Any:
    return combine("add", x, y if alpha == 1.0 else combine("mul", y, alpha))


def _divide(x: Term | float, y: Term | float) -> Any:
    """Division; x / norm(x) is one row operation."""
    match y:
        case Term(root=RowOperation(operation="norm", keepdim=True, input=leaf)) if isinstance(x, Term) and x.leaf() == leaf:
            return of_root(RowOperation("l2_norm", leaf))
    return combine("div", x, y)


def _power(x: Term, exponent: float) -> Any:
    if exponent == 0.5:
        return combine("sqrt", x)
    if exponent in (2, 3, 4):
        return combine("mul", x, x if exponent == 2 else _power(x, exponent - 1))
    raise WriterError(f"the power {exponent} is not known")


def _row_leaf(x: Any, dim: Any, what: str) -> Leaf:
    """The leaf of an operation along its last axis. Raises WriterError for another axis."""
    leaf = plain_leaf(x, what)
    axes = list(dim) if isinstance(dim, (tuple, list)) else [dim]
    if len(axes) != 1 or axes[0] is None or axes[0] % len(leaf.shape) != len(leaf.shape) - 1:
        raise WriterError(f"{what} over dim {dim} of a {len(leaf.shape)}-dimensional input is not known: the templates "
                          "take the last axis")
    return leaf


def _row(operation: str) -> Step:
    def step(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Term:
        if dtype is not None:
            raise WriterError(f"{operation} with another dtype is not known")
        return of_root(RowOperation(operation, _row_leaf(x, dim, operation), keepdim=keepdim))
    return step


def _softmax(operation: str) -> Step:
    def step(x: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Term:
        if dtype is not None:
            raise WriterError(f"{operation} with another dtype is not known")
        return of_root(RowOperation(operation, _row_leaf(x, dim, operation)))
    return step


def _extreme(operation: str) -> Step:
    """max and min: of two values, or along an axis with the values taken from the pair."""
    def step(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, Term):
            return combine(operation, x, dim)
        return (of_root(RowOperation(operation, _row_leaf(x, dim, operation), keepdim=keepdim)),)
    return step


def _norm(x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Term:
    if p not in (2, "fro", None):
        raise WriterError(f"the {p}-norm is not known")
    return of_root(RowOperation("norm", _row_leaf(x, dim, "norm"), keepdim=keepdim))


def _normalize(x: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Term:
    if p != 2.0:
        raise WriterError(f"normalize with p {p} is not known")
    return of_root(RowOperation("l2_norm", _row_leaf(x, dim, "normalize"), eps=eps))


def _layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Term:
    scale, shift = (None if w is None else plain_leaf(w, "layer_norm") for w in (weight, bias))
    axes = len(tuple(normalized_shape))
    return of_root(RowOperation("layer_norm", plain_leaf(x, "layer_norm"), axes, scale, shift, eps))


def _rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Term:
    scale = None if weight is None else plain_leaf(weight, "rms_norm")
    return of_root(RowOperation("rms_norm", plain_leaf(x, "rms_norm"), len(tuple(normalized_shape)), scale,
                                eps=FLOAT32_EPS if eps is None else eps))


def _matmul(a: Any, b: Any) -> Term:
    flags = [isinstance(x, Term) and x.transposed for x in (a, b)]
    leaves = [plain_leaf(transposed(x) if flag else x, "a matrix product") for x, flag in zip((a, b), flags, strict=True)]
    if any(len(leaf.shape) != 2 for leaf in leaves):
        raise WriterError("a batched matrix product is not known: the templates take two matrices")
    return of_root(Product(leaves[0], leaves[1], flags[0], flags[1]))


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    product = of_root(Product(plain_leaf(x, "linear"), plain_leaf(weight, "linear"), False, True, linear=True))
    return product if bias is None else combine("add", product, bias)


def _unary(function: str) -> Step:
    def step(x: Term, inplace: bool = False) -> Any:
        return combine(function, x)
    return step


def _swapped(x: Term, *axes: int) -> Term:
    if axes and sorted(a % 2 for a in axes) != [0, 1]:
        raise WriterError(f"the transpose of axes {axes} is not known")
    return transposed(x)


def _attribute(x: Any, name: str) -> Term:
    if name not in ("T", "mT"):
        raise WriterError(f"the attribute '{name}' is not known")
    return transposed(x)


def _same(x: Any, *_: Any, **__: Any) -> Any:
    return x


UNARY = {"relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "silu": "silu", "mish": "mish", "selu": "selu", "exp": "exp",
         "log": "log", "sqrt": "sqrt", "abs": "abs", "erf": "erf", "neg": "neg", "softsign": "softsign",
         "hardsigmoid": "hardsigmoid", "hardswish": "hardswish"}
BY_NAME: dict[str, Step] = {
    **{name: _unary(function) for name, function in UNARY.items()},
    "add": _add, "sub": lambda x, y: combine("sub", x, y), "mul": lambda x, y: combine("mul", x, y), "div": _divide,
    "truediv": _divide, "true_divide": _divide, "pow": _power, "square": lambda x: combine("mul", x, x), "clamp": _clamp,
    "clip": _clamp, "gelu": _gelu, "softplus": _softplus, "maximum": lambda x, y: combine("max", x, y),
    "minimum": lambda x, y: combine("min", x, y), "where": lambda c, x, y: combine("where", c, x, y),
    "lt": lambda x, y: combine("lt", x, y), "le": lambda x, y: combine("le", x, y),
    "gt": lambda x, y: combine("gt", x, y), "ge": lambda x, y: combine("ge", x, y),
    "leaky_relu": lambda x, negative_slope=0.01, inplace=False: combine("leaky_relu", x, negative_slope),
    "elu": lambda x, alpha=1.0, inplace=False: combine("elu", x, alpha),
    "hardtanh": lambda x, min_val=-1.0, max_val=1.0, inplace=False: _clamp(x, min_val, max_val),
    "relu6": lambda x, inplace=False: _clamp(x, 0.0, 6.0),
    "softmax": _softmax("softmax"), "log_softmax": _softmax("log_softmax"), "sum": _row("sum"), "mean": _row("mean"),
    "amax": _row("max"), "amin": _row("min"), "max": _extreme("max"), "min": _extreme("min"), "norm": _norm,
    "vector_norm": _norm, "normalize": _normalize, "layer_norm": _layer_norm, "rms_norm": _rms_norm, "matmul": _matmul,
    "mm": _matmul, "linear": _linear, "t": _swapped, "transpose": _swapped, "contiguous": _same, "identity": _same,
    "getattr": _attribute, "getitem": lambda pair, index: pair[index],
}
"""Functions and methods by their last name, `torch.`, `F.` and `Tensor.` alike (in-place `relu_` counts as `relu`)."""
Parameter = Callable[[str], Any]


def _module(function: str) -> Callable[[Any, Term, Parameter], Any]:
    return lambda module, x, parameter: combine(function, x)


MODULES: dict[type[nn.Module], Callable[[Any, Term, Parameter], Any]] = {
    nn.Identity: lambda m, x, p: x,
    nn.LeakyReLU: lambda m, x, p: combine("leaky_relu", x, m.negative_slope),
    nn.ELU: lambda m, x, p: combine("elu", x, m.alpha),
    nn.GELU: lambda m, x, p: _gelu(x, m.approximate),
    nn.Softplus: lambda m, x, p: _softplus(x, float(m.beta), float(m.threshold)),
    nn.Hardtanh: lambda m, x, p: _clamp(x, m.min_val, m.max_val),
    nn.ReLU6: lambda m, x, p: _clamp(x, 0.0, 6.0),
    nn.Softmax: lambda m, x, p: BY_NAME["softmax"](x, m.dim),
    nn.LogSoftmax: lambda m, x, p: BY_NAME["log_softmax"](x, m.dim),
    nn.LayerNorm: lambda m, x, p: _layer_norm(x, m.normalized_shape, p("weight"), p("bias"), m.eps),
    nn.RMSNorm: lambda m, x, p: _rms_norm(x, m.normalized_shape, p("weight"), m.eps),
    nn.Linear: lambda m, x, p: _linear(x, p("weight"), p("bias")),
    nn.ReLU: _module("relu"), nn.Sigmoid: _module("sigmoid"), nn.Tanh: _module("tanh"), nn.SiLU: _module("silu"),
    nn.Mish: _module("mish"), nn.SELU: _module("selu"), nn.Softsign: _module("softsign"),
    nn.Hardsigmoid: _module("hardsigmoid"), nn.Hardswish: _module("hardswish"),
}


def apply_function(target: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """A called function or method on terms. Raises WriterError when it is not known, or not in this form."""
    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    step = BY_NAME.get(name.rstrip("_"))
    if step is None or (target is operator.getitem and not isinstance(arguments[0], tuple)):
        raise WriterError(f"the operation '{name}' is not known")
    given = {("dim" if k == "axis" else k): v for k, v in keywords.items() if v is not None}
    known = {k: v for k, v in given.items() if k not in ("input", "self", "other")}
    positional = [keywords[k] for k in ("input", "self") if k in keywords] + list(arguments)
    positional += [keywords["other"]] if "other" in keywords else []
    try:
        return step(*positional, **known)
    except TypeError as error:
        raise WriterError(f"the operation '{name}' is not known with these arguments: {error}") from error


def apply_module(module: nn.Module, x: Any, parameter: Parameter) -> Any:
    """A called module on a term. Raises WriterError when it is not known."""
    step = MODULES.get(type(module))
    if step is None:
        raise WriterError(f"the module '{type(module).__name__}' is not known")
    return step(module, x, parameter)


