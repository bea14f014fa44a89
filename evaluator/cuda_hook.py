"""On a GPU: every CUDA source that a solution hands to CuPy is checked and compiled once more, for its resources.

The include and option guards hold here as they do in the simulator, and the judge gets binaries to list registers, spills
and machine instructions from. CuPy's own classes do the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluator.compile import Compiled, CompileError, GuardError, compile_cuda


def watch(cupy: Any, arch: str) -> list[Compiled]:
    """Replaces `cupy.RawModule` and `cupy.RawKernel` by subclasses that report; the list fills as modules are made.

    Making one raises GuardError where the source or an option is refused.
    """
    compiled: list[Compiled] = []

    def look(code: Any, options: Sequence[str], names: Sequence[str]) -> None:
        try:
            compiled.append(compile_cuda(str(code), arch=arch, options=tuple(options), name_expressions=tuple(names)))
        except GuardError:
            raise
        except CompileError:  # CuPy reports it in its own words when the kernel is used
            return

    class RawModule(cupy.RawModule):  # type: ignore[misc]
        """`cupy.RawModule`."""

        def __init__(self, *, code: str | None = None, **options: Any) -> None:
            if code is None:
                raise NotImplementedError("pass code=..., not path=: the evaluator checks the source")
            look(code, options.get("options") or (), options.get("name_expressions") or ())
            super().__init__(code=code, **options)

    class RawKernel(cupy.RawKernel):  # type: ignore[misc]
        """`cupy.RawKernel`."""

        def __init__(self, code: str, name: str, options: Sequence[str] = (), *rest: Any, **more: Any) -> None:
            look(code, options, ())
            super().__init__(code, name, options, *rest, **more)

    cupy.RawModule, cupy.RawKernel = RawModule, RawKernel
    return compiled
