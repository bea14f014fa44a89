"""Torch's operators in the profile stage: their time is modelled, and large products are not computed at all.

Array contents mean nothing in that stage, so a convolution that would take a CPU minutes gives zeros of the right shape.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from evaluator.lint.cost import convolution_name
from evaluator.simulator.library_time import LAUNCH_US, library_time_us
from evaluator.simulator.standin.state import session
from evaluator.types import LaunchRecord

SMALL_FLOPS = 1 << 24
"""Products below are computed."""
FACTORS = {**dict.fromkeys(("linear", "matmul", "__matmul__", "mm", "bmm"), 0), **dict.fromkeys(("addmm", "baddbmm"), 1)}
"""Matrix products -> position of the left factor."""
CONVOLUTION = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
TRANSPOSED = ("input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation")
"""Names of the positional arguments."""


class Work(NamedTuple):
    """What a product or convolution computes."""

    operator: str
    """As in lint/cost.py."""
    flops: int
    """fma = 2."""
    shape: tuple[int, ...]
    """Of the output."""


def modelled(torch: Any, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of `func`, whose time is noted as a launch of a library's kernel."""
    work = work_of(name, func, args, kwargs)
    tensors = list(_tensors(torch, (args, kwargs)))
    if work is not None and work.flops >= SMALL_FLOPS:
        result = _zeros(torch, work.shape, tensors[0].dtype)
    else:
        result = func(*args, **kwargs)
    moved = sum(tensor.numel() * tensor.element_size() for tensor in (*tensors, *_tensors(torch, result)))
    time = library_time_us({work.operator: work.flops} if work else {}, moved, session().device,
                           bool(torch.backends.cudnn.allow_tf32))
    session().add_launch(LaunchRecord(
        kernel=f"torch.{name}", grid=(1, 1, 1), block=(1, 1, 1), library=True, time_us=time,
        counts={"dram_bytes": float(moved), "l2_bytes": float(moved)},
        terms_us={"library": time - LAUNCH_US, "launch": LAUNCH_US}))
    return result


def work_of(name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Work | None:
    """Operations and output shape of a call; None for what is no product or convolution of a common form.

    Told from the arguments and not by torch's counter on tensors without data: the first use of that imports TorchDynamo,
    which takes seconds in every evaluation.
    """
    if name in FACTORS and len(args) > FACTORS[name] + 1:
        return _product(name, *args[FACTORS[name]:FACTORS[name] + 2])
    if re.fullmatch(r"conv(_transpose)?[123]d", name):
        names = TRANSPOSED if "transpose" in name else CONVOLUTION
        return _convolution(name, func, {**dict(zip(names, args, strict=False)), **kwargs})
    return None


def _product(name: str, left: Any, right: Any) -> Work | None:
    if left.dim() < 2 or right.dim() < 2:
        return None
    columns = right.shape[0] if name == "linear" else right.shape[-1]
    batch = left.shape[:-2] if name == "linear" else np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    shape = (*batch, left.shape[-2], columns)
    return Work(name.strip("_"), 2 * math.prod(shape) * int(left.shape[-1]), shape)


def _convolution(name: str, func: Callable[..., Any], given: dict[str, Any]) -> Work | None:
    """The output's extents are those of one channel."""
    x, weight = given["input"], given["weight"]
    rank, transposed = weight.dim() - 2, "transpose" in name
    if x.dim() != rank + 2:
        return None
    one = func(**{**given, "input": x[:1, :1], "weight": weight[:1, :1], "bias": None, "groups": 1})
    groups = int(given.get("groups", 1))
    shape = (x.shape[0], weight.shape[1] * groups if transposed else weight.shape[0], *one.shape[2:])
    uses = math.prod(weight.shape[1:]) * (x.numel() if transposed else math.prod(shape))
    return Work(convolution_name(tuple(x.shape), rank, transposed, groups), 2 * uses, shape)


def _zeros(torch: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Memory whose pages appear when they are touched."""
    raw = torch.from_numpy(np.zeros(math.prod(shape) * dtype.itemsize, np.uint8))
    return raw.view(dtype).view(shape)


def _tensors(torch: Any, tree: Any) -> Iterator[Any]:
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, Mapping):
        yield from _tensors(torch, list(tree.values()))
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            yield from _tensors(torch, value)
