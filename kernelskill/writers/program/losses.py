"""Loss functions, as element-wise steps and a reduction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelskill.errors import WriterError
from kernelskill.writers.program import reductions
from kernelskill.writers.program.values import Value, combine, moved
from kernelskill.writers.template import expression as ex


def _finished(value: Value, reduction: str) -> Value:
    """The mean, the sum, or every element's loss."""
    if reduction == "batchmean":
        return reductions.reduced(value, None, "sum", then=lambda acc: _over(acc, value))
    if reduction not in ("mean", "sum", "none"):
        raise WriterError(f"the reduction '{reduction}' of a loss is not known")
    if reduction == "none":
        return value
    return reductions.mean(value) if reduction == "mean" else reductions.reduced(value, None, "sum")


def _over(acc: Any, value: Value) -> Any:
    return ex.Call("div", (acc, reductions.count(value, (0,))))


def _squared(x: Value, y: Value, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
             weight: Any = None) -> Value:
    gap = combine(x.builder, "sub", x.settled(), y.settled())
    return _finished(combine(x.builder, "mul", gap, gap), reduction)


def _absolute(x: Value, y: Value, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
              weight: Any = None) -> Value:
    return _finished(combine(x.builder, "abs", combine(x.builder, "sub", x.settled(), y.settled())), reduction)


def _huber(smooth: bool) -> Callable[..., Value]:
    """Quadratic up to the limit, then linear; the smooth form is divided by the limit."""
    def step(x: Value, y: Value, *rest: Any, reduction: str = "mean", beta: float = 1.0, delta: float = 1.0,
             **more: Any) -> Value:
        b, limit = x.builder, beta if smooth else delta
        gap = combine(b, "abs", combine(b, "sub", x.settled(), y.settled()))
        near = combine(b, "mul", combine(b, "mul", gap, gap), 0.5 / limit if smooth else 0.5)
        far = combine(b, "mul", combine(b, "sub", gap, 0.5 * limit), 1.0 if smooth else limit)
        return _finished(combine(b, "where", combine(b, "lt", gap, limit), near, far), reduction)
    return step


def _divergence(x: Value, y: Value, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
                log_target: bool = False) -> Value:
    if log_target:
        raise WriterError("kl_div with log_target is not known")
    b = x.builder
    term = combine(b, "mul", y, combine(b, "sub", combine(b, "log", y), x))
    return _finished(combine(b, "where", combine(b, "eq", y, 0.0), 0.0, term), reduction)


def _cross_entropy(x: Value, target: Value, weight: Any = None, size_average: Any = None, ignore_index: int = -100,
                   reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0) -> Value:
    if weight is not None or label_smoothing or len(x.dims) != 2 or target.dtype != "long long":
        raise WriterError("cross entropy is known for rows of classes and integer targets, without weights and smoothing")
    b, x = x.builder, x.settled()
    chosen = moved(target, x.dims, lambda c: (c[0],))
    place = Value(b, x.dims, lambda c: b.position(c[1]), computed=True)
    picked = combine(b, "where", combine(b, "eq", place, chosen), x, 0.0)
    loss = combine(b, "sub", reductions.logsumexp(x, 1), reductions.reduced(picked, 1, "sum"))
    return _finished(loss, reduction)


def _distance(x: Value, y: Value, p: float = 2.0, eps: float = 1e-6) -> Value:
    b = x.builder
    return reductions.norm(combine(b, "add", combine(b, "sub", x.settled(), y.settled()), eps), p, -1)


def _triplet(anchor: Value, positive: Value, negative: Value, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
             swap: bool = False, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Value:
    if swap:
        raise WriterError("the triplet loss with swap is not known")
    b = anchor.builder
    gap = combine(b, "sub", _distance(anchor, positive, p, eps), _distance(anchor, negative, p, eps))
    return _finished(combine(b, "max", combine(b, "add", gap, margin), 0.0), reduction)


def _cosine(x: Value, y: Value, dim: int = 1, eps: float = 1e-8) -> Value:
    b, x, y = x.builder, x.settled(), y.settled()
    norms = [combine(b, "max", reductions.norm(v, 2, dim), eps) for v in (x, y)]
    return combine(b, "div", reductions.reduced(combine(b, "mul", x, y), dim, "sum"), combine(b, "mul", *norms))


LOSSES: dict[str, Callable[..., Value]] = {
    "mse_loss": _squared, "l1_loss": _absolute, "smooth_l1_loss": _huber(True), "huber_loss": _huber(False),
    "kl_div": _divergence, "cross_entropy": _cross_entropy, "triplet_margin_loss": _triplet, "pairwise_distance": _distance,
    "cosine_similarity": _cosine,
}
"""torch.nn.functional's losses and distances by name."""
