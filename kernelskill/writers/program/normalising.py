"""Batch and instance norm, with the statistics that a call in training mode updates."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.errors import WriterError
from kernelskill.writers.program import reductions
from kernelskill.writers.program.ir import Axis, Stage
from kernelskill.writers.program.sizes import text_of
from kernelskill.writers.program.values import Value
from kernelskill.writers.template import expression as ex


@dataclass(frozen=True)
class Statistics:
    """Running mean and variance of a batch norm; None where it keeps none."""

    mean: Value | None
    variance: Value | None
    momentum: float | None


def batch_norm(value: Value, running: Statistics, weight: Value | None, bias: Value | None, training: bool,
               eps: float) -> Value:
    """Over everything but the channels. In training mode by the batch's statistics, which move the running ones."""
    value, rank = value.settled(), len(value.dims)
    if not training and running.mean is not None and running.variance is not None:
        centre, spread = (reductions.along_channels(v, rank) for v in (running.mean, running.variance))
    else:
        axes = tuple(k for k in range(rank) if k != 1)
        centre = reductions.mean(value, axes, True)
        spread = reductions.variance(value, axes, centre)
        if running.mean is not None and running.variance is not None:
            _move(value, running, centre, spread, axes)
    assert centre is not None and spread is not None
    scaled = reductions.normalised(value, centre, spread, eps)
    return reductions.affine(scaled, reductions.along_channels(weight, rank), reductions.along_channels(bias, rank))


def _move(value: Value, running: Statistics, centre: Value, spread: Value, axes: tuple[int, ...]) -> None:
    """Two stages that update the running statistics; the variance is the unbiased one."""
    if running.momentum is None:
        raise WriterError("batch norm with a cumulative average is not known")
    number = reductions.count(value, axes)
    unbiased = ex.Call("div", (number, ex.Call("sub", (number, ex.Constant(1.0)))))
    for kept, fresh, factor in ((running.mean, centre, None), (running.variance, spread, unbiased)):
        assert kept is not None
        builder, channels = kept.builder, kept.dims[0]
        new = fresh.element(tuple("i0" if k == 1 else "0" for k in range(len(fresh.dims))))
        new = new if factor is None else ex.Call("mul", (new, factor))
        old = ex.Call("mul", (kept.element(("i0",)), ex.Constant(1.0 - running.momentum)))
        body = ex.Call("add", (old, ex.Call("mul", (new, ex.Constant(running.momentum)))))
        builder.add(Stage("map", kept.array, (Axis("i0", text_of(channels)),), body, given=True), [channels])


def instance_norm(value: Value, weight: Value | None, bias: Value | None, eps: float) -> Value:
    """Over the spatial axes of every channel of every sample."""
    value, rank = value.settled(), len(value.dims)
    axes = tuple(range(2, rank))
    centre = reductions.mean(value, axes, True)
    scaled = reductions.normalised(value, centre, reductions.variance(value, axes, centre), eps)
    return reductions.affine(scaled, reductions.along_channels(weight, rank), reductions.along_channels(bias, rank))

