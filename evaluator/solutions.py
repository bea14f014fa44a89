"""A solution as the evaluator handles it: loaded, given inputs, called, its outputs taken to the host.

native:      `run(*inputs)` takes CuPy arrays in the order of the task's `make_inputs`, returns an array, tuple or dict.
kernelbench: `ModelNew(*get_init_inputs())`, then parameters copied from `Model` by name, then `forward(*get_inputs())`.

In the simulator `cupy` is the stand-in and torch's `cuda` tensors are simulated; on a GPU both are the real ones.
"""

from __future__ import annotations

import importlib.util
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Literal

import numpy as np

from evaluator.effects import effect_name
from evaluator.failures import WrongForm
from evaluator.layouts import arranged
from evaluator.tiles import TiledLeaf
from evaluator.trees import Leaf, leaves, map_leaves
from evaluator.types import TaskSpec

MODEL_SEED = 0
"""torch's seed while a model is made, the same for Model and ModelNew: tensors that are no parameters agree as well."""

How = Literal["fresh", "refill", "repeat"]
"""Inputs in new buffers, new data in the buffers of the previous call, or the previous call once more."""


class Solution(ABC):
    """A loaded solution and the inputs of its current call."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.given: Mapping[str, Any] = {}
        """The inputs as they were sent."""
        self.live: dict[str, Any] = {}
        """The same as the solution's library holds them."""

    @abstractmethod
    def to_device(self, leaf: Leaf) -> Any:
        """A device array with the leaf's values."""

    @abstractmethod
    def refill(self, array: Any, leaf: Leaf) -> None:
        """New values in the same memory."""

    @abstractmethod
    def to_host(self, value: Any, where: str) -> Leaf:
        """A device array as Leaf. Raises WrongForm for anything else."""

    @abstractmethod
    def extent(self, value: Any, where: str) -> tuple[int, int]:
        """(elements, bytes) of a device array, which is not copied. Raises WrongForm for anything else."""

    @abstractmethod
    def invoke(self) -> Any:
        """Calls the solution with `live`; the raw result."""

    @abstractmethod
    def spoil(self, nbytes: int, byte: int = 0xFF) -> Any:
        """A device block of equal bytes; 0xFF is NaN in every float format."""

    @abstractmethod
    def elements(self, count: int, like: Any) -> Any:
        """A one-dimensional device array of `count` elements of `like`'s dtype, all bytes 0xFF."""

    @abstractmethod
    def side_stream(self) -> tuple[Any, Any]:
        """On a GPU, when all work so far is done: a stream of its own (with `synchronize`), and what makes it current."""

    @abstractmethod
    def with_axes(self, array: Any, axes: Sequence[int]) -> Any:
        """A view with the axes in the given order."""

    def buffers(self) -> dict[str, Leaf]:
        """Model state after the call (kernelbench)."""
        return {}

    def changed_inputs(self) -> dict[str, Leaf]:
        """What the input arrays hold now, named as the oracle names those that the reference changes."""
        pairs = [pair for name, value in self.live.items() for pair in zip(leaves(self.given[name], name), leaves(value, name),
                                                                           strict=True)]
        return {effect_name(path): self.to_host(array, path) for (path, leaf), (_, array) in pairs if isinstance(leaf, Leaf)}

    def construct(self, init: Any, state: Mapping[str, Leaf], training: bool = True) -> list[str]:
        """Makes the model (kernelbench); notes for the person."""
        return []

    def set_inputs(self, inputs: Mapping[str, Any], how: How, layout: str = "contiguous") -> None:
        """Prepares the next call. `layout`: how fresh inputs lie in memory (`layouts.arranged`)."""
        if how == "fresh":
            self.live = {name: map_leaves(lambda leaf: self._place(leaf, layout), value) for name, value in inputs.items()}
        elif how == "refill":
            for name, value in inputs.items():
                places = zip(leaves(value, name), leaves(self.live[name], name), strict=True)
                for (_, leaf), (_, array) in places:
                    if isinstance(leaf, Leaf):
                        self.refill(array, leaf)
        if how != "repeat":
            self.given = inputs

    def call(self) -> Any:
        """Calls the solution with `live`; its outputs as a tree of Leaf."""
        return self.taken(self.invoke())

    def taken(self, result: Any) -> Any:
        """What a call returned as a tree of Leaf. Raises WrongForm for what is no array."""
        if isinstance(result, Mapping):
            return {str(key): self.taken(value) for key, value in result.items()}
        if isinstance(result, (tuple, list)):
            return tuple(self.taken(value) for value in result)
        return self.to_host(result, "the result")

    def _place(self, value: Any, layout: str) -> Any:
        return arranged(self, value, layout) if isinstance(value, Leaf) else value

    def modified_inputs(self) -> list[str]:
        """`x[3, 0]`-style places of the first element of every input that the call changed."""
        found = []
        for name, value in self.given.items():
            for (path, leaf), (_, array) in zip(leaves(value, name), leaves(self.live[name], name), strict=True):
                if isinstance(leaf, Leaf):
                    index = _first_difference(leaf.values, self.to_host(array, path).values)
                    if index is not None:
                        found.append(f"{path}[{', '.join(map(str, index))}]" if index else path)
        return found


