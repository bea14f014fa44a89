"""On a GPU: every CUDA source that a solution hands to CuPy is checked and compiled once more, for its resources.

Launches are noted. The include and option guards hold here as they do in the simulator, and the judge gets binaries to list
registers, spills and machine instructions from. CuPy's own classes do the work. Modules carry line tables, which change no
instruction, so that compute-sanitizer and Nsight Compute can name lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluator.compile import Compiled, CompileError, GuardError, compile_cuda, permitted
from evaluator.launches import LaunchLog

LINE_TABLES = "-lineinfo"


@dataclass
class Watched:
    """What the watched CuPy has seen so far; it grows."""

    compiled: list[Compiled] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    """The CUDA text of every module."""
    log: LaunchLog = field(default_factory=LaunchLog)


class NotedKernel:
    """A kernel of a module: CuPy's own, whose launches are noted."""

    def __init__(self, kernel: Any, log: LaunchLog) -> None:
        object.__setattr__(self, "_kernel", kernel)
        object.__setattr__(self, "_log", log)

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, **more: Any) -> Any:
        """Launches."""
        self._log.note(self._kernel.name, grid, block, shared_mem)
        return self._kernel(grid, block, args, shared_mem=shared_mem, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._kernel, name, value)


def watch(cupy: Any, arch: str, *, resources: bool = True) -> Watched:
    """Replaces `cupy.RawModule` and `cupy.RawKernel` by subclasses that report to the returned value.

    Making one raises GuardError where the source or an option is refused. Without `resources` nothing is compiled twice.
    """
    seen = Watched()

    def look(code: Any, options: Sequence[str], names: Sequence[str]) -> None:
        seen.sources.append(str(code))
        try:
            if resources:
                seen.compiled.append(compile_cuda(str(code), arch=arch, options=options, name_expressions=names))
            else:
                permitted(str(code), options, names)
        except GuardError:
            raise
        except CompileError:  # CuPy reports it in its own words when the kernel is used
            return

    class RawModule(cupy.RawModule):  # type: ignore[misc]
        """`cupy.RawModule`."""

        def __init__(self, code: str | None = None, **options: Any) -> None:
            if code is None:
                raise NotImplementedError("pass code=..., not path=: the evaluator checks the source")
            own = tuple(options.pop("options", None) or ())
            look(code, own, options.get("name_expressions") or ())
            super().__init__(code=code, options=with_lines(own), **options)

        def get_function(self, name: str) -> NotedKernel:
            """`cupy.RawModule.get_function`."""
            return NotedKernel(super().get_function(name), seen.log)

    class RawKernel(cupy.RawKernel):  # type: ignore[misc]
        """`cupy.RawKernel`."""

        def __init__(self, code: str, name: str, options: Sequence[str] = (), *rest: Any, **more: Any) -> None:
            look(code, options, ())
            super().__init__(code, name, with_lines(options), *rest, **more)

        def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, **more: Any) -> Any:
            """Launches."""
            seen.log.note(self.name, grid, block, shared_mem)
            return super().__call__(grid, block, args, shared_mem=shared_mem, **more)

    cupy.RawModule, cupy.RawKernel = RawModule, RawKernel
    return seen


def with_lines(options: Sequence[str]) -> tuple[str, ...]:
    """The options with line tables."""
    return (*options, *[LINE_TABLES] * (LINE_TABLES not in options))
