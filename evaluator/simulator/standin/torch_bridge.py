"""Lets torch code written for `device='cuda'` run on CPU tensors: device names are translated, operators are counted.

Installed as a TorchFunctionMode (every torch function passes through it) plus replacements in `torch.cuda`. Code outside
torch and the evaluator sees `tensor.device` as `cuda:0` and `tensor.is_cuda` as True.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

from evaluator.simulator.standin.arrays import ndarray
from evaluator.simulator.standin.cuda import NO_TIMING
from evaluator.simulator.standin.memory import INTEGER_POISON, NAN_POISON
from evaluator.simulator.standin.session import is_library
from evaluator.simulator.standin.state import registry, session
from evaluator.simulator.standin.torch_library import modelled
from evaluator.simulator.standin.torch_memory import lend_storage, note_written
from evaluator.simulator.standin.torch_operators import computes

CUDA_NAME = re.compile(r"cuda(:\d+)?")
WRITES = re.compile(r"__setitem__|__i\w+__|(?!_)\w+_")
"""Functions that write into their first argument."""
UNINITIALISED = frozenset(["empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"])
TAKES_ARRAYS = frozenset(["tensor", "as_tensor", "asarray"])
_undo: list[Callable[[], None]] = []


class _Watcher(MetaPathFinder):
    """Activates the bridge when torch has just been imported."""

    def __init__(self) -> None:
        self._looking = False

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Torch's own spec, its loader followed by `activate`; None for every other module."""
        if fullname != "torch" or self._looking:
            return None
        self._looking = True
        try:
            spec = importlib.util.find_spec("torch")
        finally:
            self._looking = False
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = _then_activate(spec.loader.exec_module)  # type: ignore[method-assign,assignment]
        return spec


