"""A stand-in for CuPy on machines without a GPU: the same solution runs unchanged, on the PTX interpreter.

`install(session)` puts it into `sys.modules` of this process under CuPy's names; the process should be one worker's.
"""

from __future__ import annotations

import sys
from typing import Any

from evaluator.simulator.standin import torch_bridge
from evaluator.simulator.standin.arrays import ndarray
from evaluator.simulator.standin.namespace import build
from evaluator.simulator.standin.session import LibraryCall, Place, Session, SimulatedError, describe
from evaluator.simulator.standin.state import begin, end, registry

__all__ = ["LibraryCall", "Place", "Session", "SimulatedError", "describe", "install", "protect", "uninstall"]
_replaced: dict[str, object] = {}


def install(session: Session) -> None:
    """Makes `import cupy` give the stand-in, and torch's CUDA calls work on CPU tensors. Replaces an earlier session."""
    begin(session)
    torch_bridge.activate()
    if not _replaced:
        for name, module in build().items():
            _replaced[name] = sys.modules.get(name)
            sys.modules[name] = module


def uninstall() -> None:
    """Undoes `install`: what was in `sys.modules` before is there again."""
    torch_bridge.deactivate()
    for name, before in _replaced.items():
        sys.modules.pop(name, None)
        if before is not None:
            sys.modules[name] = before  # type: ignore[assignment]
    _replaced.clear()
    end()


def protect(array: Any) -> None:
    """Makes a kernel's write into `array` (cupy.ndarray or torch tensor) an error finding: inputs must stay as they are."""
    registry.protect(array.data.ptr if isinstance(array, ndarray) else array.data_ptr())