class NativeSolution(Solution):
    """`run(*inputs)` on CuPy arrays."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module)
        import cupy

        self.cupy: Any = cupy
        if not callable(getattr(module, "run", None)):
            raise WrongForm("the solution defines no function run(*inputs)")

    def to_device(self, leaf: Leaf) -> Any:
        """A cupy.ndarray, over the same memory where it is tiled (in the simulator)."""
        return self.cupy.from_dlpack(leaf.values) if isinstance(leaf, TiledLeaf) else self.cupy.asarray(leaf.values)

    def refill(self, array: Any, leaf: Leaf) -> None:
        """Copies from the host."""
        if leaf.order is None:
            array.set(np.ascontiguousarray(leaf.values))
        else:
            array[...] = self.to_device(leaf)

    def to_host(self, value: Any, where: str) -> Leaf:
        """Copies to the host; refuses what is no cupy.ndarray."""
        self.extent(value, where)
        return Leaf.of(self.cupy.asnumpy(value), "cupy")

    def extent(self, value: Any, where: str) -> tuple[int, int]:
        """Of a cupy.ndarray."""
        if type(value) is not self.cupy.ndarray:  # a subclass could compute on demand
            raise WrongForm(f"run returns {type(value).__name__} at {where}; every output must be a cupy.ndarray")
        return int(value.size), int(value.nbytes)

    def invoke(self) -> Any:
        """Calls `run`."""
        return self.module.run(*self.live.values())

    def spoil(self, nbytes: int, byte: int = 0xFF) -> Any:
        """From CuPy's memory pool."""
        return self.cupy.full(nbytes, byte, dtype=self.cupy.uint8)

    def elements(self, count: int, like: Any) -> Any:
        """From CuPy's memory pool."""
        return self.spoil(count * like.dtype.itemsize).view(like.dtype)

    def side_stream(self) -> tuple[Any, Any]:
        """A non-blocking stream."""
        self.cupy.cuda.runtime.deviceSynchronize()
        stream = self.cupy.cuda.Stream(non_blocking=True)
        return stream, stream

    def with_axes(self, array: Any, axes: Sequence[int]) -> Any:
        """`array.transpose`."""
        return array.transpose(*axes)


