"""Builds the modules `cupy`, `cupy.cuda`, ... out of this package's parts, and fills the rest from NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from evaluator.simulator.standin import arrays, creation, cuda, module
from evaluator.simulator.standin.memory import HostMemory, MemoryPointer
from evaluator.simulator.standin.session import SimulatedError

VERSION = "14.0.0+simulated"
NOT_HERE = {
    "ElementwiseKernel": "write the loop as a kernel in cupy.RawModule",
    "ReductionKernel": "write the reduction as a kernel in cupy.RawModule",
    "fuse": "write the fused computation as a kernel in cupy.RawModule",
    "vectorize": "write the loop as a kernel in cupy.RawModule",
    "jit": "write the kernel as CUDA C in cupy.RawModule",
    "cublas": "use cupy.matmul (a library call), or a kernel in cupy.RawModule",
}
CREATION = ("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like", "array", "asarray",
            "asanyarray", "ascontiguousarray", "asfortranarray", "copy", "asnumpy", "arange", "linspace", "eye", "from_dlpack")
NUMPY_MODULES = ("random", "linalg", "fft")


def build() -> dict[str, ModuleType]:
    """Every module of the stand-in, by its name in `sys.modules`."""
    parts: dict[str, Mapping[str, Any]] = {
        "cupy": _top(),
        "cupy.cuda": _cuda(),
        "cupy.cuda.runtime": _runtime(),
        "cupy.cuda.driver": {"CUDADriverError": SimulatedError},
        "cupy.cuda.compiler": {"CompileException": module.CompileException},
        "cupy.cuda.function": {"Function": module.Function, "Module": module.RawModule},
        "cupy.cuda.device": {"Device": cuda.Device},
        "cupy.cuda.stream": {name: getattr(cuda, name) for name in ("Stream", "ExternalStream", "Event", "get_current_stream")},
        "cupy.cuda.memory": _memory(),
        "cupyx": {},
    }
    modules = {name: _module(name, contents) for name, contents in parts.items()}
    modules["cupy"].__dict__["__getattr__"] = lambda name: _from_numpy(np, "cupy", name)
    modules["cupyx"].__dict__["__getattr__"] = _cupyx
    for name in NUMPY_MODULES:
        modules[f"cupy.{name}"] = _numpy_module(name)
    for name, made in modules.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, made)
    return modules


def _module(name: str, contents: Mapping[str, Any]) -> ModuleType:
    made = ModuleType(name, f"Simulated {name}: the part of CuPy that CUDA C solutions use.")
    made.__dict__.update(contents)
    made.__path__ = []
    return made


def _top() -> dict[str, Any]:
    names: dict[str, Any] = {name: getattr(creation, name) for name in CREATION}
    names.update({name: _absent(f"cupy.{name}", hint) for name, hint in NOT_HERE.items()})
    return names | {
        "__version__": VERSION, "ndarray": arrays.ndarray, "RawModule": module.RawModule, "RawKernel": module.RawKernel,
        "fromDlpack": creation.from_dlpack, "get_array_module": lambda *_: __import__("cupy"),
        "get_default_memory_pool": lambda: cuda.MemoryPool(), "is_available": cuda.is_available,
        "get_default_pinned_memory_pool": lambda: cuda.MemoryPool(), "newaxis": None,
    }


def _cuda() -> dict[str, Any]:
    names = ("Device", "Stream", "ExternalStream", "Event", "UnownedMemory", "MemoryPool", "alloc", "get_current_stream",
             "get_elapsed_time", "is_available")
    return {name: getattr(cuda, name) for name in names} | {
        "Function": module.Function, "MemoryPointer": MemoryPointer, "Memory": HostMemory,
        "Graph": _absent("cupy.cuda.Graph", "launch the kernels one by one")}


def _memory() -> dict[str, Any]:
    return {"MemoryPointer": MemoryPointer, "Memory": HostMemory, "BaseMemory": HostMemory, "alloc": cuda.alloc,
            "UnownedMemory": cuda.UnownedMemory, "MemoryPool": cuda.MemoryPool, "OutOfMemoryError": MemoryError}


def _runtime() -> dict[str, Any]:
    return {"getDeviceCount": lambda: 1, "getDevice": lambda: 0, "setDevice": lambda device: None,
            "deviceSynchronize": lambda: None, "streamSynchronize": lambda stream: None, "runtimeGetVersion": lambda: 13000,
            "driverGetVersion": lambda: 13000, "getDeviceProperties": cuda.device_properties, "is_hip": False,
            "memGetInfo": lambda: (64 << 30, 80 << 30), "CUDARuntimeError": SimulatedError}


def _numpy_module(name: str) -> ModuleType:
    made = _module(f"cupy.{name}", {})
    made.__dict__["__getattr__"] = lambda attribute: _from_numpy(getattr(np, name), f"cupy.{name}", attribute)
    return made


def _from_numpy(source: Any, path: str, name: str) -> Any:
    """The NumPy function as a library call on arrays; dtypes and constants as they are."""
    found = getattr(source, name, None)
    if found is None or name.startswith("_"):
        raise AttributeError(f"module {path!r} (simulated) has no attribute {name!r}")
    if isinstance(found, type) or not callable(found):
        return found
    return _library_function(found, f"{path.removeprefix('cupy.').removeprefix('cupy')}.{name}".lstrip("."))


def _library_function(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return arrays.apply(function, name, args, kwargs, computes=name not in arrays.PASSIVE_FUNCTIONS)

    call.__name__ = name
    return call


def _cupyx(name: str) -> Callable[..., NoReturn]:
    if name.startswith("_"):
        raise AttributeError(f"module 'cupyx' (simulated) has no attribute {name!r}")
    return _absent(f"cupyx.{name}", "it has no counterpart here")


def _absent(name: str, hint: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"{name} is not available in the simulator: {hint}")

    return refuse