def _then_activate(execute: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    def run(module: ModuleType) -> None:
        execute(module)
        activate()

    return run


def activate() -> None:
    """Installs the bridge, at once if torch is loaded, else when it is imported. Calling again changes nothing."""
    torch = sys.modules.get("torch")
    if torch is None:
        if not any(isinstance(finder, _Watcher) for finder in sys.meta_path):
            sys.meta_path.insert(0, _Watcher())
        return
    if _undo:
        return
    mode = _mode(torch)
    mode.__enter__()
    _undo.append(lambda: mode.__exit__(None, None, None))
    for name, replacement in _cuda_functions(torch).items():
        _replace(torch.cuda, name, replacement)
    # Compiled functions would run operators out of this mode's sight; left as Python, they are seen.
    _replace(torch, "compile", lambda model=None, **_: model if model is not None else (lambda f: f))
    _replace(torch.jit, "script", lambda obj, *_, **__: obj)
    _replace(torch.jit, "trace", lambda func, *_, **__: func)


def deactivate() -> None:
    """Removes the bridge."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Watcher)]
    while _undo:
        _undo.pop()()


def _replace(owner: Any, name: str, value: Any) -> None:
    before = getattr(owner, name)
    setattr(owner, name, value)
    _undo.append(lambda: setattr(owner, name, before))


def _mode(torch: Any) -> Any:
    class SimulatedCuda(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        """Sees every torch call of this thread."""

        def __torch_function__(
            self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            return _call(torch, func, tuple(args), kwargs or {}, sys._getframe(1).f_code.co_filename)

    return SimulatedCuda()


def _call(torch: Any, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], caller: str) -> Any:
    name = getattr(func, "__name__", "")
    if name == "__get__":
        return _property(torch, func, args, caller)
    if func is torch.device:
        return func(*args, **kwargs)
    if name in ("cuda", "pin_memory", "record_stream"):
        return args[0]
    if name == "get_device":
        return 0
    if name in TAKES_ARRAYS and args and isinstance(args[0], ndarray):
        return _from_array(torch, name, args[0], _on_cpu(torch, kwargs))
    if name == "data_ptr":
        lend_storage(args[0])
    elif name == "to" and "cpu" in map(str, (*args[1:], *kwargs.values())):
        session().record_library_call("torch.cpu")
    library = computes(name)
    if library:
        session().record_library_call(f"torch.{name}")
    if name == "to":
        args = tuple("cpu" if isinstance(arg, int) and not isinstance(arg, bool) else arg for arg in args)
    note_written(args[:1] if WRITES.fullmatch(name) else (), kwargs.get("out"))
    args, kwargs = tuple(_cpu_name(torch, arg) for arg in args), _on_cpu(torch, kwargs)
    if library and session().mode == "profile" and session().caller() is not None:
        return modelled(torch, name, func, args, kwargs)
    result = func(*args, **kwargs)
    if name in UNINITIALISED and session().caller() is not None:
        _uninitialised(result)
    return result


def _uninitialised(tensor: Any) -> None:
    """Poisoned where everything runs; where samples run, remembered: only kernels may fill it."""
    if session().mode == "verify":
        _poison(tensor)
    elif tensor.numel():
        lend_storage(tensor)
        registry.made_empty(tensor.untyped_storage().data_ptr())


def _property(torch: Any, func: Any, args: tuple[Any, ...], caller: str) -> Any:
    if not is_library(caller):
        if func.__self__ is torch.Tensor.device:
            return torch.device("cuda", 0)
        if func.__self__ is torch.Tensor.is_cuda:
            return True
        if func.__self__ is torch.Tensor.is_cpu:
            return False
    return func(*args)


def _cpu_name(torch: Any, value: Any) -> Any:
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == "cuda" else value
    return "cpu" if isinstance(value, str) and CUDA_NAME.fullmatch(value) else value


def _on_cpu(torch: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    moved = {name: _cpu_name(torch, value) for name, value in kwargs.items() if name != "pin_memory"}
    if isinstance(moved.get("device"), int):
        moved["device"] = "cpu"
    return moved


def _from_array(torch: Any, name: str, array: ndarray, kwargs: dict[str, Any]) -> Any:
    shared = torch.from_dlpack(array)
    moved = shared.to(kwargs.get("dtype") or shared.dtype)
    return moved.clone() if name == "tensor" and moved is shared else moved


def _poison(tensor: Any) -> None:
    byte = session().fresh_byte
    if tensor.dtype is sys.modules["torch"].bool:
        tensor.fill_(byte != 0)
        return
    raw = tensor.new_empty(0, dtype=sys.modules["torch"].uint8).set_(tensor.untyped_storage())
    own = NAN_POISON if tensor.is_floating_point() or tensor.is_complex() else INTEGER_POISON
    raw.fill_(own if byte is None else byte)


class _Stream:
    """`torch.cuda.Stream`: the null stream, whatever is asked for."""

    cuda_stream = 0
    device_index = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        return None

    def _nothing(self, *_: Any) -> None:
        return None

    synchronize = wait_stream = wait_event = _nothing

    def record_event(self, event: Any = None) -> Any:
        """A complete event."""
        return event or _Event()

    def query(self) -> bool:
        """True: work is done when its call returns."""
        return True


class _Event(_Stream):
    """`torch.cuda.Event`: complete at once, cannot time."""

    record = wait = _Stream._nothing

    def elapsed_time(self, end_event: Any) -> float:
        """Raises RuntimeError: nothing here can be timed."""
        raise RuntimeError(NO_TIMING)


def _cuda_functions(torch: Any) -> dict[str, Any]:
    """Replacements in `torch.cuda`, by name."""
    stream = _Stream()

    def nothing(*_: Any, **__: Any) -> None:
        return None

    def context(*_: Any, **__: Any) -> Any:
        return nullcontext()

    return {
        "is_available": lambda: True, "is_initialized": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0,
        "init": nothing, "synchronize": nothing, "set_device": nothing, "set_stream": nothing, "empty_cache": nothing,
        "manual_seed": nothing, "manual_seed_all": nothing, "reset_peak_memory_stats": nothing,
        "memory_allocated": lambda *_: 0, "max_memory_allocated": lambda *_: 0, "memory_reserved": lambda *_: 0,
        "current_stream": lambda *_: stream, "default_stream": lambda *_: stream, "Stream": _Stream, "Event": _Event,
        "ExternalStream": _Stream, "stream": context, "device": context,
        "get_device_name": lambda *_: f"{session().device.name} (simulated)",
        "get_device_capability": lambda *_: session().device.compute_capability,
        "get_device_properties": lambda *_: _properties(),
    }


def _properties() -> SimpleNamespace:
    device = session().device
    major, minor = device.compute_capability
    return SimpleNamespace(
        name=f"{device.name} (simulated)", major=major, minor=minor, multi_processor_count=device.sm_count, warp_size=32,
        max_threads_per_multi_processor=device.max_threads_per_sm, L2_cache_size=device.l2_bytes,
        shared_memory_per_block=48 * 1024, shared_memory_per_block_optin=device.shared_bytes_per_block,
        shared_memory_per_multiprocessor=device.shared_bytes_per_sm, regs_per_multiprocessor=device.registers_per_sm)
