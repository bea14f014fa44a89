"""A task's reference as the lint calls it: inputs for a seed, outputs for inputs, with fixed parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evaluator.native_module import load_reference
from evaluator.trees import leaves
from evaluator.types import TaskSpec

WEIGHT_SEED = 42
"""One set of parameters for all inputs, as KernelBench has it."""


class Reference(ABC):
    """The reference computation at given sizes."""

    names: Sequence[str]
    """The inputs' names, in order."""

    @abstractmethod
    def inputs(self, seed: int) -> list[Any]:
        """The task's own inputs."""

    @abstractmethod
    def outputs(self, inputs: Sequence[Any], seed: int = 0) -> list[Any]:
        """All output arrays; `seed` is what random operations inside the reference (dropout) draw from."""

    @property
    def parameter_bytes(self) -> int:
        """Bytes of parameters and buffers."""
        return 0


class NativeReference(Reference):
    """`make_inputs` and `reference` in NumPy."""

    def __init__(self, spec: TaskSpec, sizes: Mapping[str, int]) -> None:
        module = load_reference(spec.path)
        self._make, self._reference, self._sizes = module.make_inputs, module.reference, dict(sizes)
        self.names = tuple(self._made(0))

    def _made(self, seed: int) -> dict[str, Any]:
        return dict(self._make(np.random.default_rng(seed), **self._sizes))

    def inputs(self, seed: int) -> list[Any]:
        """Drawn from the seed."""
        return list(self._made(seed).values())

    def outputs(self, inputs: Sequence[Any], seed: int = 0) -> list[Any]:
        """Computed from copies."""
        copies = {name: np.array(v) if isinstance(v, np.ndarray) else v for name, v in zip(self.names, inputs, strict=True)}
        with np.errstate(all="ignore"):
            return [np.asarray(leaf) for _, leaf in leaves(self._reference(**copies), "")]


class TorchReference(Reference):
    """A KernelBench `Model`, in the mode its constructor leaves it in, on `device`.

    Parameters are drawn once. Inputs are made on the device, which takes milliseconds there for gigabytes of them.
    """

    def __init__(self, module: Any, device: str = "cpu") -> None:
        import torch

        self.torch, self.module, self.device = torch, module, device
        torch.manual_seed(WEIGHT_SEED)
        with torch.device(device), torch.no_grad():
            init = module.get_init_inputs()
            made = module.Model(**init) if isinstance(init, Mapping) else module.Model(*init)
        self.model = made.to(device)
        self._state = {name: value.clone() for name, value in self.model.named_buffers()}
        self.names = ()

    def inputs(self, seed: int) -> list[Any]:
        """`get_inputs()` after seeding torch."""
        self.torch.manual_seed(seed)
        with self.torch.device(self.device):
            made = [value.to(self.device) if hasattr(value, "to") else value for value in self.module.get_inputs()]
        self.names = tuple(f"input {position}" for position in range(len(made)))
        return made

    def outputs(self, inputs: Sequence[Any], seed: int = 0) -> list[Any]:
        """One forward pass without autograd, buffers set back first."""
        self.torch.manual_seed(seed)
        with self.torch.no_grad(), self.torch.device(self.device):
            for name, value in self.model.named_buffers():
                value.copy_(self._state[name])
            return [leaf.detach() for _, leaf in leaves(self.model(*inputs), "") if isinstance(leaf, self.torch.Tensor)]

    def outputs_and_buffers(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs, and what the call leaves in the model's buffers."""
        outputs = self.outputs(inputs)
        with self.torch.no_grad():
            return outputs + [value.clone() for value in self.model.buffers()]

    @property
    def parameter_bytes(self) -> int:
        """Of the model."""
        return sum(int(value.nbytes) for value in (*self.model.parameters(), *self.model.buffers()))
