"""The scalar functions of element-wise expressions: CUDA text, the fast form where one exists, and NumPy's word for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Function:
    """One scalar function. `cuda` and `fast` are C expressions over the parameters a, b, c."""

    arity: int
    cuda: str
    numpy: Callable[..., Any]
    fast: str = ""
    """The form with hardware approximations (`__expf`, `__fdividef`); "" where nothing is gained."""
    inline: bool = False
    """True: the expression is short enough to stand in the text; False: it becomes a device function of its own."""


def erf(x: Any) -> Any:
    """The error function on arrays (scipy's, imported when a reference check needs it)."""
    from scipy.special import erf as scipy_erf

    return scipy_erf(x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def softplus(x: Any) -> Any:
    """log(1 + exp(x)) without overflow."""
    return np.logaddexp(0.0, x)


SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772

# Comparisons are written so that NaN passes through, as NumPy and torch have it: `fmaxf` would drop it.
FUNCTIONS: dict[str, Function] = {
    "add": Function(2, "a + b", np.add, inline=True),
    "sub": Function(2, "a - b", np.subtract, inline=True),
    "mul": Function(2, "a * b", np.multiply, inline=True),
    "div": Function(2, "a / b", np.divide, "__fdividef(a, b)", inline=True),
    "neg": Function(1, "-a", np.negative, inline=True),
    "lt": Function(2, "a < b", np.less, inline=True),
    "le": Function(2, "a <= b", np.less_equal, inline=True),
    "gt": Function(2, "a > b", np.greater, inline=True),
    "ge": Function(2, "a >= b", np.greater_equal, inline=True),
    "eq": Function(2, "a == b", np.equal, inline=True),
    "ne": Function(2, "a != b", np.not_equal, inline=True),
    "where": Function(3, "a ? b : c", np.where, inline=True),
    "exp": Function(1, "expf(a)", np.exp, "__expf(a)"),
    "log": Function(1, "logf(a)", np.log, "__logf(a)"),
    "sqrt": Function(1, "sqrtf(a)", np.sqrt),
    "rsqrt": Function(1, "rsqrtf(a)", lambda a: 1.0 / np.sqrt(a)),
    "pow": Function(2, "powf(a, b)", np.power, "__powf(a, b)"),
    "abs": Function(1, "fabsf(a)", np.abs),
    "erf": Function(1, "erff(a)", erf),
    "tanh": Function(1, "tanhf(a)", np.tanh, "1.0f - __fdividef(2.0f, __expf(2.0f * a) + 1.0f)"),
    "min": Function(2, "(a < b || a != a) ? a : b", np.minimum),
    "max": Function(2, "(a > b || a != a) ? a : b", np.maximum),
    "relu": Function(1, "a < 0.0f ? 0.0f : a", lambda a: np.maximum(a, 0.0)),
    "leaky_relu": Function(2, "a < 0.0f ? b * a : a", lambda a, b: np.where(a < 0, b * a, a)),
    "elu": Function(2, "a < 0.0f ? b * expm1f(a) : a", lambda a, b: np.where(a < 0, b * np.expm1(np.minimum(a, 0)), a)),
    "selu": Function(
        1, f"{SELU_SCALE}f * (a < 0.0f ? {SELU_ALPHA}f * expm1f(a) : a)",
        lambda a: SELU_SCALE * np.where(a < 0, SELU_ALPHA * np.expm1(np.minimum(a, 0)), a),
    ),
    "sigmoid": Function(1, "1.0f / (1.0f + expf(-a))", sigmoid, "__fdividef(1.0f, 1.0f + __expf(-a))"),
    "silu": Function(1, "a / (1.0f + expf(-a))", lambda a: a * sigmoid(a), "__fdividef(a, 1.0f + __expf(-a))"),
    "softplus": Function(
        1, "a > 20.0f ? a : log1pf(expf(a))", softplus, "a > 15.0f ? a : __logf(1.0f + __expf(a))"
    ),
    "softsign": Function(1, "a / (1.0f + fabsf(a))", lambda a: a / (1.0 + np.abs(a)), "__fdividef(a, 1.0f + fabsf(a))"),
    "mish": Function(1, "a * tanhf(a > 20.0f ? a : log1pf(expf(a)))", lambda a: a * np.tanh(softplus(a))),
    "hardsigmoid": Function(
        1, "a < -3.0f ? 0.0f : a > 3.0f ? 1.0f : a * 0.16666667f + 0.5f", lambda a: np.clip(a / 6.0 + 0.5, 0.0, 1.0)
    ),
    "hardswish": Function(
        1, "a < -3.0f ? 0.0f : a > 3.0f ? a : a * (a * 0.16666667f + 0.5f)", lambda a: a * np.clip(a / 6.0 + 0.5, 0.0, 1.0)
    ),
    "gelu": Function(
        1, "0.5f * a * (1.0f + erff(a * 0.70710678f))", lambda a: 0.5 * a * (1.0 + erf(a * 0.7071067811865476))
    ),
    "gelu_tanh": Function(
        1, "0.5f * a * (1.0f + tanhf(0.79788456f * (a + 0.044715f * a * a * a)))",
        lambda a: 0.5 * a * (1.0 + np.tanh(0.7978845608028654 * (a + 0.044715 * a**3))),
        "__fdividef(a, 1.0f + __expf(-1.59576912f * (a + 0.044715f * a * a * a)))",
    ),
}
PARAMETERS = ("a", "b", "c")
