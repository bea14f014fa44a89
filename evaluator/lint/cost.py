"""What a KernelBench problem moves and computes: counted on meta tensors, which hold no data, or on a real call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from evaluator.trees import leaves
from evaluator.types import DeviceSpec, Frozen

DOMINANT = 0.8
"""Share of the FLOPs that makes an operator the one that a problem is about."""


class Cost(Frozen):
    """Bytes and floating-point operations of one forward pass."""

    input_bytes: int
    parameter_bytes: int
    """Parameters and buffers."""
    output_bytes: int
    flops: int
    """Of matrix products, convolutions and attention (what torch counts); element-wise work and recurrent layers count 0."""
    operator: str = ""
    """The one that most of `flops` is in: `conv2d`, `conv_transpose3d`, `depthwise_conv1d`, `grouped_conv2d`, `mm`, `addmm`,
    `bmm`, ...; "" where none has more than DOMINANT of them."""

    @property
    def bytes(self) -> int:
        """Inputs, parameters and outputs, each once."""
        return self.input_bytes + self.parameter_bytes + self.output_bytes

    def speed_of_light_us(self, device: DeviceSpec, rate: float | None = None) -> tuple[float, str]:
        """(µs, `bytes` or `flops`): the larger of both bounds at the device's ceilings; `rate` in FLOP/s, default float32's."""
        bandwidth = device.measured_dram_bytes_per_s or device.dram_bytes_per_s
        moved, computed = self.bytes / bandwidth, self.flops / (rate or device.fp32_flops_per_s)
        return 1e6 * max(moved, computed), "bytes" if moved >= computed else "flops"


def count_flops(call: Callable[[], Any]) -> tuple[Any, dict[str, int]]:
    """The call's result and its FLOPs by operator, by torch's own counter."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode, conv_flop_count

    counts: Counter[str] = Counter()

    def convolution(x: Any, w: Any, _bias: Any, _stride: Any, _padding: Any, _dilation: Any, transposed: bool, _extra: Any,
                    groups: int, *, out_shape: Any, **_: Any) -> int:
        flops = int(conv_flop_count(x, w, out_shape, transposed=transposed))
        counts[convolution_name(x, len(w) - 2, transposed, groups)] += flops
        return flops

    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.convolution: convolution}) as counter:
        result = call()
    for operator, flops in counter.get_flop_counts().get("Global", {}).items():
        if operator is not torch.ops.aten.convolution:
            counts[str(operator).rsplit(".", 1)[-1].lstrip("_")] += int(flops)
    return result, dict(counts)


def convolution_name(x: Sequence[int], rank: int, transposed: bool, groups: int) -> str:
    """`conv2d`, `depthwise_conv_transpose3d`, `grouped_conv1d`, ... of an input of this shape."""
    channels = x[-rank - 1]
    kind = "" if groups == 1 else "depthwise_" if groups == channels else "grouped_"
    return f"{kind}conv{'_transpose' if transposed else ''}{rank}d"


def _dominant(counts: Mapping[str, int]) -> str:
    total, largest = sum(counts.values()), max(counts, key=lambda name: counts[name], default="")
    return largest if total and counts[largest] > DOMINANT * total else ""


class NotCounted(Exception):
    """The problem's code does what meta tensors cannot, or refuses its sizes, or has recurrent layers."""


def meta_cost(module: Any) -> Cost | None:
    """Of a loaded problem file; None where it is not counted (see `counted`)."""
    try:
        return counted(module)
    except NotCounted:
        return None


class Called(NamedTuple):
    """One forward pass on tensors without data."""

    model: Any
    inputs: Any
    outputs: Any
    flops: Mapping[str, int]
    """By operator."""


def counted(module: Any) -> Cost:
    """Of a loaded problem file. Raises NotCounted with the reason."""
    model, inputs, outputs, flops = called_without_data(module)
    return Cost(
        input_bytes=_bytes(inputs), parameter_bytes=_bytes([*model.parameters(), *model.buffers()]),
        output_bytes=_bytes(outputs), flops=sum(flops.values()), operator=_dominant(flops),
    )


def called_without_data(module: Any) -> Called:
    """One forward pass of a loaded problem file. Raises NotCounted with the reason.

    Recurrent layers run step by step on meta tensors, which takes a minute: they are not called.
    """
    import torch

    try:
        with torch.device("meta"), torch.no_grad():
            init = module.get_init_inputs()
            model = module.Model(**init) if isinstance(init, Mapping) else module.Model(*init)
            recurrent = any(isinstance(layer, torch.nn.RNNBase) for layer in model.modules())
            inputs = module.get_inputs()
            outputs, flops = (None, {}) if recurrent else count_flops(lambda: model(*inputs))
    except Exception as error:  # the problem's own code: a value read on the host, a device named, ...
        raise NotCounted(f"{type(error).__name__}: {error}".replace("\n", " ")[:500]) from error
    if recurrent:
        raise NotCounted("it has recurrent layers")
    return Called(model, inputs, outputs, flops)


def _bytes(tree: Any) -> int:
    return sum(int(leaf.nbytes) for _, leaf in leaves(tree, "") if hasattr(leaf, "nbytes"))
