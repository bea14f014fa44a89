"""What a KernelBench problem moves and computes: counted on meta tensors, which hold no data, or on a real call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evaluator.trees import leaves
from evaluator.types import DeviceSpec, Frozen


class Cost(Frozen):
    """Bytes and floating-point operations of one forward pass."""

    input_bytes: int
    parameter_bytes: int
    """Parameters and buffers."""
    output_bytes: int
    flops: int
    """Of matrix products, convolutions and attention (what torch counts); element-wise work and recurrent layers count 0."""

    @property
    def bytes(self) -> int:
        """Inputs, parameters and outputs, each once."""
        return self.input_bytes + self.parameter_bytes + self.output_bytes

    def speed_of_light_us(self, device: DeviceSpec, rate: float | None = None) -> tuple[float, str]:
        """(µs, `bytes` or `flops`): the larger of both bounds at the device's ceilings; `rate` in FLOP/s, default float32's."""
        bandwidth = device.measured_dram_bytes_per_s or device.dram_bytes_per_s
        moved, computed = self.bytes / bandwidth, self.flops / (rate or device.fp32_flops_per_s)
        return 1e6 * max(moved, computed), "bytes" if moved >= computed else "flops"


def count_flops(call: Callable[[], Any]) -> tuple[Any, int]:
    """The call's result and its FLOPs, by torch's own counter."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        result = call()
    return result, int(counter.get_total_flops())


def meta_cost(module: Any) -> Cost | None:
    """Of a loaded problem file; None where its code does what meta tensors cannot, or has recurrent layers.

    Those run step by step on meta tensors, which takes a minute.
    """
    import torch

    try:
        with torch.device("meta"), torch.no_grad():
            init = module.get_init_inputs()
            model = module.Model(**init) if isinstance(init, Mapping) else module.Model(*init)
            if any(isinstance(layer, torch.nn.RNNBase) for layer in model.modules()):
                return None
            inputs = module.get_inputs()
            outputs, flops = count_flops(lambda: model(*inputs))
    except Exception:  # the problem's own code: a value read on the host, a device named, ...
        return None
    return Cost(
        input_bytes=_bytes(inputs), parameter_bytes=_bytes([*model.parameters(), *model.buffers()]),
        output_bytes=_bytes(outputs), flops=flops,
    )


def _bytes(tree: Any) -> int:
    return sum(int(leaf.nbytes) for _, leaf in leaves(tree, "") if hasattr(leaf, "nbytes"))
