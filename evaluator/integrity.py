"""What a solution may not touch in the process it shares with its caller: functions of others replaced, threads left behind.

A snapshot is taken before the solution is imported. It sees a replaced timer, event or allocator whatever way it was
replaced; it runs in the solution's own process, so the judge's clock (audit.py) stays the last word on times.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

CORE_MODULES = ("time", "builtins", "os", "math", "numpy")
CUPY_MODULES = ("cupy", "cupy.cuda", "cupy.cuda.runtime", "cupy.cuda.stream", "cupy.cuda.device", "cupy.cuda.memory")
TORCH_MODULES = ("torch", "torch.cuda", "torch.cuda.streams", "torch.nn", "torch.nn.functional", "torch.utils.dlpack",
                 "torch.overrides")
CLASSES = (("cupy.cuda", "Event"), ("cupy.cuda", "Stream"), ("cupy.cuda", "Device"), ("torch", "Tensor"),
           ("torch.nn", "Module"), ("torch.cuda", "Event"), ("torch.cuda", "Stream"))
OURS = "evaluator."
NAMED = 3


class Mark(NamedTuple):
    """One function or class, as it was."""

    owner: str
    space: Mapping[str, Any]
    """The owner's names."""
    name: str
    value: Any
    code: Any
    """A Python function's body, which can be swapped in place; None for everything else."""


class Integrity:
    """The functions that callers rely on, as they were; and the threads that ran."""

    def __init__(self) -> None:
        self._marks = [mark for owner, thing in dict(_owners()).items() for mark in _marks(owner, vars(thing))]
        self._threads = set(sys._current_frames())

    def violations(self) -> list[str]:
        """What the solution changed and left running, in words; empty for an honest one."""
        return [*self._replaced(), *self._left_running()]

    def _replaced(self) -> Iterator[str]:
        changed = [
            f"{owner}.{name}" for owner, space, name, value, code in self._marks
            if (code is not None and value.__code__ is not code) or space.get(name) is not value
        ]
        if changed:
            more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
            yield f"the solution replaced {', '.join(sorted(changed)[:NAMED])}{more}: others' functions must stay as they are"

    def _left_running(self) -> Iterator[str]:
        threads = set(sys._current_frames()) - self._threads
        if threads:
            count = f"{len(threads)} thread{'s' if len(threads) > 1 else ''}"
            yield f"{count} of the solution still ran after its call: all work must be done, or queued, when the call returns"
        children = child_processes()
        if children:
            yield f"{len(children)} processes of the solution still ran after its call: a solution starts no processes"


def child_processes() -> list[int]:
    """Process ids of this process's children, the dead that nobody waited for among them."""
    found: list[int] = []
    for task in Path("/proc/self/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:  # a thread that has just ended
            continue
    return found


def _owners() -> Iterator[tuple[str, Any]]:
    """Modules and classes to watch, by name; modules that are not loaded cannot have been relied on."""
    ours = [name for name in sys.modules if name.startswith(OURS)]
    for name in (*CORE_MODULES, *CUPY_MODULES, *TORCH_MODULES, *ours):
        module = sys.modules.get(name)
        if isinstance(module, ModuleType):
            yield name, module
            if name.startswith(OURS):
                yield from ((f"{name}.{key}", value) for key, value in vars(module).items() if _is_own_class(value, name))
    for module_name, name in CLASSES:
        value = vars(sys.modules.get(module_name, object)).get(name)
        if isinstance(value, type):
            yield f"{module_name}.{name}", value


def _is_own_class(value: Any, module: str) -> bool:
    return isinstance(value, type) and value.__module__ == module


def _marks(owner: str, space: Mapping[str, Any]) -> Iterator[Mark]:
    for name, value in space.items():
        if callable(value) and not name.startswith("__pyx"):
            yield Mark(owner, space, name, value, value.__code__ if isinstance(value, FunctionType) else None)
