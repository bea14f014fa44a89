"""Torch operators that a solution calls on a GPU, by name and line; in the simulator its torch bridge counts them.

Only what goes through Python's torch functions is seen; kernels that a library launches otherwise show in the recorded
launches (`library.foreign`).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from evaluator.simulator.standin.torch_operators import computes


class OperatorLog:
    """Calls of operators that compute, from lines of one file."""

    def __init__(self, solution: str) -> None:
        self._solution = solution
        self._calls: Counter[tuple[str, int]] = Counter()

    @property
    def calls(self) -> list[list[Any]]:
        """(operator, line, count) of each."""
        return [[name, line, count] for (name, line), count in self._calls.items()]

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Counts what is called meanwhile, where torch is loaded."""
        torch: Any = sys.modules.get("torch")
        if torch is None:
            yield
            return
        log = self

        class Mode(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
            """Sees every torch function of this thread."""

            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                log.note(str(getattr(func, "__name__", "")), args, kwargs or {})
                return func(*args, **(kwargs or {}))

        with Mode():
            yield

    def note(self, name: str, args: Any, kwargs: Any) -> None:
        """One call; casts and views do not count, a copy to the host does."""
        if name == "to" and "cpu" in map(str, (*args[1:], *kwargs.values())):
            name = "cpu"
        elif not computes(name):
            return
        line = self._line()
        if line:
            self._calls[f"torch.{name}", line] += 1

    def _line(self) -> int:
        """The innermost line of the solution on the stack; 0 where it is not on it."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename == self._solution:
                return frame.f_lineno
            frame = frame.f_back
        return 0
