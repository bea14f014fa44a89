"""Arrays of CuPy and of PyTorch for the timing: buffers with shifted pointers, writing, picking elements, CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from evaluator.failures import WrongForm
from evaluator.layouts import in_order
from evaluator.trees import Leaf

ALIGNMENT = 512
"""Shifts are multiples of this, so that a shifted array is as aligned as a new one."""


class Arrays(Protocol):
    """What the timing needs of an array library."""

    def upload(self, leaf: Leaf) -> Any:
        """A device array with the leaf's values."""

    def block(self, nbytes: int) -> Any:
        """Raw device memory."""

    def nbytes(self, array: Any) -> int:
        """Bytes of its elements."""

    def write(self, block: Any, shift: int, source: Any, scale: float, order: Sequence[int] | None = None) -> Any:
        """An array `shift` bytes into the block with the source's elements times `scale`; `order`: see `Leaf.order`."""

    def elements(self, array: Any, flat: Any) -> Leaf:
        """Elements at flat indices, on the host. Raises WrongForm for what is no plain array of this library."""

    def capture(self, invoke: Callable[[], Any]) -> tuple[Callable[[], Any], Any]:
        """(replay, outputs) of a call captured as a CUDA graph."""

    def synchronize(self) -> None:
        """Waits for the device."""

    def device_name(self) -> str:
        """The GPU's product name."""


class CupyArrays:
    """CuPy arrays."""

    def __init__(self, solution: Any) -> None:
        self.cupy: Any = solution.cupy
        self._solution = solution

    def upload(self, leaf: Leaf) -> Any:
        """See `Arrays`."""
        return self.cupy.asarray(np.ascontiguousarray(leaf.values))

    def block(self, nbytes: int) -> Any:
        """See `Arrays`."""
        return self.cupy.empty(nbytes, dtype=self.cupy.uint8)

    def nbytes(self, array: Any) -> int:
        """See `Arrays`."""
        return int(array.nbytes)

    def write(self, block: Any, shift: int, source: Any, scale: float, order: Sequence[int] | None = None) -> Any:
        """See `Arrays`."""
        array = self.cupy.ndarray((source.size,), source.dtype, memptr=block.data + shift)
        array = array.reshape(source.shape) if order is None else in_order(self._solution, array, source.shape, order)
        if scale == 1.0:
            self.cupy.copyto(array, source)
        elif source.dtype.itemsize >= 4:
            self.cupy.multiply(source, source.dtype.type(scale), out=array)
        else:
            self.cupy.copyto(array, (source.astype(np.float32) * np.float32(scale)).astype(source.dtype))
        return array

    def elements(self, array: Any, flat: Any) -> Leaf:
        """See `Arrays`."""
        if type(array) is not self.cupy.ndarray:
            raise WrongForm(f"run returns {type(array).__name__}; every output must be a cupy.ndarray")
        return Leaf.of(self.cupy.asnumpy(array.reshape(-1)[self.cupy.asarray(flat)]), "cupy")

    def capture(self, invoke: Callable[[], Any]) -> tuple[Callable[[], Any], Any]:
        """See `Arrays`. The stream lives on with the replay: its temporary memory must not go to others."""
        stream = self.cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture(self.cupy.cuda.runtime.streamCaptureModeRelaxed)
            try:
                outputs = invoke()
            except BaseException:
                with suppress(Exception):
                    stream.end_capture()
                raise
            graph = stream.end_capture()

        def replay(kept: Any = stream) -> None:
            graph.launch(self.cupy.cuda.Stream.null)

        return replay, outputs

    def synchronize(self) -> None:
        """See `Arrays`."""
        self.cupy.cuda.Device().synchronize()

    def device_name(self) -> str:
        """See `Arrays`."""
        return str(self.cupy.cuda.runtime.getDeviceProperties(self.cupy.cuda.Device().id)["name"].decode())


class TorchArrays:
    """PyTorch tensors, on the device that the solution uses."""

    def __init__(self, solution: Any) -> None:
        self.torch: Any = solution.torch
        self._solution = solution
        self._probe = solution.to_device(Leaf.of(np.zeros(1, np.float32), "torch"))

    def upload(self, leaf: Leaf) -> Any:
        """See `Arrays`."""
        return self._solution.to_device(leaf).contiguous()

    def block(self, nbytes: int) -> Any:
        """See `Arrays`."""
        return self.torch.empty(nbytes, dtype=self.torch.uint8, device=self._probe.device)

    def nbytes(self, array: Any) -> int:
        """See `Arrays`."""
        return int(array.numel() * array.element_size())

    def write(self, block: Any, shift: int, source: Any, scale: float, order: Sequence[int] | None = None) -> Any:
        """See `Arrays`."""
        array = block[shift:shift + self.nbytes(source)].view(source.dtype)
        array = array.view(source.shape) if order is None else in_order(self._solution, array, source.shape, order)
        with self.torch.no_grad():
            if scale == 1.0:
                array.copy_(source)
            else:
                self.torch.mul(source, scale, out=array)
        return array

    def elements(self, array: Any, flat: Any) -> Leaf:
        """See `Arrays`."""
        if type(array) not in (self.torch.Tensor, self.torch.nn.Parameter):
            raise WrongForm(f"forward returns {type(array).__name__}; every output must be a torch.Tensor")
        indices = self.torch.from_numpy(flat).to(array.device)
        return self._solution.to_host(array.detach().reshape(-1)[indices], "the result")  # type: ignore[no-any-return]

    def capture(self, invoke: Callable[[], Any]) -> tuple[Callable[[], Any], Any]:
        """See `Arrays`."""
        graph = self.torch.cuda.CUDAGraph()
        self.synchronize()
        with self.torch.cuda.graph(graph):
            outputs = invoke()
        return graph.replay, outputs

    def synchronize(self) -> None:
        """See `Arrays`."""
        if self._probe.is_cuda:
            self.torch.cuda.synchronize()

    def device_name(self) -> str:
        """See `Arrays`."""
        return str(self.torch.cuda.get_device_name()) if self._probe.is_cuda else "cpu"