class KernelBenchSolution(Solution):
    """`ModelNew` on torch tensors."""

    device = "cuda"

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module)
        import torch

        from evaluator.torch_leaves import as_leaf, as_tensor

        self.torch: Any = torch
        self.as_leaf, self.as_tensor = as_leaf, as_tensor
        self.model: Any = None
        if not isinstance(getattr(module, "ModelNew", None), type):
            raise WrongForm("the solution defines no class ModelNew")

    def to_device(self, leaf: Leaf) -> Any:
        """A tensor on `cuda`."""
        return self.as_tensor(leaf).to(self.device)

    def refill(self, array: Any, leaf: Leaf) -> None:
        """Copies from the host."""
        array.copy_(self.as_tensor(leaf))

    def to_host(self, value: Any, where: str) -> Leaf:
        """Copies to the host; refuses what is no plain tensor."""
        self.extent(value, where)
        leaf: Leaf = self.as_leaf(value)
        return leaf

    def extent(self, value: Any, where: str) -> tuple[int, int]:
        """Of a plain tensor."""
        # A subclass of Tensor could compute on demand, after the clock has stopped.
        if type(value) not in (self.torch.Tensor, self.torch.nn.Parameter):
            raise WrongForm(f"forward returns {type(value).__name__} at {where}; every output must be a torch.Tensor")
        if vars(value):
            own = ", ".join(sorted(vars(value))[:3])
            raise WrongForm(f"forward returns a tensor with attributes of its own ({own}) at {where}; an output must be a "
                            "plain torch.Tensor")
        return int(value.numel()), int(value.numel() * value.element_size())

    def invoke(self) -> Any:
        """Calls the model, without autograd."""
        with self.torch.no_grad():
            return self.model(*self.live.values())

    def spoil(self, nbytes: int, byte: int = 0xFF) -> Any:
        """From torch's caching allocator."""
        return self.torch.full((nbytes,), byte, dtype=self.torch.uint8, device=self.device)

    def elements(self, count: int, like: Any) -> Any:
        """From torch's caching allocator."""
        return self.spoil(count * like.element_size()).view(like.dtype)

    def side_stream(self) -> tuple[Any, Any]:
        """A stream of torch's pool."""
        self.torch.cuda.synchronize()
        stream = self.torch.cuda.Stream()
        return stream, self.torch.cuda.stream(stream)

    def with_axes(self, array: Any, axes: Sequence[int]) -> Any:
        """`array.permute`."""
        return array.permute(*axes)

    def buffers(self) -> dict[str, Leaf]:
        """The model's buffers by name."""
        return {name: self.as_leaf(value) for name, value in self.model.named_buffers()}

    def construct(self, init: Any, state: Mapping[str, Leaf], training: bool = True) -> list[str]:
        """A new ModelNew holding Model's parameters and in Model's mode. Raises WrongForm where it has others."""
        arguments = map_leaves(self.as_tensor, init)
        self.torch.manual_seed(MODEL_SEED)
        made = self.module.ModelNew(**arguments) if isinstance(arguments, Mapping) else self.module.ModelNew(*arguments)
        if not isinstance(made, self.torch.nn.Module):
            raise WrongForm("ModelNew is no torch.nn.Module")
        self.model = made.to(self.device).train(training)
        own = self.model.state_dict()
        shapes = {name: leaf.shape for name, leaf in state.items()}
        _refuse_strange({name: tuple(tensor.shape) for name, tensor in own.items()}, shapes)
        with self.torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(self.as_tensor(state[name]))
        missing = [name for name in state if name not in own]
        notes = [f"ModelNew lacks {', '.join(missing[:5])} of Model"] if missing else []
        kept = {name: str(tensor.dtype).removeprefix("torch.") for name, tensor in own.items()}
        return notes + [f"ModelNew holds {name} in {dtype}, Model in {state[name].dtype}" for name, dtype in kept.items()
                        if dtype != state[name].dtype][:5]


def load_solution(path: str, task: TaskSpec) -> Solution:
    """Imports the file as module `solution`. Raises WrongForm, and whatever the module raises.

    torch's TF32 switches follow the task, not torch's defaults (which allow it in convolutions): a solution may not touch them.
    """
    if task.kind == "kernelbench":
        import torch

        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = task.allow_tf32
    spec = importlib.util.spec_from_file_location("solution", path)
    if spec is None or spec.loader is None:
        raise WrongForm(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules["solution"] = module
    spec.loader.exec_module(module)
    return NativeSolution(module) if task.kind == "native" else KernelBenchSolution(module)


def _refuse_strange(own: Mapping[str, tuple[int, ...]], model: Mapping[str, tuple[int, ...]]) -> None:
    """Raises WrongForm naming the parameters that Model lacks or holds in another shape."""
    unknown = [name for name in own if name not in model]
    shaped = [f"{name} {own[name]} instead of {model[name]}" for name in own if name in model and own[name] != model[name]]
    problems = ([f"which Model lacks: {', '.join(unknown[:5])}"] if unknown else []) + (
        [f"in another shape: {', '.join(shaped[:5])}"] if shaped else [])
    if problems:
        raise WrongForm(
            f"ModelNew has parameters or buffers {'; and '.join(problems)}. They are copied from Model by name and shape, so "
            f"keep its names ({', '.join(list(model)[:8]) or 'it has none'})")


def _first_difference(sent: Any, now: Any) -> tuple[int, ...] | None:
    if sent.shape != now.shape or sent.dtype != now.dtype:
        return ()
    # Bit patterns, so that a NaN equals itself and -0.0 differs from 0.0.
    a, b = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (sent, now))
    different = np.flatnonzero(a != b)
    if different.size == 0:
        return None
    return tuple(int(i) for i in np.unravel_index(int(different[0]) // sent.dtype.itemsize, sent.shape))
